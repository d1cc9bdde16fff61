"""The step budget of a cycle, from measured durations; it is passed to the core and recorded."""

from __future__ import annotations

import time

import pytest

from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.framework.tracing import Step
from schedspec.scheduler.framework.work import Budget
from schedspec.scheduler.live.pace import CYCLE, FASTEST, FIRST, JOB, MEASURED_FROM, SLOWEST, Pace
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.policy.model import Policy
from schedspec.scheduler.recording.events import Decided
from tests.scheduler.live.test_loop import looping
from tests.support.fake_server import until


def test_the_first_budget_assumes_the_default_step_duration() -> None:
    assert Pace().budget == Budget(round(CYCLE / FIRST), round(JOB / FIRST))


@pytest.mark.parametrize(
    ("steps", "seconds", "step"),
    [
        (100_000, 0.4, 4e-6),  # slower than assumed: adopted at once
        (1_000_000, 100.0, SLOWEST),
        (MEASURED_FROM - 1, 0.4, FIRST),  # only the fixed cost of a cycle
        (100_000, 0.0, FIRST),  # the last decisions were reused
    ],
)
def test_the_next_budget_follows_from_the_last_measurement(steps: int, seconds: float, step: float) -> None:
    pace = Pace()
    pace.note(steps, seconds)
    assert pace.budget == Budget(round(CYCLE / step), round(JOB / step))


def test_a_faster_machine_raises_the_step_budget_slowly_and_within_bounds() -> None:
    pace = Pace()
    budgets = [pace.budget.cycle]
    for _ in range(60):
        pace.note(1_000_000, 1e-6)
        budgets.append(pace.budget.cycle)
    assert budgets == sorted(budgets)
    assert budgets[1] < 1.5 * budgets[0]
    assert budgets[-1] == pytest.approx(CYCLE / FASTEST, rel=0.01)


async def test_a_cycles_budget_follows_from_earlier_cycles_and_is_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    budgets: list[Budget] = []
    cycle_seconds: list[float] = []

    def core(cluster: Cluster, policy: Policy, now: float, step: Step, *, budget: Budget) -> Decisions:
        budgets.append(budget)
        began = time.thread_time()
        with step("action", "allocate"):
            with step("job", "allocate"):
                work(0.05)
                time.sleep(1.0)  # like waiting for the CPU on a busy machine
            work(0.1)  # the cost of an action without attempts
        cycle_seconds.append(time.thread_time() - began)
        return Decisions(steps=MEASURED_FROM)

    async with looping(monkeypatch, lambda _: Decisions(), core) as loop:
        for number in range(1, 4):
            await until(lambda number=number: loop.cycles.decided == number)
            loop.cycles.request_cycle()
    recorded = [item.budget for item in loop.inputs if isinstance(item, Decided)]
    budgets = [budget for budget in budgets if budget.job > budget.cycle]  # only cycles in the thread
    assert recorded[:3] == budgets[:3]
    assert budgets[0] == Pace().budget
    most, least = MEASURED_FROM / 0.05, MEASURED_FROM / cycle_seconds[0]
    assert CYCLE * least < budgets[1].cycle <= CYCLE * most < budgets[0].cycle


def work(seconds: float) -> None:
    """Use CPU time for a number of seconds."""
    began = time.thread_time()
    while time.thread_time() < began + seconds:
        pass
