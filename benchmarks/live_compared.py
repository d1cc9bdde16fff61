"""Compare our scheduler with kube-scheduler: one pod alone, and a backlog.

Run alone: `python -m benchmarks.live_compared`. Both schedulers get the same pods on a fresh cluster of their own, and
the same watch measures both. Single pods alternate between the two clusters, which run at the same time; backlogs take
turns. A third of the single pods are bound by a loop in Python that decides nothing, on the cluster of kube-scheduler.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.bare_scheduler import BARE, KUBE, bare_scheduling, kube_scheduling
from benchmarks.figure import Figure
from benchmarks.live_watch import Watch, cluster, watching
from schedspec.scheduler.kube import PODGROUPS, PODS, Client
from tests.support.live.api_objects import PROPORTION, SIZE, each, gangs, pod_body, queue
from tests.support.live.scheduler_process import scheduling

OURS = "schedspec"
SINGLE_PODS, WARM_UP = 60, 10
ROUNDS = 3
_PAUSE = 0.1
_TIMEOUT = 240.0


@dataclass
class _Side:
    """A scheduler and its cluster; `took` has the seconds from a pod's creation to its bind."""

    scheduler: str
    process: psutil.Process
    watch: Watch
    client: Client
    took: list[float] = field(default_factory=list)
    cpu: float = 0.0

    async def one(self, number: int) -> None:
        """Create one pod; measure until the watch shows its node."""
        name = f"{self.scheduler}-{number}"
        if self.scheduler == OURS:
            await self.client.create(PODGROUPS, {"metadata": {"name": name}, "spec": {"minMember": 1}}, "default")
        await asyncio.sleep(_PAUSE)
        self.watch.bound_now.clear()
        before, started = _cpu(self.process), time.monotonic()
        await self.client.create(PODS, _pod(name, name, self.scheduler, "100m"), "default")
        async with asyncio.timeout(_TIMEOUT):
            while name not in self.watch.bound:
                await self.watch.bound_now.wait()
                self.watch.bound_now.clear()
        self.took.append(self.watch.bound[name] - started)
        await asyncio.sleep(_PAUSE)
        self.cpu += _cpu(self.process) - before


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _pod(name: str, group: str, scheduler: str, cpu: str = "1") -> dict[str, object]:
    body = pod_body(name, group, cpu)
    body["spec"]["schedulerName"] = scheduler
    return body


@contextmanager
def _running(scheduler: str, kubeconfig: Path) -> Iterator[psutil.Process]:
    if scheduler == KUBE:
        with kube_scheduling(kubeconfig) as process:
            yield process
    elif scheduler == BARE:
        with bare_scheduling(kubeconfig, "node-0000") as process:
            yield process
    else:
        with scheduling(kubeconfig, PROPORTION) as ours:
            yield psutil.Process(ours.process.pid)


@asynccontextmanager
async def _sides(*schedulers: str) -> AsyncIterator[list[_Side]]:
    """Yield a new cluster of 100 nodes with these schedulers."""
    async with cluster(100, [queue("default")], cpu="128") as (kubeconfig, client):
        with ExitStack() as stack:
            processes = [stack.enter_context(_running(scheduler, kubeconfig)) for scheduler in schedulers]
            async with watching(client) as watch:
                yield [_Side(*pair, watch, client) for pair in zip(schedulers, processes, strict=True)]


async def one_pod() -> list[Figure]:
    """Bind single pods with each scheduler in turn."""
    async with _sides(OURS) as [ours], _sides(KUBE, BARE) as [kube, bare]:
        for number in range(WARM_UP + SINGLE_PODS):
            if number == WARM_UP:
                for side in (ours, kube, bare):
                    side.took.clear()
                    side.cpu = 0.0
            for side in (ours, kube, bare) if number % 2 else (bare, kube, ours):
                await side.one(number)
    what = f"one pod alone, created to bound, median of {SINGLE_PODS}"
    own, other, least = (statistics.median(side.took) * 1000 for side in (ours, kube, bare))
    cpu = [side.cpu / SINGLE_PODS * 1000 for side in (ours, kube)]
    return [
        Figure(f"{what}: schedspec", own, "ms"),
        Figure(f"{what}: kube-scheduler", other, "ms"),
        Figure(f"{what}: a loop in Python that decides nothing", least, "ms"),
        Figure(f"{what}: schedspec / kube-scheduler", own / other, "", 1.0),
        Figure(f"{what}: the loop / kube-scheduler", least / other, ""),
        Figure("one pod alone: CPU of schedspec", cpu[0], "ms"),
        Figure("one pod alone: CPU of kube-scheduler", cpu[1], "ms"),
    ]


async def _rate(scheduler: str, nodes: int, count: int) -> tuple[float, float]:
    """Return binds a second of a backlog that exists before the scheduler starts, and milliseconds of CPU a pod."""
    pods = count * SIZE
    async with cluster(nodes, [queue("default")]) as (kubeconfig, client):
        if scheduler == OURS:
            await gangs(client, "g", count, SIZE, "default")
        else:
            bodies = [_pod(f"g-{i // SIZE}-{i % SIZE}", "", scheduler) for i in range(pods)]
            await each(bodies, lambda body: client.create(PODS, body, "default"))
        async with watching(client) as watch:
            with _running(scheduler, kubeconfig) as process:
                async with asyncio.timeout(_TIMEOUT):
                    while len(watch.bound) < pods:
                        await asyncio.sleep(0.02)
                cpu = _cpu(process) / pods * 1000
            at = sorted(watch.bound.values())
    return (pods - 1) / (at[-1] - at[0]), cpu


async def backlog(nodes: int, count: int) -> list[Figure]:
    """Bind a backlog with each scheduler in turn; the best of some rounds counts."""
    rates: dict[str, list[float]] = {OURS: [], KUBE: []}
    cpu: dict[str, list[float]] = {OURS: [], KUBE: []}
    for _ in range(ROUNDS):
        for scheduler in (OURS, KUBE):
            rate, spent = await _rate(scheduler, nodes, count)
            rates[scheduler].append(rate)
            cpu[scheduler].append(spent)
    what = f"backlog of {count * SIZE} pods, {nodes} nodes"
    own, other = max(rates[OURS]), max(rates[KUBE])
    return [
        Figure(f"{what}: schedspec (gangs of {SIZE}), first to last bind", own, "1/s"),
        Figure(f"{what}: kube-scheduler (no gangs), first to last bind", other, "1/s"),
        Figure(f"{what}: schedspec / kube-scheduler", own / other, "", 1.0, at_least=True),
        Figure(f"{what}: CPU of schedspec a pod", min(cpu[OURS]), "ms"),
        Figure(f"{what}: CPU of kube-scheduler a pod", min(cpu[KUBE]), "ms"),
    ]


async def compared(nodes: int, count: int) -> list[Figure]:
    return [*await one_pod(), *await backlog(nodes, count)]


async def _main(what: str = "", part: int = 1) -> None:
    found = await one_pod() if what != "backlog" else []
    found += await backlog(1000 // part, 250 // part) if what != "pod" else []
    for figure in found:
        print(figure.line)


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:2], *map(int, sys.argv[2:3])))
