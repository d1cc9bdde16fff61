"""Run kube-scheduler as a separate process, for comparison: default plugins, no gangs, no limit on its requests.

The program comes from the cache, or Go builds it once, which takes minutes.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from benchmarks.daemons import running
from schedspec.clusters.programs import binaries

NAME = "default-scheduler"
"""The scheduler's name in the spec of its pods."""
_CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {{leaderElect: false}}
clientConnection: {{kubeconfig: {kubeconfig}, qps: 5000, burst: 10000}}
"""


@contextlib.contextmanager
def kube_scheduling(kubeconfig: Path) -> Iterator[psutil.Process]:
    program = binaries.provide(("kube-scheduler",), folder=None, progress=print)["kube-scheduler"]
    with tempfile.TemporaryDirectory(prefix="schedspec-bench-") as folder:
        file = Path(folder) / "configuration.yaml"
        file.write_text(_CONFIGURATION.format(kubeconfig=kubeconfig))
        command = [program.path, "--config", file, "--secure-port", "0"]
        with running("kube-scheduler", Path(folder) / "log", command) as process:
            yield process
