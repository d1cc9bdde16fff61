"""What a cycle may cost: from how long steps took, given to the core and recorded."""

from __future__ import annotations

import time

import pytest

from scheduler.framework.decisions import Decisions
from scheduler.framework.tracing import Step
from scheduler.framework.work import Budget
from scheduler.live.pace import CYCLE, FASTEST, FIRST, JOB, SLOWEST, TELLING, Pace
from scheduler.model.cluster import Cluster
from scheduler.policy.model import Policy
from scheduler.recording.events import Decided
from tests.scheduler.live.test_loop import looping
from tests.support.fake_server import run, until


def test_the_first_cycle_is_given_what_a_step_is_taken_for_unmeasured() -> None:
    assert Pace().budget == Budget(round(CYCLE / FIRST), round(JOB / FIRST))


@pytest.mark.parametrize(
    ("steps", "seconds", "step"),
    [
        (100_000, 0.4, 4e-6),  # slower than thought: believed at once
        (1_000_000, 100.0, SLOWEST),
        (TELLING - 1, 0.4, FIRST),  # what every cycle costs
        (100_000, 0.0, FIRST),  # the last decisions stood
    ],
)
def test_the_next_cycle_is_given_what_the_last_one_shows(steps: int, seconds: float, step: float) -> None:
    pace = Pace()
    pace.note(steps, seconds)
    assert pace.budget == Budget(round(CYCLE / step), round(JOB / step))


def test_a_machine_that_is_faster_than_thought_is_believed_slowly_and_never_without_bounds() -> None:
    pace = Pace()
    budgets = [pace.budget.cycle]
    for _ in range(60):
        pace.note(1_000_000, 1e-6)
        budgets.append(pace.budget.cycle)
    assert budgets == sorted(budgets)
    assert budgets[1] < 1.5 * budgets[0]
    assert budgets[-1] == pytest.approx(CYCLE / FASTEST, rel=0.01)


def test_a_cycle_decides_within_what_the_ones_before_it_took_and_its_record_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[Budget] = []

    def core(cluster: Cluster, policy: Policy, now: float, step: Step, *, budget: Budget) -> Decisions:
        given.append(budget)
        with step("action", "allocate"):
            with step("job", "allocate"):
                time.sleep(0.05)
            time.sleep(0.1)  # what an action costs where it tries nobody
        return Decisions(steps=TELLING)

    async def test() -> None:
        async with looping(monkeypatch, lambda _: Decisions(), core) as loop:
            for number in range(1, 4):
                await until(lambda number=number: loop.cycles.decided == number)
                loop.cycles.want()
        recorded = [item.budget for item in loop.inputs if isinstance(item, Decided)]
        assert recorded[:3] == given[:3]
        assert given[0] == Pace().budget
        assert CYCLE / 0.15 * TELLING < given[1].cycle <= CYCLE / 0.05 * TELLING < given[0].cycle

    run(test)
