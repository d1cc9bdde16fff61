"""Queue a fills 100 nodes, gangs of b take back the half that b deserves: 200 evictions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from benchmarks.figure import Figure
from benchmarks.ground import RECLAIM, SIZE, client_of, each, fresh_cluster, gangs, prepare, queue
from benchmarks.live_watch import until_running, watching
from benchmarks.process import scheduling, until_at_rest, until_bound
from scheduler.kube import PODS, Client, Patch
from scheduler.model.objects import Pod

FULL, HALF = 400, 200


async def bare_evictions() -> list[Figure]:
    """What the cluster itself takes to be told of 200 pods that they go, to delete them, and to see them gone."""
    with fresh_cluster() as kubeconfig:
        async with client_of(kubeconfig) as client:
            await prepare(client, 100, [queue("a")], cpu="4")
            pods = await gangs(client, "a", FULL, 1, "a")

            async def bind(item: tuple[int, Pod]) -> None:
                number, pod = item
                await client.bind("default", pod.metadata.name, pod.metadata.uid, f"node-{number % 100:04}")

            await each(enumerate(pods), bind)
            await until_running(client, FULL)
            async with watching(client) as watch:
                started = time.monotonic()
                await each(pods[:HALF], lambda pod: _evict(client, pod.metadata.name, pod.metadata.uid))
                asked = time.monotonic() - started
                await _until(lambda: len(watch.gone) >= HALF, "the pods are not gone")
    last_gone = max(watch.gone.values()) - started
    return [
        Figure("bare loop that tells 200 pods why and deletes them: last one asked for after", asked, "s"),
        Figure("bare loop that tells 200 pods why and deletes them: last one gone after", last_gone, "s"),
    ]


async def _evict(client: Client, name: str, uid: str) -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "measured"}
    body = {"metadata": {"uid": uid}, "status": {"conditions": [condition]}}
    await client.patch(PODS, name, body, "default", kind=Patch.STRATEGIC, sub="status")
    await client.delete(PODS, name, "default", uid=uid)


async def reclaim() -> list[Figure]:
    """The whole of it, from the first request that creates something of b."""
    queues = [queue("a", deserved={"cpu": "200"}, reclaimable=True), queue("b", deserved={"cpu": "200"})]
    with fresh_cluster() as kubeconfig:
        async with client_of(kubeconfig) as client:
            await prepare(client, 100, queues, cpu="4")
            with scheduling(kubeconfig, RECLAIM) as scheduler:
                scheduler.wait_ready()
                await gangs(client, "a", FULL, 1, "a")
                await until_bound(scheduler, FULL)
                await until_running(client, FULL)
                await until_at_rest(scheduler)
                async with watching(client) as watch:
                    started = time.monotonic()
                    await gangs(client, "b", HALF // SIZE, SIZE, "b")
                    created = time.monotonic() - started
                    await _until(lambda: len(_of_b(watch.running)) >= HALF, "the gangs of b do not run")
    asked, gone = (_of_a(times) for times in (watch.leaving, watch.gone))
    what = f"reclaim of {HALF} pods by {HALF // SIZE} gangs of {SIZE}"
    return [
        Figure(f"{what}: the gangs are created after", created, "s"),
        Figure(f"{what}: first victim's deletion asked for after", min(asked) - started, "s"),
        Figure(f"{what}: last victim's deletion asked for after", max(asked) - started, "s"),
        Figure(f"{what}: last victim deleted after", max(gone) - started, "s", 2.0),
        Figure(f"{what}: last reclaimer bound after", max(_of_b(watch.bound)) - started, "s"),
        Figure(f"{what}: last reclaimer running after", max(_of_b(watch.running)) - started, "s"),
        Figure(f"{what}: evictions / need", len(gone) / HALF, "", 1.0),
    ]


def _of_a(times: dict[str, float]) -> list[float]:
    return [at for name, at in times.items() if name.startswith("a-")]


def _of_b(times: dict[str, float]) -> list[float]:
    return [at for name, at in times.items() if name.startswith("b-")]


async def _until(done: Callable[[], bool], what: str) -> None:
    for _ in range(6000):
        if done():
            return
        await asyncio.sleep(0.01)
    raise RuntimeError(f"{what} after 60 s")
