"""Deserved amounts and limits of queues, and allocated amounts after every change."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from schedspec.scheduler.framework.session import Session
from schedspec.scheduler.model import objects, resources
from schedspec.scheduler.model.queue import Queue
from schedspec.scheduler.model.resources import UNLIMITED, Limit
from schedspec.scheduler.model.task import HOLDING, TaskStatus
from schedspec.scheduler.plugins import PLUGINS
from schedspec.scheduler.plugins.queue.attributes import QueueAttributes, without_pods
from schedspec.scheduler.plugins.queue.proportion import fill
from schedspec.scheduler.reasons import VictimReason
from tests.scheduler.plugins.queue.state import queue_rows, queues_of, session_of, tables, task_of, tasks_in


def queue_attributes(session: Session) -> dict[str, QueueAttributes]:
    return queues_of(session).queue_attributes.by_name


def amount(limit: Limit) -> int:
    assert limit is not UNLIMITED
    return limit


def held(attributes: QueueAttributes) -> resources.Resource:
    return {dimension: amount for dimension, amount in attributes.allocated.items() if amount}


# ------------------------------------------------------------------------------------------------------------ examples


def test_queues_are_filled_by_weight_up_to_their_requests() -> None:
    session = session_of(
        {
            "nodes": [{"name": "n1", "has": "12 cpu"}],
            "queues": [{"name": "a"}, {"name": "b", "weight": 2}, {"name": "c"}],
            "jobs": [
                {"name": "a", "queue": "a", "tasks": "2 x 1 cpu"},
                {"name": "b", "queue": "b", "tasks": "20 x 1 cpu"},
                {"name": "c", "queue": "c", "tasks": "20 x 1 cpu"},
            ],
        },
        "proportion",
    )
    deserved = {name: attributes.deserved["cpu"] for name, attributes in queue_attributes(session).items()}
    assert deserved == {"a": 2000, "b": 6666, "c": 3333}


def test_a_queue_without_jobs_deserves_nothing_but_keeps_its_guarantee() -> None:
    session = session_of(
        {
            "nodes": [{"name": "n1", "has": "4 cpu"}],
            "queues": [{"name": "a"}, {"name": "idle", "weight": 9, "guarantee": "1 cpu"}],
            "jobs": [{"name": "a", "queue": "a", "tasks": "4 x 1 cpu"}],
        },
        "proportion",
    )
    assert queue_attributes(session)["a"].deserved["cpu"] == 3000
    assert queue_attributes(session)["idle"].deserved == {}


def test_queue_attributes_are_kept_while_only_statuses_of_queues_change() -> None:
    session = session_of({"nodes": [{"name": "n1", "has": "4 cpu"}], "queues": [{"name": "a"}]}, "capacity")
    cluster, plugin = session.cluster, queues_of(session)
    first, queue = plugin.queue_attributes, cluster.queues["a"].object

    def open_session_with(changed: objects.Queue) -> None:
        cluster.set_queue(changed)
        Session(cluster, session.policy, session.now, PLUGINS).close()

    open_session_with(replace(queue, status=replace(queue.status, allocated={"cpu": "3"})))
    assert plugin.queue_attributes is first
    assert cluster.queues["a"].object.status.allocated == {"cpu": "3"}
    open_session_with(replace(queue, spec=replace(queue.spec, weight=7)))
    assert plugin.queue_attributes is not first


def test_real_capability_excludes_the_guarantees_of_other_queues() -> None:
    session = session_of(
        {
            "nodes": [{"name": "n1", "has": "10 cpu"}],
            "queues": [{"name": "a", "deserved": "6 cpu", "guarantee": "2 cpu"}, {"name": "b", "deserved": "4 cpu"}],
        },
        "capacity",
    )
    assert {name: attributes.limit["cpu"] for name, attributes in queue_attributes(session).items()} == {
        "a": 10000,
        "b": 8000,
    }


def test_flat_deserved_is_cut_to_the_real_capability_and_raised_to_the_guarantee() -> None:
    session = session_of(
        {
            "nodes": [{"name": "n1", "has": "10 cpu"}],
            "queues": [
                {"name": "cut", "deserved": "9 cpu", "capability": "4 cpu"},
                {"name": "raised", "deserved": "1 cpu", "guarantee": "2 cpu"},
            ],
        },
        "capacity",
    )
    assert {name: attributes.deserved["cpu"] for name, attributes in queue_attributes(session).items()} == {
        "cut": 4000,
        "raised": 2000,
    }


def test_the_share_is_that_of_the_fullest_dimension_or_1_if_nothing_is_deserved() -> None:
    session = session_of(
        {
            "nodes": [{"name": "n1", "has": "8 cpu, 8 gpu"}],
            "queues": [{"name": "a", "deserved": "4 cpu, 2 gpu"}, {"name": "b"}, {"name": "c", "deserved": "0 cpu"}],
            "jobs": [{"name": "j", "queue": "a", "tasks": "1 x 1 cpu, 1 gpu running on n1"}],
        },
        "capacity",
    )
    assert {name: attributes.share for name, attributes in queue_attributes(session).items()} == {
        "a": 0.5,
        "b": 1.0,
        "c": 1.0,
    }


def test_the_share_of_a_card_queue_is_relative_to_its_quota() -> None:
    session = session_of(
        {
            "nodes": [{"name": "n1", "has": "8 cpu, 8 gpu", "labels": {"nvidia.com/gpu.product": "RTX"}}],
            "queues": [{"name": "a", "annotations": {"volcano.sh/card.quota": '{"RTX": 8}'}}],
            "jobs": [{"name": "j", "queue": "a", "tasks": "1 x 2 gpu running on n1"}],
        },
        "capacity-card",
    )
    attributes = queue_attributes(session)["a"]
    assert (attributes.share, attributes.deserved, attributes.guarantee) == (0.25, {}, {})
    assert session.decisions.queues["a"].capability == {"RTX": 8000}


# ---------------------------------------------------------------------------------------------------------- properties


@given(tables())
def test_deserved_shares_exceed_neither_the_total_nor_the_requests(table: dict[str, Any]) -> None:
    session = session_of(table, "proportion")
    busy = [attributes for attributes in queue_attributes(session).values() if attributes.request]
    guaranteed = resources.total_of(attributes.guarantee for attributes in queue_attributes(session).values())
    for dimension, total in without_pods(session.total).items():
        deserved = sum(attributes.deserved.get(dimension, 0) for attributes in busy)
        idle = guaranteed.get(dimension, 0) - sum(attributes.guarantee.get(dimension, 0) for attributes in busy)
        if guaranteed.get(dimension, 0) <= total:
            assert deserved + idle <= total
        for attributes in busy:
            most = min(attributes.request.get(dimension, 0), amount(attributes.limit.get(dimension, 0)))
            floor = attributes.guarantee.get(dimension, 0)
            assert attributes.deserved.get(dimension, 0) <= max(most, floor)


@given(tables())
def test_deserved_shares_leave_nothing_over_that_a_queue_requests(table: dict[str, Any]) -> None:
    session = session_of(table, "proportion")
    busy = [attributes for attributes in queue_attributes(session).values() if attributes.request]
    idle = resources.total_of(one.guarantee for one in queue_attributes(session).values() if one not in busy)
    for dimension, total in without_pods(session.total).items():
        kept = idle.get(dimension, 0)
        left = total - kept - sum(attributes.deserved.get(dimension, 0) for attributes in busy)
        for attributes in busy:
            most = min(attributes.request.get(dimension, 0), amount(attributes.limit.get(dimension, 0)))
            assert left < len(busy) or attributes.deserved.get(dimension, 0) >= most


@given(queue_rows())
def test_a_queue_at_its_real_capability_leaves_room_for_all_guarantees(rows: list[dict[str, Any]]) -> None:
    table = {"nodes": [{"name": "n1", "has": "40 cpu, 40 gpu"}], "queues": rows}
    for plugin in ("capacity", "proportion"):
        session = session_of(table, plugin)
        for attributes in queue_attributes(session).values():
            others = resources.total_of(o.guarantee for o in queue_attributes(session).values() if o is not attributes)
            for dimension, total in without_pods(session.total).items():
                assert amount(attributes.limit.get(dimension, 0)) + others.get(dimension, 0) <= total


@given(queue_rows(tree=True))
def test_no_child_may_hold_more_than_its_parent(rows: list[dict[str, Any]]) -> None:
    table = {"nodes": [{"name": "n1", "has": "40 cpu, 40 gpu"}], "queues": rows}
    for attributes in queue_attributes(session_of(table, "capacity", tree=True)).values():
        if attributes.parent is not None:
            above, own = attributes.parent.limit["cpu"], attributes.limit["cpu"]
            assert own is not UNLIMITED
            assert above is UNLIMITED or own <= max(above, attributes.guarantee.get("cpu", 0))


STEP = st.tuples(st.sampled_from(["allocate", "pipeline", "evict", "rollback", "savepoint"]), st.integers(0, 20))


@given(tables(tree=True), st.lists(STEP, max_size=25), st.sampled_from(["capacity", "proportion", "capacity-card"]))
def test_allocated_amounts_follow_every_change_and_every_rollback(
    table: dict[str, Any], steps: list[tuple[str, int]], plugin: str
) -> None:
    session = session_of(table, plugin, tree=plugin == "capacity")
    before = {name: held(attributes) for name, attributes in queue_attributes(session).items()}
    statement, node = session.statement(), session.nodes.rows[0]
    savepoints = [statement.savepoint()]
    for step, number in steps:
        statuses = TaskStatus.PENDING if step in ("allocate", "pipeline") else HOLDING
        tasks = tasks_in(session, statuses)
        if step == "rollback":
            statement.rollback(savepoints[number % len(savepoints)])
            savepoints = savepoints[: number % len(savepoints) + 1]
        elif step == "savepoint":
            savepoints.append(statement.savepoint())
        elif tasks:
            task = tasks[number % len(tasks)]
            if step == "evict":
                statement.evict(task, VictimReason("reclaim", "c", "t", "q", "v"))
            else:
                getattr(statement, step)(task, node)
        check_allocated(session)
    statement.discard()
    assert {name: held(attributes) for name, attributes in queue_attributes(session).items()} == before


def check_allocated(session: Session) -> None:
    """Check that a queue holds the sum over its tasks and those of queues below, and that its share is current."""
    plugin = queues_of(session)
    expected: dict[str, resources.Resource] = {name: {} for name in plugin.queue_attributes.by_name}
    for task in tasks_in(session, HOLDING | TaskStatus.PIPELINED):
        attributes = plugin.queue_attributes.of_task(task)
        assert attributes is not None
        for one in attributes.ancestors:
            resources.add_to(expected[one.name], plugin.measure(task))
    for name, attributes in plugin.queue_attributes.by_name.items():
        assert held(attributes) == {dimension: amount for dimension, amount in expected[name].items() if amount}
        known, attributes.share_known = attributes.share, None
        assert attributes.share == known


@given(tables(tree=True))
def test_hooks_do_not_change_the_amounts(table: dict[str, Any]) -> None:
    session = session_of(table, "capacity", tree=True, arguments={"ancestorReclaimLevel": 1})
    plugin = queues_of(session)
    before = {name: held(attributes) for name, attributes in queue_attributes(session).items()}
    running = tasks_in(session, TaskStatus.RUNNING)
    for preemptor in tasks_in(session, TaskStatus.PENDING):
        queue = session.queue_of(preemptor)
        assert queue is not None
        plugin.preemptive(queue, preemptor)
        plugin.allocatable(queue, preemptor)
        plugin.reclaimable(preemptor, running)
        for victim in running:
            plugin.reclaim_unit(preemptor, (victim,))
    assert {name: held(attributes) for name, attributes in queue_attributes(session).items()} == before


def test_a_placed_pod_that_accepts_two_models_counts_for_the_model_of_its_node() -> None:
    quota = {"volcano.sh/card.quota": '{"A": 8, "B": 8}'}
    session = session_of(
        {
            "nodes": [
                {"name": "n1", "has": "8 gpu", "labels": {"nvidia.com/gpu.product": "A"}},
                {"name": "n2", "has": "8 gpu", "labels": {"nvidia.com/gpu.product": "B"}},
            ],
            "queues": [{"name": "q", "annotations": quota}],
            "jobs": [{"name": "j", "queue": "q", "annotations": {"volcano.sh/card.name": "A|B"}, "tasks": "1 x 3 gpu"}],
        },
        "capacity-card",
    )
    attributes = queue_attributes(session)["q"]
    assert queues_of(session).queue_attributes.amount(task_of(session, "j-0")) == {"A|B": 3000}
    statement = session.statement()
    statement.allocate(task_of(session, "j-0"), session.nodes.by_name["n2"])
    assert held(attributes) == {"B": 3000}
    statement.discard()
    assert held(attributes) == {}


def test_a_whole_share_is_not_rounded_down() -> None:
    queues = [{"name": name, "weight": weight} for name, weight in (("a", 1), ("b", 3), ("c", 7), ("d", 3))]
    jobs = [{"name": row["name"], "queue": row["name"], "tasks": "99 x 1 cpu, 6Gi memory"} for row in queues]
    session = session_of(
        {"nodes": [{"name": "n1", "has": "49 cpu, 84Gi memory"}], "queues": queues, "jobs": jobs}, "proportion"
    )
    deserved = {
        name: attributes.deserved for name, attributes in queue_attributes(session).items() if attributes.deserved
    }
    assert {name: amounts["memory"] for name, amounts in deserved.items()} == {
        "a": 6 * 2**30,
        "b": 18 * 2**30,
        "c": 42 * 2**30,
        "d": 18 * 2**30,
    }


def filled(total: int, queues: list[tuple[int, int, int]]) -> list[Fraction]:
    """Return the exact shares that queues of `(weight, request, guarantee)` deserve in one dimension, by definition."""
    shares, remaining, unmet = [Fraction(0)] * len(queues), Fraction(total), list(range(len(queues)))
    while unmet and (weights := sum(queues[number][0] for number in unmet)):
        before, still = list(shares), []
        for number in unmet:
            weight, request, guarantee = queues[number]
            shares[number] = max(min(shares[number] + remaining * weight / weights, request), Fraction(guarantee))
            if shares[number] not in (before[number], request) and shares[number] < request:
                still.append(number)
        left = max(remaining - sum(shares) + sum(before), Fraction(0))
        if not left or left == remaining:
            break
        remaining, unmet = left, still
    return shares


@given(
    st.integers(1, 2**62),
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 2**61), st.integers(0, 2**60)), min_size=1, max_size=8),
)
def test_shares_by_weight_are_rounded_down_once(total: int, queues: list[tuple[int, int, int]]) -> None:
    rows = []
    for number, (weight, request, guarantee) in enumerate(queues):
        spec = objects.QueueSpec(weight=weight)
        attributes = QueueAttributes(Queue(objects.Queue(objects.ObjectMeta(name=f"q{number}"), spec)))
        attributes.request, attributes.guarantee = {"memory": request}, {"memory": guarantee}
        attributes.limit = {"memory": UNLIMITED}
        rows.append(attributes)
    fill(rows, {"memory": total})
    assert [attributes.deserved["memory"] for attributes in rows] == [
        math.floor(share) for share in filled(total, queues)
    ]
