"""Measure the latency of one pod at a time, on an idle cluster and beside many running pods.

The compared pods alternate between two clusters that run at the same time, so that a machine that becomes slower slows
both.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.figure import Figure
from benchmarks.live_watch import Watch, cluster, until_running, watching
from schedspec.scheduler.kube import PODGROUPS, PODS, Client
from tests.support.live.api_objects import PROPORTION, SIZE, gangs, pod_body, queue
from tests.support.live.scheduler_process import Scheduler, scheduling, until_bound, until_quiescent

_PAUSE = 0.1


@dataclass
class _Side:
    """A cluster with its scheduler; `took` and `by_hand` have the seconds from a pod's creation to its bind."""

    client: Client
    scheduler: Scheduler
    watch: Watch
    took: list[float] = field(default_factory=list)
    by_hand: list[float] = field(default_factory=list)

    async def one(self, number: int) -> None:
        """Create a pod, and measure the seconds from the request until the watch shows its bind."""
        name = f"one-{number}"
        await self.client.create(PODGROUPS, {"metadata": {"name": name}, "spec": {"minMember": 1}}, "default")
        await asyncio.sleep(_PAUSE)
        started = time.monotonic()
        await self.client.create(PODS, pod_body(name, name, "100m"), "default")
        self.took.append(await self._bound(name) - started)

    async def one_by_hand(self, number: int) -> None:
        """Measure the same without a scheduler: the pod is bound as soon as its creation is answered."""
        name = f"by-hand-{number}"
        body = pod_body(name, name, "100m")
        body["spec"]["schedulerName"] = "nobody"
        started = time.monotonic()
        pod = await self.client.create(PODS, body, "default")
        await self.client.bind("default", name, pod.metadata.uid, f"node-{number:04}")
        self.by_hand.append(await self._bound(name) - started)
        await asyncio.sleep(_PAUSE)

    async def _bound(self, name: str) -> float:
        while name not in self.watch.bound:
            await asyncio.sleep(0.001)
        return self.watch.bound[name]


@asynccontextmanager
async def _side(beside: int) -> AsyncIterator[_Side]:
    """Yield a new cluster of 100 nodes on which `beside` pods run and the scheduler is idle."""
    async with cluster(100, [queue("default")], cpu="128") as (kubeconfig, client):
        with scheduling(kubeconfig, PROPORTION) as scheduler:
            scheduler.wait_ready()
            if beside:
                await gangs(client, "beside", beside // SIZE, SIZE, "default")
                await until_bound(scheduler, beside)
                await until_running(client, beside)
            async with watching(client) as watch:
                await until_quiescent(scheduler)
                yield _Side(client, scheduler, watch)


async def one_pod(beside: int) -> list[Figure]:
    """Measure a pod on an idle cluster and beside many running pods, and both without a scheduler."""
    async with _side(beside) as full, _side(0) as idle:
        await _by_turns(10, full.one, idle.one)
        for side in (full, idle):
            side.took.clear()
        await _by_turns(50, full.one_by_hand, idle.one_by_hand)
        await _by_turns(200, lambda i: full.one(10 + i), lambda i: idle.one(10 + i))
        memory = full.scheduler.memory_mb()
    what, same = "one pod on an idle cluster of 100 nodes, created to bound", f"the same beside {beside} running pods"
    return [
        Figure(f"{what}: bound by hand, median", _median(idle.by_hand), "ms"),
        Figure(f"{what}: median", _median(idle.took), "ms", 30.0),
        Figure(f"{what}: p99", _p99(idle.took), "ms", 100.0),
        Figure(f"{same}: bound by hand, median", _median(full.by_hand), "ms"),
        Figure(f"{same}: median", _median(full.took), "ms"),
        Figure(f"{same}: p99", _p99(full.took), "ms"),
        Figure(f"median beside {beside} running pods / idle", _median(full.took) / _median(idle.took), "", 1.2),
        Figure(f"own memory beside {beside} running pods", memory, "MB", 250.0),
    ]


async def _by_turns(count: int, *works: Callable[[int], Coroutine[Any, Any, None]]) -> None:
    for number in range(count):
        for work in works:
            await work(number)


def _median(seconds: list[float]) -> float:
    return statistics.median(seconds) * 1000


def _p99(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=100)[98] * 1000
