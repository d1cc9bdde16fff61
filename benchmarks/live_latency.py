"""One pod at a time: on an idle cluster, and beside many that run."""

from __future__ import annotations

import asyncio
import statistics
import time

from benchmarks.figure import Figure
from benchmarks.ground import PROPORTION, SIZE, client_of, fresh_cluster, gangs, pod_body, prepare, queue
from benchmarks.live_watch import until_running, watching
from benchmarks.process import scheduling, until_at_rest, until_bound
from scheduler.kube import PODGROUPS, PODS, Client


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


async def by_hand(client: Client, count: int, prefix: str) -> list[float]:
    """The same with nobody to decide: the pod is bound as soon as its creation is answered."""
    took: list[float] = []
    async with watching(client) as watch:
        for i in range(count):
            name = f"{prefix}-{i}"
            body = pod_body(name, name, "100m")
            body["spec"]["schedulerName"] = "nobody"
            started = time.monotonic()
            pod = await client.create(PODS, body, "default")
            await client.bind("default", name, pod.metadata.uid, f"node-{i:04}")
            while name not in watch.bound:
                await asyncio.sleep(0.001)
            took.append(watch.bound[name] - started)
            await asyncio.sleep(0.1)
    return took


async def one_pod(beside: int) -> list[Figure]:
    """A pod on an idle cluster, then the same with many running beside it; and what the cluster itself takes for it."""
    with fresh_cluster() as kubeconfig:
        async with client_of(kubeconfig) as client:
            await prepare(client, 100, [queue("default")], cpu="128")
            with scheduling(kubeconfig, PROPORTION) as scheduler:
                scheduler.wait_ready()
                await one_by_one(client, 10, "warm")
                bare_idle = await by_hand(client, 50, "bare-idle")
                idle = await one_by_one(client, 200, "idle")
                await gangs(client, "beside", beside // SIZE, SIZE, "default")
                await until_bound(scheduler, beside + 210)
                await until_running(client, beside + 260)
                await until_at_rest(scheduler)
                bare_full = await by_hand(client, 50, "bare-full")
                full = await one_by_one(client, 200, "full")
                memory = scheduler.memory_mb()
    what, same = "one pod on an idle cluster of 100 nodes, created to bound", f"the same beside {beside} running pods"
    return [
        Figure(f"{what}: bound by hand, median", _median(bare_idle), "ms"),
        Figure(f"{what}: median", _median(idle), "ms", 30.0),
        Figure(f"{what}: p99", _p99(idle), "ms", 100.0),
        Figure(f"{same}: bound by hand, median", _median(bare_full), "ms"),
        Figure(f"{same}: median", _median(full), "ms"),
        Figure(f"{same}: p99", _p99(full), "ms"),
        Figure(f"median beside {beside} running pods / idle", _median(full) / _median(idle), "", 1.2),
        Figure(f"own memory beside {beside} running pods", memory, "MB", 250.0),
    ]


def _median(seconds: list[float]) -> float:
    return statistics.median(seconds) * 1000


def _p99(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=100)[98] * 1000
