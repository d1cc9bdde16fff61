"""Bind each pod to one node as soon as it is seen: the minimum work of a scheduler in Python for a pod.

`python -m benchmarks.bare_scheduler KUBECONFIG NODE` runs until it is terminated. It reads pods and sends binds with
the scheduler's own client, and decides nothing. The additional time with our scheduler is the cost of deciding.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from benchmarks.daemons import running
from schedspec.scheduler.kube import PODS, Change, Present, Reflector
from schedspec.scheduler.model.objects import Pod
from tests.support.live.api_objects import client_of

NAME = "bare"
"""The `schedulerName` of the pods that the bare scheduler binds."""


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
            if isinstance(change, Present) and change.object.spec.scheduler_name == NAME:
                meta, spec = change.object.metadata, change.object.spec
                if not spec.node_name:
                    bind = asyncio.create_task(client.bind(meta.namespace, meta.name, meta.uid, node))
                    binds.add(bind)
                    bind.add_done_callback(binds.discard)

        await Reflector(client, PODS, on_change).run()


if __name__ == "__main__":
    asyncio.run(_run(Path(sys.argv[1]), sys.argv[2]))
