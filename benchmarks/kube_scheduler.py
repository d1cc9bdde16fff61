"""kube-scheduler as a process of its own, for comparison: default plugins, no gangs, no limit on its requests.

It is not among the cluster's programs: it comes from the cache, or is built with Go (minutes, once).
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from schedspec.clusters.programs import binaries
from schedspec.schedulers.daemon import Daemon

NAME = "default-scheduler"
"""What its pods name as their scheduler."""
_CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {{leaderElect: false}}
clientConnection: {{kubeconfig: {kubeconfig}, qps: 5000, burst: 10000}}
"""


@contextlib.contextmanager
def kube_scheduling(kubeconfig: Path) -> Iterator[psutil.Process]:
    """Run kube-scheduler on an embedded cluster; yields its process at once, before its caches are filled."""
    program = binaries.provide(("kube-scheduler",), folder=None, progress=print)["kube-scheduler"]
    with tempfile.TemporaryDirectory(prefix="schedspec-bench-") as folder:
        file = Path(folder) / "configuration.yaml"
        file.write_text(_CONFIGURATION.format(kubeconfig=kubeconfig))
        daemon = Daemon("kube-scheduler", Path(folder) / "log")
        daemon.launch([program.path, "--config", file, "--secure-port", "0"])
        try:
            yield psutil.Process(daemon.pid)
            daemon.check()
        finally:
            daemon.stop()
