"""The order of reservations is kept between cycles, and a job that changes is ranked again."""

from __future__ import annotations

import random
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from schedspec.scheduler.model.job import Job
from schedspec.scheduler.plugins.queue.admission_backlog import KeptRanks
from schedspec.scheduler.policy.tiers import Hooks
from tests.support.core.events import happen, policy_of
from tests.support.core.world import World

POLICY = """
actions: "enqueue, allocate"
tiers: [{plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: capacity}]}]
"""
ELSEWHERE = {"spec": {"nodeSelector": {"zone": "full"}}}


def full_queue() -> World:
    """Return a queue of 4 cards: 2 are held, 2 reserved by a job whose node is full; a job of lower priority waits."""
    world = World(policy_of(POLICY))
    world.load(
        {
            "nodes": [
                {"name": "n", "has": "16 cpu, 8 gpu"},
                {"name": "m", "has": "16 cpu, 2 gpu", "labels": {"zone": "full"}},
            ],
            "queues": [{"name": "q", "capability": "4 gpu"}, {"name": "other"}],
            "jobs": [
                {"name": "full", "queue": "other", "phase": "Running", "tasks": "2 x 1 gpu running on m"},
                {"name": "runs", "queue": "q", "min": 2, "phase": "Running", "tasks": "2 x 1 gpu running on n"},
                {
                    "name": "ahead",
                    "queue": "q",
                    "priority": 9,
                    "phase": "Inqueue",
                    "tasks": "2 x 1 gpu",
                    "pod": ELSEWHERE,
                },
                {"name": "waits", "queue": "q", "priority": 5, "phase": "Pending", "tasks": "2 x 1 gpu"},
            ],
        }
    )
    return world


def test_a_reservation_is_ranked_lower_after_its_priority_class_is_lowered() -> None:
    world = full_queue()
    assert not world.cycle().phases
    happen(world, {"change": {"PriorityClass p9": {"value": 0}}})
    assert "t/waits" in world.cycle().phases


class RecordedHooks:
    """Rank jobs by priority, and record the ranked jobs."""

    def __init__(self) -> None:
        self.ranked: list[str] = []

    def job_keys(self, jobs: list[Job]) -> list[tuple[Any, ...]]:
        self.ranked += [job.key for job in jobs]
        return [(-job.priority, job.key) for job in jobs]


@given(rng=st.randoms(use_true_random=False))
def test_only_changed_jobs_are_ranked_again_and_the_order_is_complete(rng: random.Random) -> None:
    ranks, jobs, reserved, hooks = KeptRanks(), dict[str, Job](), dict[str, dict[str, int]](), RecordedHooks()
    for _ in range(12):
        changed = {f"j{rng.randrange(9)}" for _ in range(rng.randrange(4))}
        removed = {key for key in changed & reserved.keys() if rng.random() < 0.5}
        for key in sorted(changed):
            reserved.pop(key, None)
            if key not in removed:
                jobs[key] = Job(key)
                jobs[key].priority, reserved[key] = rng.randrange(3), {"cpu": rng.randrange(3)}
        hooks.ranked.clear()
        found = ranks.ranked(reserved, jobs, cast("Hooks", hooks))
        assert set(hooks.ranked) == changed - removed
        assert found.keys == sorted((-jobs[key].priority, key) for key in reserved)
        assert [id(amount) for amount in found.reserved] == [id(reserved[key]) for _, key in found.keys]
