"""Make clusters; watch their pods and record when each was bound, ran and was deleted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from schedspec.scheduler.kube import PODS, Absent, Change, Client, Present, Reflector
from schedspec.scheduler.model.objects import Pod
from tests.support.live.api_objects import client_of, fresh_cluster, prepare


class Watch:
    """Times at which each pod was bound, ran, began to terminate and was deleted, by name."""

    def __init__(self) -> None:
        self.bound: dict[str, float] = {}
        self.bound_now = asyncio.Event()
        """Set whenever a pod is bound; the waiter clears it."""
        self.running: dict[str, float] = {}
        self.terminating: dict[str, float] = {}
        self.deleted: dict[str, float] = {}

    def on_change(self, change: Change[Pod]) -> None:
        now = time.monotonic()
        match change:
            case Present():
                pod = change.object
                for seen, when in (
                    (pod.spec.node_name, self.bound),
                    (pod.status.phase == "Running", self.running),
                    (pod.metadata.deletion_timestamp, self.terminating),
                ):
                    if seen:
                        when.setdefault(pod.metadata.name, now)
                if pod.spec.node_name:
                    self.bound_now.set()
            case Absent():
                self.deleted[change.key.partition("/")[2]] = now


@asynccontextmanager
async def cluster(nodes: int, queues: Sequence[dict[str, Any]], cpu: str = "32") -> AsyncIterator[tuple[Path, Client]]:
    """Yield the kubeconfig and a client of a new cluster with these nodes and queues."""
    with fresh_cluster() as kubeconfig:
        async with client_of(kubeconfig) as client:
            await prepare(client, nodes, queues, cpu=cpu)
            yield kubeconfig, client


@asynccontextmanager
async def watching(client: Client) -> AsyncIterator[Watch]:
    watch = Watch()
    reflector = Reflector(client, PODS, watch.on_change, namespace="default")
    task = asyncio.create_task(reflector.run())
    await reflector.synced.wait()
    yield watch
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def until_running(client: Client, count: int) -> None:
    for _ in range(120):
        pods = (await client.list(PODS, "default")).items
        if sum(pod.status.phase == "Running" for pod in pods) >= count:
            return
        await asyncio.sleep(1.0)
    raise RuntimeError(f"not {count} pods run after 120 s; does KWOK keep up?")
