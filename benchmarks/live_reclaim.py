"""Measure a reclaim: queue a fills 100 nodes, and queue b reclaims the half that it deserves with 200 evictions.

The whole measurement runs three times, each time after a bare loop of the same calls. The best time counts: other work
on the machine only makes a result slower.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.figure import Figure
from benchmarks.live_watch import cluster, until_running, watching
from schedspec.scheduler.kube import PODS, Client, Patch
from tests.support.live.api_objects import RECLAIM, SIZE, bind_all, each, gangs, queue
from tests.support.live.scheduler_process import scheduling, until_bound, until_quiescent

FULL, HALF = 400, 200
ROUNDS = 3


class Bare(NamedTuple):
    """Seconds from the first request to the last deletion request, and until the last pod is deleted."""

    requested: float
    deleted: float


class ReclaimTimes(NamedTuple):
    """Seconds of each step since the first request that creates an object of b; number of evicted pods of a."""

    created: float
    first_requested: float
    last_requested: float
    deleted: float
    bound: float
    running: float
    evictions: int


async def burst() -> list[Figure]:
    """Measure one reclaimer as large as half of the cluster, and ten gangs of that size together."""
    bare, one, ten = [], [], []
    for _ in range(ROUNDS):
        bare.append(await _bare_evictions())
        one.append(await _reclaim(1, HALF))
        ten.append(await _reclaim(HALF // SIZE, SIZE))
    loop = f"bare loop that marks {HALF} pods as victims and deletes them"
    return [
        Figure(f"{loop}: last deletion requested after", min(run.requested for run in bare), "s"),
        Figure(f"{loop}: last pod deleted after", min(run.deleted for run in bare), "s"),
        *_figures(f"reclaim of {HALF} pods by one gang of {HALF}", one, 2.0),
        *_figures(f"the same by {HALF // SIZE} gangs of {SIZE}", ten),
    ]


def _figures(what: str, runs: list[ReclaimTimes], goal: float | None = None) -> list[Figure]:
    best = min(runs, key=lambda run: run.deleted)
    return [
        Figure(f"{what}: created after", best.created, "s"),
        Figure(f"{what}: first victim's deletion requested after", best.first_requested, "s"),
        Figure(f"{what}: last victim's deletion requested after", best.last_requested, "s"),
        Figure(f"{what}: last victim deleted after", best.deleted, "s", goal),
        Figure(
            f"{what}: last victim deleted after, median of {ROUNDS}", statistics.median(r.deleted for r in runs), "s"
        ),
        Figure(f"{what}: last reclaimer bound after", best.bound, "s"),
        Figure(f"{what}: last reclaimer running after", best.running, "s"),
        Figure(f"{what}: evictions / need, at most", max(run.evictions for run in runs) / HALF, "", 1.0),
    ]


async def _bare_evictions() -> Bare:
    """Measure the cluster alone: mark pods as victims, delete them, and wait until they are deleted."""
    async with cluster(100, [queue("a")], cpu="4") as (_, client):
        pods = await gangs(client, "a", FULL, 1, "a")
        await bind_all(client, pods, 100)
        await until_running(client, FULL)
        async with watching(client) as watch:
            started = time.monotonic()
            await each(pods[:HALF], lambda pod: _evict(client, pod.metadata.name, pod.metadata.uid))
            requested = time.monotonic() - started
            await _until(lambda: len(watch.deleted) >= HALF, "the pods are not deleted")
    return Bare(requested, max(watch.deleted.values()) - started)


async def _evict(client: Client, name: str, uid: str) -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "measured"}
    body = {"metadata": {"uid": uid}, "status": {"conditions": [condition]}}
    await client.patch(PODS, name, body, "default", kind=Patch.STRATEGIC, sub="status")
    await client.delete(PODS, name, "default", uid=uid)


async def _reclaim(count: int, size: int) -> ReclaimTimes:
    """Run one reclaim by `count` gangs of `size` pods."""
    queues = [queue("a", deserved={"cpu": "200"}, reclaimable=True), queue("b", deserved={"cpu": "200"})]
    async with cluster(100, queues, cpu="4") as (kubeconfig, client):
        with scheduling(kubeconfig, RECLAIM) as scheduler:
            scheduler.wait_ready()
            await gangs(client, "a", FULL, 1, "a")
            await until_bound(scheduler, FULL)
            await until_running(client, FULL)
            await until_quiescent(scheduler)
            async with watching(client) as watch:
                started = time.monotonic()
                await gangs(client, "b", count, size, "b")
                created = time.monotonic() - started
                await _until(lambda: len(_of("b", watch.running)) >= HALF, "the gangs of b do not run")
    requested, deleted = (_of("a", times) for times in (watch.terminating, watch.deleted))
    bound, running = (_of("b", times) for times in (watch.bound, watch.running))
    first, last, ended = (at - started for at in (min(requested), max(requested), max(deleted)))
    return ReclaimTimes(created, first, last, ended, max(bound) - started, max(running) - started, len(deleted))


def _of(queue: str, times: dict[str, float]) -> list[float]:
    return [at for name, at in times.items() if name.startswith(f"{queue}-")]


async def _until(done: Callable[[], bool], what: str) -> None:
    for _ in range(6000):
        if done():
            return
        await asyncio.sleep(0.01)
    raise RuntimeError(f"{what} after 60 s")
