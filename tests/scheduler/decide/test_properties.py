"""Properties of allocation on random clusters. Every cycle of `tests.support.core.world.World` also asserts that the
cycle does not change the state, and that a state built from scratch leads to the same decisions.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.scheduler.decide import decide
from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.framework.session import Session
from schedspec.scheduler.framework.statement import Statement
from schedspec.scheduler.model.task import TaskStatus
from schedspec.scheduler.plugins import PLUGINS
from tests.support.core import random_clusters
from tests.support.core.events import happen, policy_of
from tests.support.core.world import World


def world_of(table: dict[str, Any]) -> World:
    world = World(policy_of(table["policy"]))
    world.load(table)
    return world


@given(random_clusters.tables(), st.lists(st.lists(random_clusters.events(), max_size=3), max_size=4))
def test_after_any_events_decisions_equal_those_on_a_state_built_from_scratch(
    table: dict[str, Any], story: list[list[dict[str, Any]]]
) -> None:
    world = world_of(table)
    world.carry_out(world.cycle())
    for events in story:
        for event in events:
            happen(world, event)
        world.carry_out(world.cycle())


@given(random_clusters.tables(), st.randoms(use_true_random=False))
def test_the_order_in_which_objects_arrive_changes_no_decision(table: dict[str, Any], shuffler: random.Random) -> None:
    world = world_of(table)
    order = list(world.objects)
    shuffler.shuffle(order)
    assert decide(world.fresh(order), world.policy, world.now) == world.cycle()


@given(random_clusters.tables(constrained=False, policies=("plain", "packed")))
def test_no_job_waits_that_fits(table: dict[str, Any]) -> None:
    world = world_of(table)
    decisions = world.cycle()
    idle = idle_after(world, decisions)
    bound = Counter(bind.job for bind in decisions.binds)
    for key, job in world.cluster.jobs.items():
        task = next(iter(job.tasks.values()))
        waiting = len(job.tasks) - bound[key]
        missing = max(job.min_available - bound[key], 1)
        if not waiting:
            continue
        slots = sum(
            min((math.floor(free.get(n, 0) / v) for n, v in task.request.items() if v), default=0)
            for node, free in idle.items()
            if is_open(world, node)
        )
        assert slots < missing, f"{key} waits although {slots} tasks fit and only {missing} are missing"


def idle_after(world: World, decisions: Decisions) -> dict[str, dict[str, int]]:
    idle = {name: dict(info.allocatable) for name, info in world.cluster.nodes.by_name.items()}
    for bind in decisions.binds:
        for name, amount in world.cluster.tasks[bind.task].request.items():
            idle[bind.node][name] = idle[bind.node].get(name, 0) - amount
    return idle


def is_open(world: World, node: str) -> bool:
    spec = world.cluster.nodes.by_name[node].object.spec
    return not spec.unschedulable and not any(taint.effect == "NoSchedule" for taint in spec.taints or ())


@given(random_clusters.tables(constrained=False), st.randoms(use_true_random=False))
def test_renaming_equal_nodes_changes_at_most_which_node_is_chosen(
    table: dict[str, Any], shuffler: random.Random
) -> None:
    nodes = [{**table["nodes"][0], "name": f"n{i}"} for i in range(len(table["nodes"]))]
    names = [f"m{i}" for i in range(len(nodes))]
    shuffler.shuffle(names)
    renamed = [{**node, "name": name} for node, name in zip(nodes, names, strict=True)]
    one, other = (world_of({**table, "nodes": variant}).cycle() for variant in (nodes, renamed))
    assert [bind.task for bind in one.binds] == [bind.task for bind in other.binds]
    assert one.phases == other.phases


SCORES = (
    "{name: nodeorder}",
    "{name: nodeorder, arguments: {mostrequested.weight: 3, leastrequested.weight: 0}}",
    "{name: nodeorder, arguments: {balancedresource.weight: 10}}",
    "{name: binpack}",
    "{name: binpack, arguments: {binpack.memory: 5}}, {name: nodeorder}",
    "{name: priority}",
)


@given(
    random_clusters.nodes(),
    random_clusters.jobs("job0", ["q0"]),
    st.integers(1, 9),
    st.sampled_from(SCORES),
    st.booleans(),
)
def test_a_plan_for_equal_tasks_equals_their_placement_one_by_one(
    nodes: list[dict[str, Any]], job: dict[str, Any], count: int, scores: str, future: bool
) -> None:
    request = job["tasks"].split(" x ")[1]
    table = {
        "policy": f'actions: "allocate"\ntiers: [{{plugins: [{{name: predicates}}, {scores}]}}]',
        "nodes": nodes,
        "queues": [{"name": "q0"}],
        "jobs": [
            {"name": "old", "tasks": f"1 x 1 cpu leaving on {nodes[0]['name']}", "queue": "q0"},
            {**job, "tasks": f"{count} x {request}", "min": 1},
        ],
    }
    world = world_of(table)
    session = Session(world.cluster, world.policy, world.now, PLUGINS)
    tasks = sorted(world.cluster.jobs["t/job0"].tasks.values(), key=session.hooks.task_key)
    plan = [node.name for node in session.placement.plan(tasks[0], count, future=future)]
    statement, one_by_one = session.statement(), []
    for task in tasks:
        node = session.placement.best(task, future=future)
        if node is None:
            break
        (statement.pipeline if future else statement.allocate)(task, node)
        one_by_one.append(node.name)
    if session.placement.has_inter_pod_constraints(tasks[0]):
        assert plan == one_by_one[:1]
    else:
        assert plan == one_by_one
    statement.discard()
    session.close()


@given(random_clusters.nodes(), random_clusters.jobs("job0", ["q0"], constrained=False), st.integers(1, 9))
def test_the_number_of_slots_equals_the_number_of_tasks_that_can_be_placed(
    nodes: list[dict[str, Any]], job: dict[str, Any], wanted: int
) -> None:
    table = {
        "policy": random_clusters.POLICIES["plain"],
        "nodes": nodes,
        "queues": [{"name": "q0"}],
        "jobs": [{**job, "tasks": f"40 x {job['tasks'].split(' x ')[1]}"}],
    }
    world = world_of(table)
    session = Session(world.cluster, world.policy, world.now, PLUGINS)
    task = world.cluster.tasks["t/job0-0"]
    slots, placed = session.placement.slots(task, wanted), len(session.placement.plan(task, 40))
    assert slots == placed or wanted <= slots <= placed
    session.close()


def test_a_cycle_without_changes_is_not_decided_again(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {
        "policy": random_clusters.POLICIES["packed"],
        "nodes": [{"name": "n0", "has": "1 cpu"}],
        "queues": [{"name": "q0"}],
        "jobs": [{"name": "job0", "queue": "q0", "tasks": "2 x 1 cpu"}],
    }
    world = world_of(table)
    first = world.cycle()
    monkeypatch.setattr("schedspec.scheduler.decide.Session", None)
    assert decide(world.cluster, world.policy, world.now + 1) is first
    with pytest.raises(TypeError):  # the deadline of sla has passed, so the cycle is decided again
        decide(world.cluster, world.policy, world.now + 1300)


def test_the_state_is_unchanged_even_if_a_cycle_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {
        "policy": random_clusters.POLICIES["plain"],
        "nodes": [{"name": "n0", "has": "4 cpu"}],
        "queues": [{"name": "q0"}],
        "jobs": [
            {"name": "job0", "queue": "q0", "tasks": "2 x 1 cpu"},
            {"name": "job1", "queue": "q0", "tasks": "1 x 1 cpu"},
        ],
    }
    world = world_of(table)
    monkeypatch.setattr(Statement, "commit", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        decide(world.cluster, world.policy, world.now)
    assert all(task.status is TaskStatus.PENDING for task in world.cluster.tasks.values())
    assert not world.cluster.nodes.used.any()
