"""One turn of the event loop processes few pods, however many a gang has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise

import msgspec
import pytest

from schedspec.scheduler.framework.decisions import Bind, Decisions, Evict
from schedspec.scheduler.live.turns import ITEMS_PER_TURN
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.model.task import TaskStatus
from schedspec.scheduler.reasons import NoNode, Refusal, VictimReason
from schedspec.scheduler.recording.events import ObjectSeen
from tests.scheduler.live.test_loop import Loop, looping
from tests.scheduler.live.test_state_feed import group, pod
from tests.support.fake_server import cancelled, until

MANY = 1_000
REASON = VictimReason("reclaim", "ns/b", "ns/b-0", "qb", "qa")


def refused(cluster: Cluster) -> Decisions:
    return Decisions(refusals={"ns/g": Refusal((NoNode("ns/p", 2),))} if len(cluster.tasks) == MANY else {})


def bound(cluster: Cluster) -> Decisions:
    tasks = [task for task in cluster.tasks.values() if task.status is TaskStatus.PENDING]
    return Decisions(binds=[Bind(it.key, it.uid, "n", it.job) for it in tasks] if len(tasks) == MANY else [])


def evicted(cluster: Cluster) -> Decisions:
    tasks = [task for task in cluster.tasks.values() if task.status is TaskStatus.RUNNING]
    found = [Evict(it.key, it.uid, it.job, REASON) for it in tasks]
    return Decisions(evictions=found if len(found) == MANY else [])


DONE: dict[str, tuple[Callable[[Cluster], Decisions], str, Callable[[Loop], int]]] = {
    "applied to the state": (lambda _: Decisions(), "", lambda loop: len(loop.feed.cluster.tasks)),
    "with an event": (refused, "", lambda loop: len(loop.cycles._status_builder._events._waiting) - 1),
    "with a status": (refused, "", lambda loop: len(loop.cycles._status_builder._status_writer) - 1),
    "bound": (bound, "", lambda loop: len(loop.writer.binds)),
    "assumed to be bound": (bound, "", lambda loop: sum(it.assumed for it in loop.feed.cluster.tasks.values())),
    "evicted": (evicted, "n", lambda loop: len(loop.writer.evictions)),
}


@pytest.mark.parametrize(("decide", "node", "done"), DONE.values(), ids=DONE)
async def test_one_turn_processes_few_pods_of_a_large_gang(
    monkeypatch: pytest.MonkeyPatch, decide: Callable[[Cluster], Decisions], node: str, done: Callable[[Loop], int]
) -> None:
    async with looping(monkeypatch, decide) as loop, watched(lambda: done(loop)) as counts:
        loop.feed.inbox.put(ObjectSeen("PodGroup", group("Inqueue")))
        for i in range(MANY):
            loop.feed.inbox.put(ObjectSeen("Pod", named(i, node)))
        await until(lambda: done(loop) >= MANY)
    steps = [after - before for before, after in pairwise(counts)]
    assert max(steps) <= ITEMS_PER_TURN + 1


def named(number: int, node: str) -> object:
    one = pod("Running" if node else "Pending", node)
    meta = msgspec.structs.replace(one.metadata, name=f"p{number}", uid=f"u{number}")
    return msgspec.structs.replace(one, metadata=meta)


@asynccontextmanager
async def watched(count: Callable[[], int]) -> AsyncIterator[list[int]]:
    """Record a count in every turn of the loop."""
    counts = [0]

    async def watch() -> None:
        while True:
            counts.append(count())
            await asyncio.sleep(0)

    task = asyncio.create_task(watch())
    try:
        yield counts
    finally:
        await cancelled(task)


async def test_all_binds_of_a_gang_reach_the_writer_of_a_cancelled_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    async with looping(monkeypatch, bound) as loop:
        for i in range(MANY):
            loop.feed.inbox.put(ObjectSeen("Pod", named(i, "")))
        await until(lambda: len(loop.writer.binds) >= ITEMS_PER_TURN)
        assert len(loop.writer.binds) < MANY
    assert len(loop.writer.binds) == MANY  # the loop was cancelled
