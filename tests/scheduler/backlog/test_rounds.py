"""Jobs that no change has helped are retried together, even if they were refused at different times."""

from __future__ import annotations

from typing import Any

import pytest

from schedspec.scheduler.backlog.helped import has_due
from schedspec.scheduler.decide import decide
from schedspec.scheduler.framework.work import Budget
from schedspec.scheduler.recording.events import Decided, apply_input
from tests.support.core.events import policy_of
from tests.support.core.world import World

SPREAD = 55
"""Seconds in which the jobs are submitted, one a second."""


def never(number: int, pod: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a gang with a shape unlike all others that waits for room, or for something else that `pod` requires."""
    name, tasks = f"g{number}", f"1 x {50 + number} cpu"
    return {"name": name, "queue": "q", "tasks": tasks, "phase": "Inqueue", "pod": pod or {}}


def full(policy: str = "plain") -> World:
    """Return a world of one node that a job fills."""
    world = World(policy_of(policy))
    job = {"name": "holder", "queue": "q", "tasks": "1 x 190 cpu running on n1"}
    world.load({"nodes": [{"name": "n1", "has": "200 cpu"}], "queues": [{"name": "q"}], "jobs": [job]})
    return world


def steps_of(world: World) -> int:
    """Return the number of steps of a cycle without a limit."""
    steps = decide(world.cluster, world.policy, world.now).steps
    world.cluster.last_cycle = None
    return steps


def wake_ups(world: World, seconds: float) -> int:
    """Return the number of cycles in `seconds` without any event."""
    end, cycles = world.now + seconds, 0
    while True:
        decisions = decide(world.cluster, world.policy, world.now)
        apply_input(world.cluster, Decided(0, world.now, decisions))
        if decisions.wake_at is None or decisions.wake_at > end:
            return cycles
        world.now, cycles = decisions.wake_at, cycles + 1


def test_retries_of_jobs_of_distinct_shapes_share_a_few_cycles_a_minute() -> None:
    world = full()
    for number in range(SPREAD):
        world.load({"jobs": [never(number)]})
        apply_input(world.cluster, Decided(0, world.now, decide(world.cluster, world.policy, world.now)))
        world.now += 1.0
    assert wake_ups(world, 600) <= 7 * 10


@pytest.mark.parametrize("offset", [0.0, 3.3, 9.99])
def test_a_job_is_retried_60_to_70_seconds_after_its_refusal(offset: float) -> None:
    world = full()
    world.now += offset
    world.load({"jobs": [never(0)]})
    decisions = decide(world.cluster, world.policy, world.now)
    assert decisions.wake_at is not None
    assert 60 <= decisions.wake_at - world.now <= 70


def test_retries_by_time_alone_become_rarer_until_the_refusal_changes() -> None:
    world = full()
    world.load({"jobs": [never(0)]})
    assert wake_ups(world, 3_600) <= 8
    world.load({"nodes": [{"name": "n2", "has": "8 cpu"}]})  # another refusal
    decisions = decide(world.cluster, world.policy, world.now)
    assert decisions.wake_at is not None
    assert 60 <= decisions.wake_at - world.now <= 70


def test_a_job_that_fits_nowhere_is_retried_by_time_alone_four_times_an_hour() -> None:
    world = full()
    world.load({"jobs": [never(0, {"spec": {"nodeSelector": {"shape": "none"}}})]})
    assert wake_ups(world, 3_600) <= 4


def test_retries_become_rarer_even_if_each_cycle_is_cut() -> None:
    world = full("capacity")
    world.load({"jobs": [never(number) for number in range(SPREAD)]})
    budget = Budget(cycle=steps_of(world) // 3)
    began, retries = world.now, []
    while world.now < began + 3_600:
        decisions = decide(world.cluster, world.policy, world.now, budget=budget)
        apply_input(world.cluster, Decided(0, world.now, decisions))
        if not (decisions.cut or has_due(world.cluster, world.now)):
            assert decisions.wake_at is not None
            retries.append(decisions.wake_at - world.now)
            world.now = decisions.wake_at
    assert len(retries) <= 8
    assert retries == sorted(retries)


def test_the_end_of_a_backoff_starts_a_cycle_only_if_a_change_could_help_the_job() -> None:
    world = World(policy_of("plain"))
    world.load({"nodes": [{"name": "n1", "has": "8 cpu"}], "queues": [{"name": "q"}], "jobs": [never(0)]})
    budget = Budget(cycle=2 * steps_of(world))
    decisions = decide(world.cluster, world.policy, world.now, budget=budget)
    apply_input(world.cluster, Decided(0, world.now, decisions))
    [waiting] = decisions.memory.waiting.values()
    assert decisions.wake_at == waiting.retry_at > waiting.not_before > world.now
    world.load({"nodes": [{"name": "n2", "has": "8 cpu"}]})
    assert decide(world.cluster, world.policy, world.now, budget=budget).wake_at == waiting.not_before


def test_the_backoff_after_a_short_cycle_depends_on_the_budget_of_a_full_cycle() -> None:
    world = World(policy_of("plain"))
    world.load({"nodes": [{"name": "n1", "has": "8 cpu"}], "queues": [{"name": "q"}], "jobs": [never(0)]})
    steps = steps_of(world)
    for full_cycle, has_backoff in ((0, True), (100 * steps, False)):
        world.cluster.last_cycle = None
        decisions = decide(world.cluster, world.policy, world.now, budget=Budget(cycle=2 * steps, full=full_cycle))
        [waiting] = decisions.memory.waiting.values()
        assert (waiting.not_before > world.now) is has_backoff
