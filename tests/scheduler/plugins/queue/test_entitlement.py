"""Queues reclaim only surplus, guarantees are kept, and two queues do not play ping-pong with a pod."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from schedspec.scheduler.framework.session import Session
from schedspec.scheduler.model import resources
from schedspec.scheduler.model.task import Task, TaskStatus
from schedspec.scheduler.plugins import PLUGINS
from schedspec.scheduler.reasons import (
    PingPong,
    Protected,
    ProtectedBy,
    QueueGuarantee,
    QueueWithinDeserved,
    render_denial,
)
from tests.scheduler.plugins.queue.state import queues_of, rivals, session_of, tables, task_of, tasks_in

PLUGIN = st.sampled_from(
    [("capacity", False, 0), ("capacity", True, 0), ("capacity", True, 1), ("proportion", False, 0)]
)


def permitted(session: Session) -> list[tuple[Task, Task]]:
    """Return all pairs of a waiting task and a running task of another queue that it may reclaim."""
    plugin = queues_of(session)
    pairs = []
    for preemptor in tasks_in(session, TaskStatus.PENDING):
        queue = session.queue_of(preemptor)
        assert queue is not None
        if plugin.preemptive(queue, preemptor) is None:
            pairs += [
                (preemptor, victim)
                for victim in tasks_in(session, TaskStatus.RUNNING)
                if session.queue_of(victim) is not queue and plugin.reclaim_unit(preemptor, (victim,)) is None
            ]
    return pairs


def permitted_after(session: Session, preemptor: Task, victim: Task) -> list[tuple[str, str]]:
    """Return the permitted pairs, by key, after the preemptor runs on the victim's node and the victim waits."""
    cluster, old = session.cluster, (preemptor.pod, victim.pod)
    for task, node, phase in ((preemptor, victim.node, "Running"), (victim, "", "Pending")):
        pod = copy.deepcopy(task.pod)
        pod.spec.node_name, pod.status.phase = node, phase
        cluster.set_pod(pod)
    after = Session(cluster, session.policy, session.now, PLUGINS)
    pairs = [(taker.key, giver.key) for taker, giver in permitted(after)]
    for pod in old:
        cluster.set_pod(pod)
    return pairs


@given(rivals(), PLUGIN)
def test_reclaimed_room_is_not_reclaimed_back(table: dict[str, Any], plugin: tuple[str, bool, int]) -> None:
    name, tree, level = plugin
    session = session_of(table, name, tree=tree, arguments={"ancestorReclaimLevel": level} if tree else None)
    for preemptor, victim in permitted(session)[:2]:
        assert (victim.key, preemptor.key) not in permitted_after(session, preemptor, victim)


@given(tables(tree=True), st.integers(0, 2))
def test_reclaimed_room_is_not_reclaimed_back_in_trees(table: dict[str, Any], level: int) -> None:
    session = session_of(table, "capacity", tree=True, arguments={"ancestorReclaimLevel": level})
    for preemptor, victim in permitted(session)[:2]:
        assert (victim.key, preemptor.key) not in permitted_after(session, preemptor, victim)


@given(tables(tree=True), st.integers(0, 2))
def test_the_losing_queue_exceeds_its_share_before_and_keeps_its_guarantee(table: dict[str, Any], level: int) -> None:
    session = session_of(table, "capacity", tree=True, arguments={"ancestorReclaimLevel": level})
    plugin = queues_of(session)
    for preemptor, victim in permitted(session):
        attributes, taker = plugin.queue_attributes.of_task(victim), plugin.queue_attributes.of_task(preemptor)
        assert attributes is not None
        assert taker is not None
        amount = plugin.queue_attributes.amount(victim)
        named = [d for d, v in amount.items() if v > 0 and d in attributes.deserved]
        assert not named or any(attributes.allocated[d] > attributes.deserved[d] for d in named)
        assert resources.less_equal(attributes.guarantee, resources.minus(attributes.allocated, amount))
        assert any(preemptor.init_request.get(d, 0) > 0 for d, v in amount.items() if v > 0)


@given(tables(tree=True), st.sampled_from(["capacity", "proportion"]))
def test_victims_judged_together_equal_victims_judged_one_by_one(table: dict[str, Any], name: str) -> None:
    session = session_of(table, name, tree=name == "capacity")
    plugin = queues_of(session)
    running = tasks_in(session, TaskStatus.RUNNING)
    for preemptor in tasks_in(session, TaskStatus.PENDING)[:2]:
        together, _ = plugin.reclaimable(preemptor, running)
        statement, one_by_one = session.statement(), []
        for victim in running:
            if plugin.reclaim_unit(preemptor, (victim,)) is None:
                one_by_one.append(victim)
                statement.evict(victim, None)  # type: ignore[arg-type]
        statement.discard()
        assert together == one_by_one


# ------------------------------------------------------------------------------------------------------------ examples


def world(**over: Any) -> Session:
    table: dict[str, Any] = {
        "nodes": [{"name": "n1", "has": "8 cpu, 8Gi memory"}],
        "queues": [{"name": "a", "deserved": "4 cpu, 4Gi memory"}, {"name": "b", "deserved": "4 cpu, 4Gi memory"}],
        "jobs": [
            {"name": "gang", "queue": "b", "tasks": "6 x 1 cpu, 1Gi memory running on n1"},
            {"name": "new", "queue": "a", "tasks": "1 x 1 cpu, 1Gi memory"},
        ],
        **over,
    }
    return session_of(table, "capacity")


def test_a_whole_gang_may_be_evicted_if_its_queue_exceeds_its_share_before() -> None:
    session = world()
    gang = [task_of(session, f"gang-{n}") for n in range(6)]
    assert queues_of(session).reclaim_unit(task_of(session, "new-0"), gang) is None


def test_a_whole_gang_is_protected_if_its_queue_would_not_keep_its_guarantee() -> None:
    session = world(
        queues=[{"name": "a", "deserved": "4 cpu"}, {"name": "b", "deserved": "4 cpu", "guarantee": "1 cpu"}]
    )
    gang = [task_of(session, f"gang-{n}") for n in range(6)]
    denial = queues_of(session).reclaim_unit(task_of(session, "new-0"), gang)
    assert denial == QueueGuarantee("b", "cpu", 6000, 1000)
    assert render_denial(denial) == "protected by the guarantee of queue b (1 of 6 cpu allocated is guaranteed)"


def test_the_last_victim_may_bring_its_queue_below_its_share() -> None:
    session = world(queues=[{"name": "a", "deserved": "8 cpu"}, {"name": "b", "deserved": "5 cpu"}])
    victims, _ = queues_of(session).reclaimable(task_of(session, "new-0"), tasks_in(session, TaskStatus.RUNNING))
    assert [task.name for task in victims] == ["gang-0"]


def test_a_queue_within_its_share_is_protected_with_its_amounts() -> None:
    session = world(queues=[{"name": "a", "deserved": "8 cpu"}, {"name": "b", "deserved": "6 cpu"}])
    denial = queues_of(session).reclaim_unit(task_of(session, "new-0"), [task_of(session, "gang-0")])
    assert denial == QueueWithinDeserved("b", "cpu", 6000, 6000)


def test_ping_pong_is_reported_with_the_queue_that_would_reclaim_the_room_back() -> None:
    session = world(
        queues=[{"name": "a", "deserved": "1 cpu, 8Gi memory"}, {"name": "b", "deserved": "8 cpu, 4Gi memory"}],
        jobs=[
            {"name": "old", "queue": "b", "min": 1, "tasks": "5 x 1 cpu, 1Gi memory running on n1"},
            {"name": "mine", "queue": "a", "min": 1, "tasks": "2 x 1 cpu, 1Gi memory running on n1"},
            {"name": "new", "queue": "a", "tasks": "1 x 1 cpu, 1Gi memory"},
        ],
    )
    denial = queues_of(session).reclaim_unit(task_of(session, "new-0"), [task_of(session, "old-0")])
    assert denial == PingPong("b", "cpu", 4000, 8000)  # what b would hold, and what it deserves


def test_a_task_of_a_misplaced_queue_is_protected() -> None:
    session = session_of(
        {
            "nodes": [{"name": "n1", "has": "8 cpu"}],
            "queues": [{"name": "a", "deserved": "4 cpu"}, {"name": "lost", "parent": "nowhere"}],
            "jobs": [
                {"name": "old", "queue": "lost", "tasks": "1 x 8 cpu running on n1"},
                {"name": "new", "queue": "a", "tasks": "1 x 1 cpu"},
            ],
        },
        "capacity",
        tree=True,
    )
    denial = queues_of(session).reclaim_unit(task_of(session, "new-0"), [task_of(session, "old-0")])
    assert denial == Protected(ProtectedBy.QUEUE, "its parent nowhere does not exist")
