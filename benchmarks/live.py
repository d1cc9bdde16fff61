"""The scheduler on a live cluster: ``python -m benchmarks.live`` prints a table and writes
``benchmarks/out/live.json``.

The one rule: each figure that has a goal is a ratio within one run, or a time on an otherwise idle machine; every
measurement has a fresh cluster of its own, because rates fall as a cluster fills.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.ground import (
    PROPORTION,
    RECLAIM,
    Scheduler,
    client_of,
    each,
    fresh_cluster,
    gangs,
    pod_body,
    prepare,
    queue,
    scheduling,
)
from scheduler.kube import PODGROUPS, PODS, Absent, Change, Client, Present, Reflector
from scheduler.model.objects import Pod

OUT = Path(__file__).parent / "out" / "live.json"
NODES, GANGS, SIZE = 1000, 250, 20


@dataclass(frozen=True)
class Figure:
    """One line of the table. ``goal`` None: shown only."""

    figure: str
    value: float
    unit: str
    goal: float | None = None
    at_least: bool = False

    @property
    def ok(self) -> bool:
        if self.goal is None:
            return True
        return self.value >= self.goal if self.at_least else self.value <= self.goal


# ------------------------------------------------------------------------------------------------------------- backlog


async def bare_rate(nodes: int, count: int) -> float:
    """Binds a second of a loop that does nothing else, with the scheduler's own client."""
    with fresh_cluster() as kubeconfig:
        async with client_of(kubeconfig) as client:
            await prepare(client, nodes, [queue("default")])
            pods = await gangs(client, "g", count, SIZE, "default")
            started = time.monotonic()

            async def bind(item: tuple[int, Pod]) -> None:
                i, pod = item
                await client.bind("default", pod.metadata.name, pod.metadata.uid, f"node-{i % nodes:04}")

            await each(enumerate(pods), bind)
            return len(pods) / (time.monotonic() - started)


async def backlog(nodes: int, count: int) -> list[Figure]:
    """A backlog of gangs that is there before the scheduler is."""
    bare = await bare_rate(nodes, count)
    pods = count * SIZE
    with fresh_cluster() as kubeconfig:
        async with client_of(kubeconfig) as client:
            await prepare(client, nodes, [queue("default")])
            await gangs(client, "g", count, SIZE, "default")
            started = time.monotonic()
            with scheduling(kubeconfig, PROPORTION) as scheduler:
                first, before, last = await _until_bound(scheduler, pods)
                cpu, memory = scheduler.cpu_seconds(), scheduler.memory_mb()
                rate = (pods - before) / (last - first)
                await _until_at_rest(scheduler)
                after = scheduler.cpu_seconds()
    what = f"backlog of {pods} pods in gangs of {SIZE}, {nodes} nodes"
    return [
        Figure(f"{what}: bare loop of binds", bare, "1/s"),
        Figure(f"{what}: scheduler, first to last bind", rate, "1/s"),
        Figure(f"{what}: scheduler / bare loop", rate / bare, "", 0.8, at_least=True),
        Figure(f"{what}: start of the process to the last bind", last - started, "s"),
        Figure(f"{what}: own CPU a pod until the last bind", cpu / pods * 1000, "ms", 0.6),
        Figure(f"{what}: own CPU a pod, statuses and events included", after / pods * 1000, "ms"),
        Figure(f"{what}: own memory", memory, "MB", 250.0),
    ]


async def _until_bound(scheduler: Scheduler, count: int) -> tuple[float, int, float]:
    """When the first binds were seen, how many they were, and when the last one was."""
    first, before = 0.0, 0
    until = time.monotonic() + 180
    while time.monotonic() < until:
        bound = scheduler.bound()
        if bound and not first:
            first, before = time.monotonic(), bound
        if bound >= count:
            return first, before, time.monotonic()
        await asyncio.sleep(0.05)
    raise RuntimeError(f"only {scheduler.bound()} of {count} pods are bound after 180 s:\n{scheduler.log.read_text()}")


async def _until_at_rest(scheduler: Scheduler) -> None:
    """Wait until the scheduler uses no CPU to speak of."""
    for _ in range(60):
        before = scheduler.cpu_seconds()
        await asyncio.sleep(1.0)
        if scheduler.cpu_seconds() - before < 0.03:
            return


# ------------------------------------------------------------------------------------------------------------ one pod


class Watch:
    """When each pod got its node, and when each went."""

    def __init__(self) -> None:
        self.bound: dict[str, float] = {}
        self.gone: dict[str, float] = {}

    def hear(self, change: Change[Pod]) -> None:
        now = time.monotonic()
        match change:
            case Present() if change.object.spec.node_name:
                self.bound.setdefault(change.object.metadata.name, now)
            case Absent():
                self.gone[change.key.partition("/")[2]] = now


@asynccontextmanager
async def watching(client: Client) -> AsyncIterator[Watch]:
    watch = Watch()
    reflector = Reflector(client, PODS, watch.hear, namespace="default")
    task = asyncio.create_task(reflector.run())
    await reflector.synced.wait()
    yield watch
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def one_by_one(client: Client, count: int, prefix: str) -> list[float]:
    """Seconds from the request that creates a pod to its bind, as a watch shows it, one pod after the other."""
    took: list[float] = []
    async with watching(client) as watch:
        for i in range(count):
            name = f"{prefix}-{i}"
            await client.create(PODGROUPS, {"metadata": {"name": name}, "spec": {"minMember": 1}}, "default")
            await asyncio.sleep(0.1)
            started = time.monotonic()
            await client.create(PODS, pod_body(name, name, "100m"), "default")
            while name not in watch.bound:
                await asyncio.sleep(0.001)
            took.append(watch.bound[name] - started)
    return took


async def one_pod(beside: int) -> list[Figure]:
    """A pod on an idle cluster, then the same with many running beside it."""
    with fresh_cluster() as kubeconfig:
        async with client_of(kubeconfig) as client:
            await prepare(client, 100, [queue("default")], cpu="128")
            with scheduling(kubeconfig, PROPORTION) as scheduler:
                scheduler.wait_ready()
                await one_by_one(client, 10, "warm")
                idle = await one_by_one(client, 200, "idle")
                await gangs(client, "beside", beside // SIZE, SIZE, "default")
                await _until_bound(scheduler, beside + 210)
                await _until_running(client, beside + 210)
                await _until_at_rest(scheduler)
                full = await one_by_one(client, 200, "full")
                memory = scheduler.memory_mb()
    median, many = statistics.median(idle) * 1000, statistics.median(full) * 1000
    p99 = statistics.quantiles(idle, n=100)[98] * 1000
    return [
        Figure("one pod on an idle cluster of 100 nodes, created to bound: median", median, "ms", 30.0),
        Figure("one pod on an idle cluster of 100 nodes, created to bound: p99", p99, "ms", 100.0),
        Figure(f"the same beside {beside} running pods: median", many, "ms"),
        Figure(f"the same beside {beside} running pods: p99", statistics.quantiles(full, n=100)[98] * 1000, "ms"),
        Figure(f"median beside {beside} running pods / idle", many / median, "", 1.2),
        Figure(f"own memory beside {beside} running pods", memory, "MB", 250.0),
    ]


async def _until_running(client: Client, count: int) -> None:
    for _ in range(120):
        pods = (await client.list(PODS, "default")).items
        if sum(pod.status.phase == "Running" for pod in pods) >= count:
            return
        await asyncio.sleep(1.0)
    raise RuntimeError(f"not {count} pods run after 120 s; does KWOK keep up?")


# ------------------------------------------------------------------------------------------------------------- reclaim


async def reclaim() -> list[Figure]:
    """Queue a fills 100 nodes with single pods, gangs of b take the half that b deserves: 200 evictions."""
    queues = [queue("a", deserved={"cpu": "200"}, reclaimable=True), queue("b", deserved={"cpu": "200"})]
    with fresh_cluster() as kubeconfig:
        async with client_of(kubeconfig) as client:
            await prepare(client, 100, queues, cpu="4")
            with scheduling(kubeconfig, RECLAIM) as scheduler:
                scheduler.wait_ready()
                await gangs(client, "a", 400, 1, "a")
                await _until_bound(scheduler, 400)
                await _until_running(client, 400)
                await _until_at_rest(scheduler)
                async with watching(client) as watch:
                    started = time.monotonic()
                    await gangs(client, "b", 10, 20, "b")
                    await _until_b_runs(watch)
    evicted = sum(1 for name in watch.gone if name.startswith("a-"))
    last_gone = max(watch.gone.values()) - started
    last_bound = max(at for name, at in watch.bound.items() if name.startswith("b-")) - started
    return [
        Figure("reclaim of 200 pods by 10 gangs of 20: last victim deleted after", last_gone, "s", 2.0),
        Figure("reclaim of 200 pods by 10 gangs of 20: last reclaimer bound after", last_bound, "s"),
        Figure("reclaim of 200 pods by 10 gangs of 20: evictions / need", evicted / 200, "", 1.0),
    ]


async def _until_b_runs(watch: Watch) -> None:
    for _ in range(6000):
        if sum(1 for name in watch.bound if name.startswith("b-")) >= 200:
            return
        await asyncio.sleep(0.01)
    raise RuntimeError("the gangs of b are not bound after 60 s")


# --------------------------------------------------------------------------------------------------------------- table


def measure(part: int) -> Iterator[Figure]:
    """All figures; the first two at 1/``part`` of their size."""
    yield from asyncio.run(backlog(NODES // part, GANGS // part))
    yield from asyncio.run(one_pod(GANGS * SIZE // part))
    yield from asyncio.run(reclaim())


def main(part: int = 1) -> int:
    """0: every goal is reached."""
    figures: list[Figure] = []
    for figure in measure(part):
        figures.append(figure)
        sign = "≥" if figure.at_least else "≤"
        goal = "" if figure.goal is None else f"{sign} {figure.goal:g}"
        mark = "" if figure.goal is None else "ok" if figure.ok else "MISSED"
        print(f"{figure.figure:<90} {figure.value:>10.2f} {figure.unit:<4} {goal:<8} {mark}", flush=True)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps([{**_plain(figure), "ok": figure.ok} for figure in figures], indent=1) + "\n")
    return 0 if all(figure.ok for figure in figures) else 1


def _plain(figure: Figure) -> dict[str, object]:
    return {key: value for key, value in asdict(figure).items() if key != "at_least"}


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
