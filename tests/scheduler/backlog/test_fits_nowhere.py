"""Only changes of nodes wake a job that fits no node; changes of pods do not."""

from __future__ import annotations

from typing import Any

import pytest

from schedspec.scheduler.backlog.backlog import backlog_of
from schedspec.scheduler.backlog.helped import has_due
from schedspec.scheduler.backlog.view import BacklogView
from schedspec.scheduler.decide import decide
from schedspec.scheduler.framework.work import Budget
from schedspec.scheduler.recording.events import Decided, apply_input
from tests.support.core.events import policy_of
from tests.support.core.world import World

MANY = 40
POLICY = """
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
"""
LABELLED = {"spec": {"nodeSelector": {"shape": "rare"}}}
POOL = {"spec": {"nodeSelector": {"pool": "small"}}}
NEVER: dict[str, dict[str, Any]] = {
    "label that no node has": {"tasks": "1 x 1 cpu", "pod": LABELLED},
    "more than a node has": {"tasks": "3 x 9 cpu", "min": 2},
    "more than a node of the pool has": {"tasks": "1 x 6 cpu", "pod": POOL},
}
HELPS: dict[str, dict[str, Any]] = {
    "label that no node has": {"name": "n3", "has": "80 cpu", "labels": {"shape": "rare"}},
    "more than a node has": {"name": "n3", "has": "80 cpu"},
    "more than a node of the pool has": {"name": "n3", "has": "80 cpu", "labels": {"pool": "small"}},
}


def cycles(world: World, budget: Budget) -> set[str]:
    """Run cycles until nothing is left to try; return the jobs that got nodes."""
    bound: set[str] = set()
    for _ in range(10 * MANY):
        decisions = decide(world.cluster, world.policy, world.now, budget=budget)
        apply_input(world.cluster, Decided(0, world.now, decisions, budget))
        world.carry_out(decisions)
        bound.update(bind.job for bind in decisions.binds)
        world.now += 0.01
        if not (decisions.cut or decisions.phases or decisions.binds or has_due(world.cluster, world.now)):
            return bound
    raise AssertionError("some job is still tried after the last cycle")


def loaded(never: dict[str, Any], budget: Budget) -> World:
    world = World(policy_of(POLICY))
    world.load(
        {
            "nodes": [{"name": "n1", "has": "8 cpu"}, {"name": "n2", "has": "4 cpu", "labels": {"pool": "small"}}],
            "queues": [{"name": "q"}, {"name": "other"}],
            "jobs": [
                {"name": "tiny", "queue": "q", "tasks": "2 x 100m cpu", "min": 1},
                *({"name": f"never{i}", "queue": "q", "phase": "Inqueue", **never} for i in range(MANY)),
            ],
        }
    )
    cycles(world, budget)
    return world


def tried(world: World) -> set[str]:
    """Return the jobs made from `NEVER` that the next cycle tries."""
    return {key for key in BacklogView(world.cluster, world.policy, world.now).awake if "never" in key}


@pytest.mark.parametrize("cycle", [0, 3_000], ids=["whole cycles", "cut cycles"])
@pytest.mark.parametrize("kind", NEVER)
def test_new_and_deleted_pods_wake_no_job_that_fits_nowhere(kind: str, cycle: int) -> None:
    world = loaded(NEVER[kind], Budget(cycle=cycle))
    assert len(backlog_of(world.cluster).entries) == MANY
    world.load({"jobs": [{"name": "small", "queue": "q", "tasks": "1 x 100m cpu", "phase": "Inqueue"}]})
    assert not tried(world)
    assert cycles(world, Budget(cycle=cycle)) == {"t/small"}
    assert not tried(world)
    world.remove("Pod", "t/tiny-0")
    assert not tried(world)
    world.remove("PodGroup", "t/small")
    assert not tried(world)


@pytest.mark.parametrize("kind", NEVER)
def test_a_node_that_could_help_wakes_all_jobs_that_fit_nowhere(kind: str) -> None:
    world = loaded(NEVER[kind], Budget())
    world.load({"nodes": [HELPS[kind]]})
    assert len(tried(world)) == MANY
    assert cycles(world, Budget())


def test_deleted_pods_wake_a_job_that_fits_an_empty_node() -> None:
    world = loaded({"tasks": "1 x 8 cpu"}, Budget())
    for pod in world.pods_of("tiny"):
        world.remove("Pod", pod)
    assert cycles(world, Budget()) == {"t/never0"}
