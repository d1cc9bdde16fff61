"""Bind 20,000 pods in gangs of 20 on 2,000 KWOK nodes; measure the rate, and how many pods run in the end.

    python -m benchmarks.live_large [NODES [PODS]]

The nodes must stay Ready throughout; otherwise the figure is KWOK's, not the scheduler's.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from benchmarks.live_watch import cluster
from schedspec.scheduler.kube import NODES, PODS, Client
from tests.support.live.api_objects import PROPORTION, SIZE, bind_all, gangs, queue
from tests.support.live.scheduler_process import scheduling, until_bound, until_quiescent

_STARTS_WITHIN = 240.0
_BARE = 2_000


async def bare(client: Client, nodes: int, name: str) -> float:
    """Return the binds a second of a loop that only sends binds, with pods of its own."""
    made = await gangs(client, name, _BARE // SIZE, SIZE, "default")
    began = time.monotonic()
    await bind_all(client, made, nodes)
    return len(made) / (time.monotonic() - began)


async def scheduled(kubeconfig: Path, client: Client, nodes: int, pods: int) -> float:
    """Return the binds a second of the scheduler; print the other figures."""
    await gangs(client, "g", pods // SIZE, SIZE, "default")
    began = time.monotonic()
    with scheduling(kubeconfig, PROPORTION) as scheduler:
        first, before, last = await until_bound(scheduler, pods)
        cpu = scheduler.cpu_seconds()
        print(f"{pods} pods on {nodes} nodes: all bound, the last after {last - began:.0f} s", flush=True)
        await until_quiescent(scheduler)
        memory, running = scheduler.memory_mb(), 0
        while running < pods + _BARE and time.monotonic() < last + _STARTS_WITHIN:
            await asyncio.sleep(5)
            running = sum(pod.status.phase == "Running" for pod in (await client.list(PODS)).items)
    listed = (await client.list(NODES)).items
    ready = sum(any(c.type == "Ready" and c.status == "True" for c in n.status.conditions or ()) for n in listed)
    rate = (pods - before) / (last - first)
    print(
        f"{rate:.0f} binds/s; own CPU {cpu:.1f} s, {memory:.0f} MB; {running} of {pods + _BARE} Running after "
        f"{time.monotonic() - began:.0f} s, {ready} of {nodes} nodes Ready",
        flush=True,
    )
    return rate


async def measure(nodes: int, pods: int) -> None:
    """Run the bare loop before and after the scheduler: the loops differ only by the speed of the machine."""
    async with cluster(nodes, [queue("default")]) as (kubeconfig, client):
        loops = [await bare(client, nodes, "before")]
        rate = await scheduled(kubeconfig, client, nodes, pods)
        loops.append(await bare(client, nodes, "after"))
    rates = ", ".join(f"{loop:.0f}/s" for loop in loops)
    print(
        f"bare loop of {_BARE} binds before and after: {rates}; the scheduler is {rate / max(loops):.2f} of the faster"
    )


if __name__ == "__main__":
    asyncio.run(measure(*map(int, sys.argv[1:]), *[2_000, 20_000][len(sys.argv) - 1 :]))
