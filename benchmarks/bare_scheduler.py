"""Run other schedulers for comparison: kube-scheduler, and one that binds each pod to one node as soon as it is seen.

`python -m benchmarks.bare_scheduler KUBECONFIG NODE` runs until it is terminated. It reads pods and sends binds with
the scheduler's own client, and decides nothing: the additional time with our scheduler is the cost of deciding.
kube-scheduler has its default plugins, no gangs and no limit on its requests; Go builds it once, which takes minutes.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from schedspec.clusters.programs import binaries
from schedspec.scheduler.kube import PODS, Change, Present, Reflector
from schedspec.scheduler.model.objects import Pod
from schedspec.schedulers.daemon import Daemon
from tests.support.live.api_objects import client_of

KUBE = "default-scheduler"
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


@contextlib.contextmanager
def running(title: str, log: Path, command: Sequence[str | Path]) -> Iterator[psutil.Process]:
    """Run a program; yield its process at once, before its caches are filled. Raises SchedulerDiedError."""
    daemon = Daemon(title, log)
    daemon.launch(command)
    try:
        yield psutil.Process(daemon.pid)
        daemon.check()
    finally:
        daemon.stop()


BARE = "bare"


@contextlib.contextmanager
def bare_scheduling(kubeconfig: Path, node: str) -> Iterator[psutil.Process]:
    """Run the bare scheduler on an embedded cluster; it binds its pods to `node`."""
    command = [sys.executable, "-m", __name__, kubeconfig, node]
    with (
        tempfile.TemporaryDirectory(prefix="schedspec-bench-") as folder,
        running("the bare scheduler", Path(folder) / "log", command) as process,
    ):
        yield process


async def _run(kubeconfig: Path, node: str) -> None:
    binds = set[asyncio.Task[None]]()
    async with client_of(kubeconfig) as client:

        def on_change(change: Change[Pod]) -> None:
            if isinstance(change, Present) and change.object.spec.scheduler_name == BARE:
                meta, spec = change.object.metadata, change.object.spec
                if not spec.node_name:
                    bind = asyncio.create_task(client.bind(meta.namespace, meta.name, meta.uid, node))
                    binds.add(bind)
                    bind.add_done_callback(binds.discard)

        await Reflector(client, PODS, on_change).run()


if __name__ == "__main__":
    asyncio.run(_run(Path(sys.argv[1]), sys.argv[2]))
