"""The scheduler is killed at any point of its work and started again: nothing is lost, nothing is done twice."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.ground import queue
from tests.faults.ground import Ground
from tests.faults.proxy import Call, Ignore, Lose, Verdict
from tests.kube.stand_in import run

pytestmark = [pytest.mark.embedded, pytest.mark.faults]

QUEUES = [
    queue("a", deserved={"cpu": "4"}, reclaimable=True),
    queue("b", deserved={"cpu": "8"}),
]
POINTS = 52
"""The scenario has some 70 writes: binds first, evictions and binds, then statuses and events. Every second or third
is a point, before it is
relayed and after."""


async def _scenario(ground: Ground, point: int) -> int:
    """Queue a fills the nodes with single-pod gangs, a gang of b reclaims; killed at the point-th write, before it is
    relayed (odd) or
    right after (even). Returns how many writes there were before the kill."""
    async with ground.scenario(nodes=3, cpu="4", queues=QUEUES):
        writes = 0
        reached = asyncio.Event()

        def judge(call: Call) -> Verdict:
            nonlocal writes
            writes += call.is_write
            if call.is_write and writes == 1 + point // 2 * 5 // 2 and not reached.is_set():
                reached.set()
                scheduler.process.kill()
                return Ignore() if point % 2 else Lose()
            return None

        ground.proxy.judge = judge
        for i in range(12):
            await ground.gang(f"a{i}", 1, "a")
        scheduler = ground.start()
        await _or(ground.bound(12), reached)
        if not reached.is_set():
            await ground.gang("b", 6, "b")
            await _or(ground.bound(12), reached)
        await _or(ground.history.until(lambda: len(ground.history.bound("b-0")) == 6, 30, "b runs"), reached)
        await asyncio.sleep(0.5)  # statuses and events that follow
        assert reached.is_set(), f"only {writes} writes: point {point} was never reached"
        ground.proxy.judge = lambda _: None
        ground.start()
        await ground.bound(12)
        if "faults/b-0-0" not in ground.history.pods:
            await ground.gang("b", 6, "b")
        await ground.history.until(lambda: len(ground.history.bound("b-0")) == 6, 30, "b runs after the restart")
        await ground.rests(0.3)
        assert len(ground.history.condemned) == 6, f"6 evictions are needed, {len(ground.history.condemned)} were made"
        return writes


async def _or(wish: object, reached: asyncio.Event) -> None:
    """Wait for a wish, or for the kill that makes it vain."""
    task = asyncio.ensure_future(wish)  # type: ignore[arg-type]
    other = asyncio.create_task(reached.wait())
    done, pending = await asyncio.wait({task, other}, return_when=asyncio.FIRST_COMPLETED)
    for item in pending:
        item.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    for item in done:
        item.result()


@pytest.mark.parametrize("point", range(POINTS))
def test_a_kill_at_any_write_loses_nothing_and_repeats_nothing(ground: Ground, point: int) -> None:
    run(lambda: _scenario(ground, point), seconds=100)
