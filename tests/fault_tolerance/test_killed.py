"""The scheduler is killed at any point and restarted: no work is lost, and none is done twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from schedspec.scheduler.kube import PODGROUPS
from tests.support.live.api_objects import queue
from tests.support.live.history import gang_of
from tests.support.live.proxy import Call, Handling, Ignore, Lose
from tests.support.live.status_queries import conditions, eventually
from tests.support.live.target_cluster import LATER, NAMESPACE, TargetCluster

pytestmark = [pytest.mark.embedded, pytest.mark.faults]

QUEUES = [
    queue("a", deserved={"cpu": "4"}, reclaimable=True),
    queue("b", deserved={"cpu": "8"}),
]
POINTS = 52
"""Number of points at which the scheduler is killed.

The scenario has some 70 writes: binds first, then evictions and binds, then statuses and events. Every second or third
write gives two points: before it is relayed and afterwards.
"""
OFTEN = 5
"""Every fifth point is part of `make test`: in turn one after and one before a write. The others run nightly."""
WATCHES = (1, 4, 8, 10)
"""The scheduler is killed when it opens each of these watches. It opens ten, most of them before it decides."""

At = Callable[[Call, int, int], bool]
"""Whether a call is the point, by the numbers of writes and watches so far, including this call."""


async def _scenario(target: TargetCluster, at: At, verdict: Ignore | Lose) -> None:
    """Let queue a fill the nodes and a gang of queue b reclaim; kill the scheduler at a point and restart it.

    The write of the point is not relayed (`Ignore`), or is relayed and its answer is lost (`Lose`).
    """
    async with target.scenario(nodes=3, cpu="4", queues=QUEUES):
        writes = watches = 0
        reached = asyncio.Event()

        def judge(call: Call) -> Handling:
            nonlocal writes, watches
            writes += call.is_write
            watches += call.is_watch
            if not reached.is_set() and at(call, writes, watches):
                reached.set()
                scheduler.process.kill()
                return verdict
            return None

        target.proxy.judge = judge
        for i in range(12):
            await target.gang(f"a{i}", 1, "a")
        scheduler = target.start()
        await _or_killed(target.bound(12), reached)
        is_created = not reached.is_set()
        if is_created:
            await target.gang("b", 6, "b")
            await _or_killed(target.bound(12), reached)
        await _or_killed(target.history.until(lambda: len(target.history.bound("b-0")) == 6, "b runs"), reached)
        await target.history.until(reached.is_set, "statuses and events reach the point")
        target.proxy.judge = lambda _: None
        target.start()
        await target.bound(12)
        if not is_created:  # the kill came before gang b was created
            await target.gang("b", 6, "b")
        await target.history.until(lambda: len(target.history.bound("b-0")) == 6, "b runs after the restart")
        await target.assert_settled()
        assert len(target.history.evicting) == 6, f"6 evictions are needed, {len(target.history.evicting)} were made"


async def _or_killed(awaited: object, reached: asyncio.Event) -> None:
    """Wait until `awaited` completes, or until the kill, after which it cannot complete."""
    task = asyncio.ensure_future(awaited)  # type: ignore[arg-type]
    other = asyncio.create_task(reached.wait())
    done, pending = await asyncio.wait({task, other}, return_when=asyncio.FIRST_COMPLETED)
    for item in pending:
        item.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    for item in done:
        item.result()


@pytest.mark.parametrize(
    "point", [pytest.param(it, marks=[] if it % OFTEN == 0 else pytest.mark.nightly) for it in range(POINTS)]
)
@pytest.mark.deadline(100)
async def test_a_kill_at_any_write_loses_and_repeats_nothing(target: TargetCluster, point: int) -> None:
    number = 1 + point // 2 * 5 // 2

    def at(call: Call, writes: int, watches: int) -> bool:
        del watches
        return call.is_write and writes == number

    await _scenario(target, at, Ignore() if point % 2 else Lose())


@pytest.mark.parametrize("number", WATCHES)
@pytest.mark.deadline(100)
async def test_a_kill_while_watches_are_opened_loses_nothing(target: TargetCluster, number: int) -> None:
    def at(call: Call, writes: int, watches: int) -> bool:
        del writes
        return call.is_watch and watches == number

    await _scenario(target, at, Ignore())


@pytest.mark.deadline(60)
async def test_a_restart_after_the_last_write_changes_nothing(target: TargetCluster) -> None:
    async with target.scenario(nodes=3, cpu="4", queues=QUEUES):
        first = target.start()
        for i in range(12):
            await target.gang(f"a{i}", 1, "a")
        await target.bound(12)
        await target.gang("b", 6, "b")
        await target.gang("large", 20, "b")
        await target.history.until(lambda: len(target.history.bound("b-0")) == 6, "b runs")
        await target.assert_settled()
        await _wait_for_reasons_of_groups_without_pods(target)
        assert await asyncio.to_thread(first.stop) == 0  # the scheduler finishes its writes
        target.stopped(first)
        before = len(target.proxy.calls)
        second = target.start()
        await target.ready(second)
        await target.assert_settled()
        # each scheduler process writes the queues' statuses once, even if they are unchanged
        repeated = ("/events", "/queues/", f"/namespaces/{LATER}/")
        later = [
            call
            for call in target.proxy.calls[before:]
            if call.is_write and not any(part in call.path for part in repeated)
        ]
        assert [f"{call.method} {call.path}" for call in later] == []


async def _wait_for_reasons_of_groups_without_pods(target: TargetCluster) -> None:
    """Wait for the last statuses, those of groups without pods: they are written after a delay (status_builder.py)."""
    with_pods = {gang_of(pod) for pod in target.history.pods.values()}
    without = {f"a{i}-0" for i in range(12)} - with_pods
    assert len(without) == 6

    async def all_have_reasons() -> bool:
        shown = [await conditions(target.client, PODGROUPS, name, NAMESPACE) for name in sorted(without)]
        return all("Unschedulable" in each for each in shown)

    await eventually("the victims' groups have reasons", all_have_reasons)
