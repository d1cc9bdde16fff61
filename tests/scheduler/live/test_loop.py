"""The cycle loop runs a cycle after each change, applies no change during a cycle, and continues after a failure."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from schedspec.scheduler.backlog.entries import Memory, Waiting
from schedspec.scheduler.framework.decisions import Bind, Decisions, Evict
from schedspec.scheduler.framework.work import Budget
from schedspec.scheduler.kube import Client, Connection, EventRecorder, Http
from schedspec.scheduler.live import loop as cycles
from schedspec.scheduler.live.loop import CycleLoop
from schedspec.scheduler.live.metrics import Metrics
from schedspec.scheduler.live.policy_file import PolicyFile
from schedspec.scheduler.live.state_feed import StateFeed
from schedspec.scheduler.live.status_builder import StatusBuilder
from schedspec.scheduler.live.status_writer import StatusWriter
from schedspec.scheduler.live.writer import Writer
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.model.task import TaskStatus
from schedspec.scheduler.reasons import Refusal, VictimReason
from schedspec.scheduler.recording.events import Input, ObjectGone, ObjectSeen
from tests.scheduler.live.test_state_feed import group, pod
from tests.support.fake_server import (
    SAFETY_NET,
    cancelled,
    until,
)

Decide = Callable[[Cluster], Decisions]
MANY = 1_000_000
"""Number of steps of a cycle that is not quick, so that the next cycle is decided in a thread."""


@dataclass
class Loop:
    feed: StateFeed
    writer: Writer
    cycles: CycleLoop
    metrics: Metrics
    inputs: list[Input] = field(default_factory=list)


@asynccontextmanager
async def looping(
    monkeypatch: pytest.MonkeyPatch, decide: Decide, core: Callable[..., Decisions] | None = None
) -> AsyncIterator[Loop]:
    """Run a cycle loop without its writer. The core is `decide`, or `core` with all arguments of the real core."""
    monkeypatch.setattr(cycles, "decide", core or (lambda cluster, policy, now, step, *, budget: decide(cluster)))
    client = Client(Http(Connection("127.0.0.1", 9)))
    metrics = Metrics()
    inputs: list[Input] = []
    feed = StateFeed(Cluster(["schedspec"]), client, on_input=inputs.append)
    for reflector in feed.reflectors:
        reflector.synced.set()
    writer = Writer(client, feed.inbox, metrics)
    status_writer = StatusWriter(client, writer.urgent)
    status_builder = StatusBuilder(feed, status_writer, EventRecorder(client, "me"), metrics)
    policy = PolicyFile(None)
    loop = CycleLoop(feed, writer, status_builder, policy=lambda: policy.current, metrics=metrics)
    task = asyncio.create_task(loop.run())
    try:
        yield Loop(feed, writer, loop, metrics, inputs)
    finally:
        await cancelled(task)
        loop.close()


async def another_cycle(loop: Loop) -> None:
    """Wait for the decisions of one more cycle."""
    decided = loop.cycles.decided
    loop.cycles.request_cycle()
    await until(lambda: loop.cycles.decided > decided and is_quiescent(loop))


def is_quiescent(loop: Loop) -> bool:
    """Whether no cycle runs and no cycle is requested."""
    return loop.cycles._due is None and not loop.cycles.is_due


async def test_a_bind_is_assumed_at_once_and_passed_to_the_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    def decide(cluster: Cluster) -> Decisions:
        pending = [task for task in cluster.tasks.values() if task.status is TaskStatus.PENDING]
        return Decisions(binds=[Bind(task.key, task.uid, "n", task.job) for task in pending])

    async with looping(monkeypatch, decide) as loop:
        loop.feed.inbox.put(ObjectSeen("Pod", pod()))
        await until(lambda: len(loop.writer.binds) == 1)
        task = loop.feed.cluster.tasks["ns/p"]
        assert (task.status, task.node, task.assumed) == (TaskStatus.BINDING, "n", True)
        await another_cycle(loop)
        assert len(loop.writer.binds) == 1


async def test_an_eviction_is_assumed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = VictimReason("reclaim", "ns/b", "ns/b-0", "qb", "qa")

    def decide(cluster: Cluster) -> Decisions:
        running = [task for task in cluster.tasks.values() if task.status is TaskStatus.RUNNING]
        return Decisions(evictions=[Evict(task.key, task.uid, task.job, reason) for task in running])

    async with looping(monkeypatch, decide) as loop:
        loop.feed.inbox.put(ObjectSeen("Pod", pod("Running", "n")))
        await until(lambda: len(loop.writer.evictions) == 1)
        assert loop.feed.cluster.tasks["ns/p"].status is TaskStatus.RELEASING
        await another_cycle(loop)
        assert len(loop.writer.evictions) == 1


async def test_the_state_does_not_change_while_a_cycle_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    deciding, may_end = threading.Event(), threading.Event()
    seen: list[tuple[list[str], list[str]]] = []

    def decide(cluster: Cluster) -> Decisions:
        if not cluster.tasks:
            return Decisions(steps=MANY)
        before = list(cluster.tasks)
        deciding.set()
        may_end.wait(SAFETY_NET)
        seen.append((before, list(cluster.tasks)))
        return Decisions()

    async with looping(monkeypatch, decide) as loop:
        loop.feed.inbox.put(ObjectSeen("Pod", pod()))
        await asyncio.to_thread(deciding.wait, SAFETY_NET)
        loop.feed.inbox.put(ObjectGone("Pod", "ns/p", "u"))
        await asyncio.sleep(0.05)
        assert list(loop.feed.cluster.tasks) == ["ns/p"]
        may_end.set()
        await until(lambda: not loop.feed.cluster.tasks)
        assert seen == [(["ns/p"], ["ns/p"])]


async def test_a_failed_cycle_is_repeated_and_inputs_are_still_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = 0

    def decide(cluster: Cluster) -> Decisions:
        nonlocal failures
        if cluster.tasks and failures < 2:
            failures += 1
            raise ZeroDivisionError("a defect of the core")
        return Decisions()

    async with looping(monkeypatch, decide) as loop:
        await until(lambda: loop.cycles.number == 1)
        loop.feed.inbox.put(ObjectSeen("Pod", pod()))
        await until(lambda: failures == 2)
        before = loop.cycles.number
        await until(lambda: loop.cycles.number > before)
        assert "ns/p" in loop.feed.cluster.tasks
        assert b"schedspec_failed_cycles_total 2.0" in loop.metrics.render()


async def test_without_a_change_a_cycle_runs_only_if_the_core_requests_a_wake_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def decide(cluster: Cluster) -> Decisions:
        return Decisions(wake_at=time.time() + 0.05) if len(calls) < 3 and not calls.append(1) else Decisions()

    calls: list[int] = []
    async with looping(monkeypatch, decide) as loop:
        await until(lambda: loop.cycles.number == 4 and is_quiescent(loop))
        assert loop.cycles.number == 4
        loop.cycles.request_cycle()
        await until(lambda: loop.cycles.number == 5)


async def test_a_cycle_that_was_cut_is_continued_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[float] = []

    def decide(_: Cluster) -> Decisions:
        ended.append(time.monotonic())
        return Decisions(cut=["allocate"] if len(ended) < 4 else [])

    async with looping(monkeypatch, decide) as loop:
        await until(lambda: len(ended) == 4 and is_quiescent(loop))
        assert loop.cycles.number == 4
        assert b'schedspec_cycle_cut_total{action="allocate"} 3.0' in loop.metrics.render()


async def test_a_due_job_gets_a_cycle_at_once_but_not_during_its_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    called = 0

    def decide(_: Cluster) -> Decisions:
        nonlocal called
        called += 1
        backoff_end = time.time() + 60 if called > 2 else 0.0
        return Decisions(memory=Memory("p", {"ns/j": Waiting(Refusal(), not_before=backoff_end)}, due=["ns/j"]))

    async with looping(monkeypatch, decide) as loop:
        await until(lambda: loop.cycles.number == 3 and is_quiescent(loop))
        assert loop.cycles.number == 3


async def test_changes_that_arrive_together_share_one_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cycles, "DEBOUNCE", 1.0)
    seen: list[int] = []

    def decide(cluster: Cluster) -> Decisions:
        seen.append(len(cluster.tasks))
        return Decisions()

    async with looping(monkeypatch, decide) as loop:
        await until(lambda: loop.cycles.number == 1)
        for i in range(20):
            loop.feed.inbox.put(ObjectSeen("Pod", pod(name=f"p{i}", uid=f"u{i}")))
            await asyncio.sleep(0)
        await until(lambda: loop.cycles.number == 2)
        loop.cycles.request_cycle()
        await until(lambda: loop.cycles.number == 3)
        assert seen == [0, 20, 20]


async def test_an_action_between_two_cycles_runs_without_starting_a_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    async with looping(monkeypatch, lambda _: Decisions()) as loop:
        await until(lambda: loop.cycles.number == 1)
        done: list[Any] = []
        loop.cycles.between_cycles(lambda: done.append(loop.feed.cluster))
        await until(lambda: len(done) == 1)
        assert loop.cycles.number == 1


async def test_the_pause_ends_as_soon_as_the_last_victim_is_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    victims = {"u"}
    monkeypatch.setattr(cycles, "_LONGEST_PAUSE", 60.0)
    monkeypatch.setattr(Writer, "is_evicting", property(lambda _: bool(victims)))
    ended: list[float] = []

    def decide(_: Cluster) -> Decisions:
        time.sleep(1.0)  # so the pause is 9 s, or 1 s if no victim terminates
        ended.append(time.monotonic())
        return Decisions()

    async with looping(monkeypatch, decide) as loop:
        await until(lambda: len(ended) == 1)
        loop.feed.inbox.put(ObjectSeen("Pod", pod()))
        await until(lambda: "ns/p" in loop.feed.cluster.tasks)
        assert len(ended) == 1
        monkeypatch.setattr(loop.writer, "gone", victims.discard)
        loop.feed.inbox.put(ObjectGone("Pod", "ns/p", "u"))
        await until(lambda: len(ended) == 2)
        assert ended[1] - ended[0] < 9.0


async def test_a_cycle_that_hangs_or_fails_stays_due_until_a_cycle_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    hangs, may_end, fails = threading.Event(), threading.Event(), True

    def decide(_: Cluster) -> Decisions:
        if fails:
            raise ZeroDivisionError
        hangs.set()
        may_end.wait(SAFETY_NET)
        return Decisions()

    async with looping(monkeypatch, decide) as loop:
        await until(lambda: loop.cycles.number >= 2)
        assert loop.cycles.is_due
        assert loop.cycles.decided == 0
        fails = False
        await until(hangs.is_set)
        assert loop.cycles.is_due
        may_end.set()
        await until(lambda: loop.cycles.decided > 0)
        await until(lambda: not loop.cycles.is_due)


async def test_a_pod_that_completes_its_gang_starts_a_cycle_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def decide(cluster: Cluster) -> Decisions:
        seen.append(len(cluster.tasks))
        return Decisions()

    async with looping(monkeypatch, decide) as loop:
        await until(lambda: seen == [0])
        loop.feed.inbox.put(ObjectSeen("PodGroup", group(minMember=2)))
        await until(lambda: seen == [0, 0])
        await until(lambda: asyncio.get_running_loop().time() - loop.cycles._ended > cycles._IDLE)
        monkeypatch.setattr(cycles, "DEBOUNCE", 3600.0)
        loop.feed.inbox.put(ObjectSeen("Pod", pod(name="first", uid="first")))
        await until(lambda: "ns/first" in loop.feed.cluster.tasks)
        assert seen == [0, 0]
        loop.feed.inbox.put(ObjectSeen("Pod", pod()))
        await until(lambda: seen == [0, 0, 2])


QUICK = {
    "quick": (Decisions(), ["thread", "loop", "loop"]),
    "of many steps": (Decisions(steps=MANY), ["thread", "thread", "thread"]),
    "cut": (Decisions(cut=["allocate"]), ["thread", "thread", "thread"]),
}


@pytest.mark.parametrize(("decisions", "places"), QUICK.values(), ids=QUICK)
async def test_only_quick_cycles_are_decided_on_the_event_loop(
    decisions: Decisions, places: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def decide(_: Cluster) -> Decisions:
        seen.append("loop" if threading.current_thread() is threading.main_thread() else "thread")
        return decisions

    async with looping(monkeypatch, decide) as loop:
        for number in range(1, 4):
            await until(lambda number=number: loop.cycles.decided >= number)
            loop.cycles.request_cycle()
        assert seen[:3] == places


async def test_a_cycle_over_the_event_loops_budget_is_decided_again_in_the_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The core's notes for the next cycle must not lead to a reuse of the decisions with the small budget."""
    seen: list[tuple[str, bool, object]] = []

    def core(cluster: Cluster, policy: object, now: float, step: object, *, budget: Budget) -> Decisions:
        place = "loop" if threading.current_thread() is threading.main_thread() else "thread"
        seen.append((place, budget.job > budget.cycle, cluster.last_cycle))
        steps = budget.job if len(seen) > 1 and place == "loop" else 0
        cluster.last_cycle = f"decided on the {place}"
        return Decisions(steps=steps)

    async with looping(monkeypatch, lambda _: Decisions(), core) as loop:
        await until(lambda: loop.cycles.decided == 1)
        loop.cycles.request_cycle()
        await until(lambda: loop.cycles.decided == 2)
    assert seen == [("thread", True, None), ("loop", False, "decided on the thread"), ("thread", True, None)]


async def test_statuses_are_built_after_the_watch_shows_the_bind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cycles, "_HEAD_START", 60.0)
    published = asyncio.Event()

    async def publish(*_: object, **__: object) -> None:
        published.set()

    def decide(cluster: Cluster) -> Decisions:
        pending = [task for task in cluster.tasks.values() if task.status is TaskStatus.PENDING]
        return Decisions(binds=[Bind(task.key, task.uid, "n", task.job) for task in pending])

    monkeypatch.setattr(StatusBuilder, "publish", publish)
    async with looping(monkeypatch, decide) as loop:
        await until(published.is_set)  # the first cycle
        published.clear()
        loop.feed.inbox.put(ObjectSeen("Pod", pod()))
        await until(lambda: len(loop.writer.binds) == 1)
        await asyncio.sleep(0.05)
        assert not published.is_set()
        loop.feed.inbox.put(ObjectSeen("Pod", pod(node="n")))
        await until(published.is_set)


async def test_new_pods_do_not_wait_for_answers_to_binds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cycles, "_HEAD_START", 60.0)

    def decide(cluster: Cluster) -> Decisions:
        pending = [task for task in cluster.tasks.values() if task.status is TaskStatus.PENDING]
        return Decisions(binds=[Bind(task.key, task.uid, "n", task.job) for task in pending])

    async with looping(monkeypatch, decide) as loop:
        for number, uid in enumerate("abc", 1):
            loop.feed.inbox.put(ObjectSeen("Pod", pod(name=uid, uid=uid)))
            await until(lambda number=number: len(loop.writer.binds) == number)
