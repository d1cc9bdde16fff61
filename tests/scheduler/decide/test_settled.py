"""Every action skips settled jobs (`Job.needs_nothing`); this never changes a decision."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.scheduler.decide import decide
from schedspec.scheduler.model.job import Job
from tests.support.core import random_clusters
from tests.support.core import random_tables as crowded
from tests.support.core.events import policy_of
from tests.support.core.world import World, without_bookkeeping


@given(st.one_of(random_clusters.tables(), crowded.tables()), st.sampled_from(("leave", "return", "stay")))
def test_skipping_settled_jobs_changes_no_decision(table: dict[str, Any], victims: str) -> None:
    world = World(policy_of(table["policy"]))
    world.load(table)
    for _ in range(3):
        decisions = world.cycle()
        last, world.cluster.last_cycle = world.cluster.last_cycle, None
        with mock.patch.object(Job, "needs_nothing", new=False):
            assert without_bookkeeping(decide(world.cluster, world.policy, world.now)) == without_bookkeeping(decisions)
        world.cluster.last_cycle = last
        world.carry_out(decisions, victims)


@pytest.mark.parametrize(
    ("tasks", "phase", "settled"),
    [
        ("2 x 1 cpu running on n1", "Running", True),
        ("2 x 1 cpu running on n1", "Inqueue", False),
        ("1 x 1 cpu running on n1", "Running", False),
        (["2 x 1 cpu running on n1", "1 x 1 cpu"], "Running", False),
        ("2 x 1 cpu leaving on n1", "Running", False),
    ],
)
def test_a_job_is_settled_once_all_tasks_are_placed_and_its_phase_is_written(
    tasks: str | list[str], phase: str, settled: bool
) -> None:
    world = World(policy_of("plain"))
    world.load(
        {
            "nodes": [{"name": "n1", "has": "8 cpu"}],
            "queues": [{"name": "q"}],
            "jobs": [{"name": "j", "queue": "q", "min": 2, "tasks": tasks, "phase": phase}],
        }
    )
    assert [job.needs_nothing for job in world.cluster.jobs.values()] == [settled]
