"""The order of reservations is kept between cycles, and is not when a job in it changes its position."""

from __future__ import annotations

import pytest

from scheduler.decide import decide
from scheduler.plugins.queue.admission_backlog import WaitingReservations
from scheduler.reasons import QueueLimit
from tests.support.core.events import happen, policy_of
from tests.support.core.world import World

POLICY = """
actions: "enqueue, allocate"
tiers: [{plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: capacity}]}]
"""
NOWHERE = {"spec": {"nodeSelector": {"zone": "none"}}}


def full_queue() -> World:
    """Return a queue of 4 cards: 2 are held, 2 reserved by a job that fits nowhere; a job of lower priority waits."""
    world = World(policy_of(POLICY))
    world.load(
        {
            "nodes": [{"name": "n", "has": "16 cpu, 8 gpu"}],
            "queues": [{"name": "q", "capability": "4 gpu"}],
            "jobs": [
                {"name": "runs", "queue": "q", "min": 2, "phase": "Running", "tasks": "2 x 1 gpu running on n"},
                {
                    "name": "ahead",
                    "queue": "q",
                    "priority": 9,
                    "phase": "Inqueue",
                    "tasks": "2 x 1 gpu",
                    "pod": NOWHERE,
                },
                {"name": "waits", "queue": "q", "priority": 5, "phase": "Pending", "tasks": "2 x 1 gpu"},
            ],
        }
    )
    return world


def test_a_reservation_falls_behind_when_its_priority_class_does() -> None:
    world = full_queue()
    assert not world.cycle().phases
    happen(world, {"change": {"PriorityClass p9": {"value": 0}}})
    assert "t/waits" in world.cycle().phases


def test_a_queue_whose_waiting_jobs_are_the_same_is_not_ranked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = full_queue()
    world.carry_out(world.cycle())
    world.load({"jobs": [{"name": "new", "queue": "q", "priority": 3, "phase": "Pending", "tasks": "2 x 1 gpu"}]})
    monkeypatch.setattr(WaitingReservations, "_rank", lambda *_: pytest.fail("it was ranked again"))
    assert isinstance(decide(world.cluster, world.policy, world.now).refusals["t/new"].items[0], QueueLimit)
