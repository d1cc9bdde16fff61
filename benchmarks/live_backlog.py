"""A backlog of gangs that is there before the scheduler is, against a loop of nothing but the same binds."""

from __future__ import annotations

import time

from benchmarks.figure import Figure
from benchmarks.ground import PROPORTION, SIZE, client_of, each, fresh_cluster, gangs, prepare, queue
from benchmarks.process import scheduling, until_at_rest, until_bound
from scheduler.model.objects import Pod


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
                first, before, last = await until_bound(scheduler, pods)
                cpu, memory = scheduler.cpu_seconds(), scheduler.memory_mb()
                rate = (pods - before) / (last - first)
                await until_at_rest(scheduler)
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
