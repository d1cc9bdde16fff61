"""No field of a pod costs a cycle more than the maximum of one job, whatever a tenant writes into the field.

The tests count the executed lines of the core, and compare them with the steps that the cycle reports and with the size
of the specs. A loop over a tenant's data that spends no steps, or that multiplies a spec by the nodes or by itself,
executes more lines than these two allow. Only the property about the limit of the API server uses a clock: the CPU time
of a cycle.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from schedspec.scheduler.inputs import Decided, apply_input
from schedspec.scheduler.live.pace import CYCLE, JOB, Pace
from schedspec.scheduler.live.stopwatch import Stopwatch
from schedspec.scheduler.model.task import TaskStatus
from tests.scheduler.framework.specs import (
    API_LIMIT,
    FIELDS,
    check,
    merged,
    world_of,
)


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.__name__.strip("_"))
def test_the_cost_of_each_field_is_bounded_by_its_steps_and_length(field: Callable[[int], dict[str, Any]]) -> None:
    check([field(600)] * 3, 3 * 600)


@given(st.lists(st.lists(st.tuples(st.sampled_from(FIELDS), st.integers(1, 400)), min_size=1, max_size=3), max_size=3))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_cost_of_combined_fields_is_bounded_by_their_steps_and_lengths(
    pods: list[list[tuple[Callable[[int], dict[str, Any]], int]]],
) -> None:
    specs = [merged([field(n) for field, n in pod]) for pod in pods]
    check(specs, sum(n for pod in pods for _, n in pod))


SIZES = st.sampled_from([100, 2_000, 12_000, 25_000])


@given(st.lists(st.lists(st.tuples(st.sampled_from(FIELDS), SIZES), min_size=1, max_size=3), min_size=1, max_size=3))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_no_cycle_takes_longer_than_its_budget_up_to_the_limit_of_the_api_server(
    pods: list[list[tuple[Callable[[int], dict[str, Any]], int]]],
) -> None:
    """The time is CPU time of this thread; the budget follows the pace that the live scheduler would measure."""
    specs = [merged([field(n) for field, n in pod]) for pod in pods]
    assume(all(len(json.dumps(spec)) < API_LIMIT for spec in specs))
    world, pace = world_of(specs), Pace()
    world.load({"jobs": [{"name": "good", "queue": "q", "tasks": "1 x 1 cpu", "phase": "Inqueue"}]})
    for number in range(3):
        watch, budget, began = Stopwatch(), pace.budget, time.thread_time()
        decisions = world.core.decide(world.policy, world.now, watch.step, budget=budget)
        took = time.thread_time() - began
        assert took <= CYCLE + JOB * len(specs)
        pace.note(decisions.steps, watch.jobs)
        assert number or "t/good" in {bind.job for bind in decisions.binds} or decisions.cut
        apply_input(world.core, Decided(0, world.now, decisions, budget))
        world.carry_out(decisions)
        world.now += 1.0
    assert not world.cluster.jobs["t/good"].by_status.get(TaskStatus.PENDING)
