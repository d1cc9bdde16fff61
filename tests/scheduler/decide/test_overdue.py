"""No job waits for a victim that does not terminate: other victims are chosen, also after a replayed checkpoint."""

from __future__ import annotations

import msgspec
import pytest

from schedspec.scheduler.decide import decide
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.model.task import TaskStatus
from schedspec.scheduler.recording.events import Overdue, PolicyLoaded, apply_input
from schedspec.scheduler.recording.segments import checkpoint_of
from tests.support.core.events import policy_of
from tests.support.core.world import World

TERMINATING = {"metadata": {"deletionTimestamp": "2056-01-01T00:00:00Z", "deletionGracePeriodSeconds": 10**9}}


@pytest.fixture
def world() -> World:
    """Return a world whose preemptor waits for a victim on one of two nodes, each with one pod of lower priority."""
    world = World(policy_of("plain-preempt"))
    jobs = [{"name": f"low{n}", "tasks": f"1 x 4 cpu running on n{n}", "priority": 1, "min": 0} for n in (1, 2)]
    urgent = {"name": "urgent", "tasks": "1 x 4 cpu", "priority": 9}
    world.load(
        {"nodes": [{"name": "n[1-2]", "has": "4 cpu"}], "queues": [{"name": "default"}], "jobs": [*jobs, urgent]}
    )
    while not (decisions := world.cycle()).evictions:
        world.carry_out(decisions)
    world.carry_out(decisions, "stay")
    (first,) = (evict.task for evict in decisions.evictions)
    world.change("Pod", first, TERMINATING)
    assert world.cycle().evictions == [], "the capacity is being freed"
    return world


def _terminating(world: World) -> str:
    return next(key for key, task in world.cluster.tasks.items() if task.status is TaskStatus.RELEASING)


def test_another_victim_is_chosen_once_the_first_is_overdue(world: World) -> None:
    first = _terminating(world)
    apply_input(world.cluster, Overdue(first, world.cluster.tasks[first].uid))
    decisions = decide(world.cluster, world.policy, world.now)
    assert [evict.task for evict in decisions.evictions] == [{"t/low1-0": "t/low2-0", "t/low2-0": "t/low1-0"}[first]]


def test_an_overdue_pod_stays_overdue_until_it_is_deleted(world: World) -> None:
    first = _terminating(world)
    cluster = world.cluster
    apply_input(cluster, Overdue(first, cluster.tasks[first].uid))
    for change in ({"metadata": {"labels": {"a": "b"}}}, {"metadata": {"annotations": {"c": "d"}}}, {"status": {}}):
        world.change("Pod", first, change)
        assert cluster.tasks[first].status is TaskStatus.UNKNOWN
    anew = Cluster()
    for given in checkpoint_of(cluster, PolicyLoaded("", "")):
        apply_input(anew, msgspec.convert(given, type(given)))
    assert anew.tasks[first].status is TaskStatus.UNKNOWN
    world.end(first, again=True)
    assert cluster.tasks[first].status is TaskStatus.PENDING


@pytest.mark.parametrize("uid", ["another", ""])
def test_only_a_terminating_pod_with_the_same_uid_becomes_overdue(world: World, uid: str) -> None:
    first = _terminating(world)
    apply_input(world.cluster, Overdue(first, uid))
    assert world.cluster.tasks[first].status is TaskStatus.RELEASING
    running = next(key for key, task in world.cluster.tasks.items() if task.status is TaskStatus.RUNNING)
    apply_input(world.cluster, Overdue(running, world.cluster.tasks[running].uid))
    assert world.cluster.tasks[running].status is TaskStatus.RUNNING
