"""20,000 pods in gangs of 20 on 2,000 simulated nodes: whether all are bound, how fast, and how many run in the end.

python -m benchmarks.live_large [NODES [PODS]]

The one rule: the nodes stay Ready throughout, or what is measured is KWOK. Its nodes renew their leases every 10 s by
default: 200 requests a second for 2,000 nodes, beside which it starved at 1,034. Here a lease lasts 160 s, so that
there are 50.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from schedspec.clusters import kwok_config
from scheduler.kube import NODES, PODS, Client
from tests.support.live.api_objects import PROPORTION, SIZE, bind_all, client_of, fresh_cluster, gangs, prepare, queue
from tests.support.live.scheduler_process import scheduling, until_at_rest, until_bound

_LEASE_SECONDS = 160
"""KWOK first plays a node up to a quarter of this after it came; with 600 s 2,000 nodes are not Ready in 150 s."""
_AT_ONCE = 16
"""Leases and nodes that KWOK works on at a time, four times our usual."""
_STARTS_WITHIN = 240.0
_BARE = 2_000
"""Pods of a bare loop."""


@contextlib.contextmanager
def long_leases() -> Iterator[None]:
    """Clusters that boot in here have nodes that renew their leases rarely, and are believed as long."""
    kwok, manager = kwok_config.KWOK_OPTIONS, kwok_config._EXTRA_ARGS["kube-controller-manager"]
    before = dict(kwok), dict(manager)
    kwok |= {"nodeLeaseDurationSeconds": _LEASE_SECONDS, "nodeLeaseParallelism": _AT_ONCE}
    kwok["nodePlayStageParallelism"] = _AT_ONCE
    manager["node-monitor-grace-period"] = f"{2 * _LEASE_SECONDS}s"
    try:
        yield
    finally:
        for options, old in zip((kwok, manager), before, strict=True):
            options.clear()
            options.update(old)


async def bare(client: Client, nodes: int, name: str) -> float:
    """Binds a second of a loop that does nothing else, of pods of its own."""
    made = await gangs(client, name, _BARE // SIZE, SIZE, "default")
    began = time.monotonic()
    await bind_all(client, made, nodes)
    return len(made) / (time.monotonic() - began)


async def scheduled(kubeconfig: Path, client: Client, nodes: int, pods: int) -> float:
    """Binds a second of the scheduler; the rest of the figures are printed."""
    await gangs(client, "g", pods // SIZE, SIZE, "default")
    began = time.monotonic()
    with scheduling(kubeconfig, PROPORTION) as scheduler:
        first, before, last = await until_bound(scheduler, pods)
        cpu = scheduler.cpu_seconds()
        print(f"{pods} pods on {nodes} nodes: all bound, the last after {last - began:.0f} s", flush=True)
        await until_at_rest(scheduler)
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
    """The bare loop before and after the scheduler, on the same cluster: what changes in between is the machine's."""
    with long_leases(), fresh_cluster() as kubeconfig:
        async with client_of(kubeconfig) as client:
            await prepare(client, nodes, [queue("default")])
            loops = [await bare(client, nodes, "before")]
            rate = await scheduled(kubeconfig, client, nodes, pods)
            loops.append(await bare(client, nodes, "after"))
    told = ", ".join(f"{loop:.0f}/s" for loop in loops)
    print(
        f"bare loop of {_BARE} binds before and after: {told}; the scheduler is {rate / max(loops):.2f} of the faster"
    )


if __name__ == "__main__":
    asyncio.run(measure(*map(int, sys.argv[1:]), *[2_000, 20_000][len(sys.argv) - 1 :]))
