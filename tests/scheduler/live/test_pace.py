"""The step budget of a cycle, from measured durations; it is passed to the core and recorded."""

from __future__ import annotations

import time

import pytest

from scheduler.framework.decisions import Decisions
from scheduler.framework.tracing import Step
from scheduler.framework.work import Budget
from scheduler.live.pace import CYCLE, FASTEST, FIRST, JOB, MEASURED_FROM, SLOWEST, Pace
from scheduler.model.cluster import Cluster
from scheduler.policy.model import Policy
from scheduler.recording.events import Decided
from tests.scheduler.live.test_loop import looping
from tests.support.fake_server import until


def test_the_first_cycle_is_given_what_a_step_is_taken_for_unmeasured() -> None:
    assert Pace().budget == Budget(round(CYCLE / FIRST), round(JOB / FIRST))


@pytest.mark.parametrize(
    ("steps", "seconds", "step"),
    [
        (100_000, 0.4, 4e-6),  # slower than thought: believed at once
        (1_000_000, 100.0, SLOWEST),
        (MEASURED_FROM - 1, 0.4, FIRST),  # what every cycle costs
        (100_000, 0.0, FIRST),  # the last decisions stood
    ],
)
def test_the_next_cycle_is_given_what_the_last_one_shows(steps: int, seconds: float, step: float) -> None:
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


async def test_a_cycle_decides_within_what_the_ones_before_it_took_and_its_record_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[Budget] = []
    whole: list[float] = []

    def core(cluster: Cluster, policy: Policy, now: float, step: Step, *, budget: Budget) -> Decisions:
        given.append(budget)
        began = time.thread_time()
        with step("action", "allocate"):
            with step("job", "allocate"):
                work(0.05)
                time.sleep(1.0)  # as on a busy machine that runs other processes
            work(0.1)  # what an action costs where it tries nobody
        whole.append(time.thread_time() - began)
        return Decisions(steps=MEASURED_FROM)

    async with looping(monkeypatch, lambda _: Decisions(), core) as loop:
        for number in range(1, 4):
            await until(lambda number=number: loop.cycles.decided == number)
            loop.cycles.want()
    recorded = [item.budget for item in loop.inputs if isinstance(item, Decided)]
    given = [budget for budget in given if budget.job > budget.cycle]  # without attempts on the event loop
    assert recorded[:3] == given[:3]
    assert given[0] == Pace().budget
    assert CYCLE / whole[0] * MEASURED_FROM < given[1].cycle <= CYCLE / 0.05 * MEASURED_FROM < given[0].cycle


def work(seconds: float) -> None:
    """Use so much CPU time."""
    began = time.thread_time()
    while time.thread_time() < began + seconds:
        pass
