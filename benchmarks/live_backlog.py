"""Measure how fast a backlog of gangs is bound, compared with a bare loop, which only sends the same binds.

The scheduler and the loop take turns, and the best result of each counts: other work on the machine only makes a result
slower.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from benchmarks.figure import Figure
from benchmarks.live_watch import cluster
from tests.support.live.api_objects import PROPORTION, SIZE, bind_all, gangs, queue
from tests.support.live.scheduler_process import scheduling, until_bound, until_quiescent

ROUNDS = 3


async def _bare_rate(nodes: int, count: int) -> float:
    """Return the binds a second of the bare loop, which uses the scheduler's own client."""
    async with cluster(nodes, [queue("default")]) as (_, client):
        pods = await gangs(client, "g", count, SIZE, "default")
        started = time.monotonic()
        await bind_all(client, pods, nodes)
        return len(pods) / (time.monotonic() - started)


class _Run(NamedTuple):
    """One run: binds a second, seconds to the last bind, CPU seconds, and MB of memory."""

    rate: float
    lasted: float
    cpu_start: float
    """CPU of a process that becomes ready on the same nodes, without pods. It does not depend on the backlog."""
    cpu: float
    """CPU until the last bind, without `cpu_start`."""
    cpu_in_all: float
    """CPU until all statuses and events are written, without `cpu_start`."""
    memory: float


async def _scheduler(nodes: int, count: int) -> _Run:
    pods = count * SIZE
    async with cluster(nodes, [queue("default")]) as (kubeconfig, client):
        with scheduling(kubeconfig, PROPORTION) as scheduler:
            await asyncio.to_thread(scheduler.wait_ready)
            start = scheduler.cpu_seconds()
        await gangs(client, "g", count, SIZE, "default")
        started = time.monotonic()
        with scheduling(kubeconfig, PROPORTION) as scheduler:
            first, before, last = await until_bound(scheduler, pods)
            cpu, memory = scheduler.cpu_seconds() - start, scheduler.memory_mb()
            await until_quiescent(scheduler)
            in_all = scheduler.cpu_seconds() - start
            return _Run((pods - before) / (last - first), last - started, start, cpu, in_all, memory)


async def backlog(nodes: int, count: int) -> list[Figure]:
    """Measure a backlog of gangs that exists before the scheduler starts."""
    loops, runs = [], []
    for _ in range(ROUNDS):
        loops.append(await _bare_rate(nodes, count))
        runs.append(await _scheduler(nodes, count))
    bare, rate = max(loops), max(run.rate for run in runs)
    pods = count * SIZE
    cpu, in_all = (min(spent) / pods * 1000 for spent in ([r.cpu for r in runs], [r.cpu_in_all for r in runs]))
    what = f"backlog of {pods} pods in gangs of {SIZE}, {nodes} nodes"
    return [
        Figure(f"{what}: bare loop of binds", bare, "1/s"),
        Figure(f"{what}: scheduler, first to last bind", rate, "1/s"),
        Figure(f"{what}: scheduler / bare loop", rate / bare, "", 0.8, at_least=True),
        Figure(f"{what}: start of the process to the last bind", min(run.lasted for run in runs), "s"),
        Figure(f"{what}: own CPU of the start", min(run.cpu_start for run in runs), "s"),
        Figure(f"{what}: own CPU a pod until the last bind", cpu, "ms", 0.6),
        Figure(f"{what}: own CPU a pod, statuses and events included", in_all, "ms"),
        Figure(f"{what}: own memory", max(run.memory for run in runs), "MB", 250.0),
    ]
