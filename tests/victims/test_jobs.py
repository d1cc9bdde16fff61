"""What a job is told when an action looks for victims for it."""

from __future__ import annotations

from tests.core.events import policy_of
from tests.core.world import World

RECLAIM_FIRST = """
actions: "reclaim, allocate"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: capacity}]
"""


def test_a_job_that_needs_no_victims_is_not_said_to_wait() -> None:
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
