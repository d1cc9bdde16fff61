"""Reasons and nodes of jobs for which an action searches victims."""

from __future__ import annotations

import pytest

from schedspec.scheduler.reasons import NoVictims, render_denial, render_refusal
from tests.support.core.events import policy_of
from tests.support.core.world import World

RECLAIM_FIRST = """
actions: "reclaim, allocate"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: capacity}]
"""


def test_a_job_that_needs_no_victims_is_bound_without_a_reason() -> None:
    world = World(policy_of(RECLAIM_FIRST))
    world.load(
        {
            "nodes": [{"name": "n1", "has": "4 cpu"}],
            "queues": [{"name": "a", "deserved": "3 cpu"}, {"name": "b", "deserved": "1 cpu"}],
            "jobs": [
                {"name": "old", "queue": "b", "min": 0, "tasks": "2 x 1 cpu running on n1"},
                {"name": "new", "queue": "a", "tasks": "2 x 1 cpu", "phase": "Inqueue"},
            ],
        }
    )

    decisions = world.cycle()

    assert [bind.task for bind in decisions.binds] == ["t/new-0", "t/new-1"]
    assert decisions.refusals == {}


def test_protection_of_a_jobs_own_tasks_is_no_reason_for_its_waiting() -> None:
    policy = """
actions: "preempt"
tiers:
- plugins: [{name: priority}, {name: gang, enableJobStarving: false}, {name: predicates}]
"""
    world = World(policy_of(policy))
    job = {"name": "job", "queue": "a", "min": 1, "tasks": ["2 x 1 cpu running on n1", "1 x 1 cpu"]}
    world.load({"nodes": [{"name": "n1", "has": "2 cpu"}], "queues": [{"name": "a"}], "jobs": [job]})

    assert render_refusal(world.cycle().refusals["t/job"]) == "preempt: no candidates"


def test_a_reason_that_equal_jobs_share_names_the_own_tasks_of_each_job() -> None:
    world = World(policy_of("plain-preempt"))
    row = {"queue": "q", "priority": 1}
    running = {**row, "name": "old", "tasks": "2 x 1 cpu running on n1"}
    waiting = [{**row, "name": name, "tasks": "2 x 1 cpu", "phase": "Inqueue"} for name in ("one", "two")]
    world.load({"nodes": [{"name": "n1", "has": "2 cpu"}], "queues": [{"name": "q"}], "jobs": [running, *waiting]})
    refusals = world.cycle().refusals
    named = {job: [why.task for why in refusals[job].items if isinstance(why, NoVictims)] for job in refusals}
    assert named == {"t/one": ["t/one-0"], "t/two": ["t/two-0"]}


def test_a_job_that_lacks_only_quota_is_placed_on_a_node_with_free_room() -> None:
    """The victim of the lowest priority frees too little quota, and its room is not needed: it is reprieved."""
    policy = """
actions: "allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: predicates}, {name: capacity}, {name: binpack}]
"""
    world = World(policy_of(policy))
    world.load(
        {
            "nodes": [{"name": "n1", "has": "5 cpu"}, {"name": "n2", "has": "5 cpu"}],
            "queues": [{"name": "team", "capability": "6 cpu"}],
            "jobs": [
                {"name": "base", "queue": "team", "priority": 9, "tasks": "1 x 3 cpu running on n1"},
                {"name": "small", "queue": "team", "priority": 1, "tasks": "1 x 1 cpu running on n1"},
                {"name": "large", "queue": "team", "priority": 2, "tasks": "1 x 2 cpu running on n2"},
                {"name": "fixes", "queue": "team", "priority": 9, "tasks": "1 x 2 cpu", "phase": "Inqueue"},
            ],
        }
    )
    assert [eviction.task for eviction in world.cycle().evictions] == ["t/large-0"]


@pytest.mark.parametrize("large", [8, 9], ids=["two cpus free", "three cpus free"])
def test_a_gang_that_lacks_only_quota_does_not_use_the_room_of_its_first_victim(large: int) -> None:
    """The small victim is evicted first and frees too little quota; after the large gang it is reprieved."""
    policy = """
actions: "allocate, preempt"
tiers:
- plugins: [{name: gang}]
- plugins: [{name: priority}, {name: predicates}, {name: capacity}, {name: nodeorder}]
"""
    world = World(policy_of(policy))
    world.load(
        {
            "nodes": [{"name": "n1", "has": "4 cpu"}, {"name": "n2", "has": f"{large} cpu"}],
            "queues": [{"name": "team", "capability": "8 cpu"}],
            "jobs": [
                {"name": "small", "queue": "team", "phase": "Running", "tasks": "1 x 1 cpu running on n1"},
                {"name": "large", "queue": "team", "phase": "Running", "tasks": "2 x 3 cpu running on n2"},
                {"name": "gang", "queue": "team", "priority": 9, "tasks": "2 x 2 cpu", "phase": "Inqueue"},
            ],
        }
    )
    assert {eviction.job for eviction in world.cycle().evictions} == {"t/large"}


@pytest.mark.parametrize(("nodes", "needed"), [(1, [1]), (2, [])], ids=["on the victims' node", "on another node"])
def test_the_pod_that_a_gang_needs_is_counted_once_beside_its_evicted_pods(nodes: int, needed: list[int]) -> None:
    """The other pods of the gang are spare: they are not needed, because enough pods were evicted."""
    world = World(policy_of(RECLAIM_FIRST))
    world.load(
        {
            "nodes": [{"name": f"n{i}", "has": f"{12 // nodes} gpu"} for i in range(nodes)],
            "queues": [{"name": "lender", "deserved": "8 gpu"}, {"name": "owner", "deserved": "4 gpu"}],
            "jobs": [
                {
                    "name": "train",
                    "queue": "lender",
                    "min": 1,
                    "tasks": [f"{12 // nodes} x 1 gpu running on n{i}" for i in range(nodes)],
                },
                {"name": "build", "queue": "owner", "tasks": "4 x 1 gpu", "phase": "Inqueue"},
            ],
        }
    )
    by_node = {world.cluster.tasks[evict.task].node: evict.reason.spared for evict in world.cycle().evictions}
    seen = [(render_denial(one.why), one.count) for spared in by_node.values() for one in spared]
    assert [
        count for text, count in seen if text.startswith("needed by gang t/train, which needs 1 of its 8")
    ] == needed
    assert {text for text, _ in seen if not text.startswith("needed")} == {"not needed"}
