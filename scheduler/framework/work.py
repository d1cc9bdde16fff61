"""The budget of a cycle and its jobs, in steps: the core has no clock.

The one rule: steps depend on the state and the policy alone, not on caches or on the machine. A replayed cycle is
therefore cut in the same place. A step takes about a microsecond of one core; the shell measures the duration and sets
the budget (`scheduler.live.pace`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec


class Budget(msgspec.Struct, frozen=True):
    """Maximum steps of all jobs of a cycle (`cycle`), and of one job in one action (`job`); 0 means no limit."""

    cycle: int = 0
    job: int = 0
    retry_after: float = 60.0
    """Seconds after which a waiting job is tried again even if no change could help it."""
    full: int = 0
    """Steps of a full cycle, if `cycle` is only a part of these. The cost of a job is compared with a full cycle."""


UNLIMITED = Budget()


class CapReached(Exception):  # noqa: N818 - not an error: the job's changes are undone, and it is tried last
    """A job has used the maximum steps of one job. `field`: the field of the pods' spec being evaluated, if any."""

    def __init__(self, field: str = "") -> None:
        super().__init__(field)
        self.field = field


class Work:
    """The steps of one cycle.

    `cut` are the actions that left jobs for the next cycle.
    """

    def __init__(self, budget: Budget = UNLIMITED, spent: int = 0) -> None:
        self.budget = budget
        self.spent = spent
        self.cut: list[str] = []
        self._cap = 0
        self._field = ""
        self._spent_for_others = 0
        self._limit = 0
        self._has_begun = False

    def spend(self, steps: int, field: str = "") -> None:
        """Count steps before they are executed; `field` is the field of the pod's spec that causes them, if any.

        Raises:
            CapReached: the job's attempt would exceed the maximum. These steps are not executed, and therefore not
                counted: otherwise steps would seem faster than they are.
        """
        if field:
            self._field = field
        if self._cap and self.spent + steps > self._cap:
            self._cap = 0
            raise CapReached(self._field)
        self.spent += steps

    @contextmanager
    def for_others(self, field: str) -> Iterator[None]:
        """Count the steps within this context against a second allowance, which is as large as that of the job.

        Pods of other jobs cause these steps: they must not use up the allowance of the job.

        Raises:
            CapReached: the second allowance is used up. The error names `field`, which is not a field of this job.
        """
        cap, own, before = self._cap, self._field, self.spent
        if cap:
            self._cap = before + self.budget.job - self._spent_for_others
        try:
            yield
        except CapReached as reached:
            raise CapReached(field) from reached
        self._field = own
        if cap:
            self._spent_for_others += self.spent - before
            self._cap = cap + self.spent - before

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Count none of the steps within this context; the caller bounds them."""
        spent, cap, field = self.spent, self._cap, self._field
        self._cap = 0
        try:
            yield
        finally:
            self.spent, self._cap, self._field = spent, cap, field

    @contextmanager
    def action(self, name: str, left: int) -> Iterator[None]:
        """Run one of the `left` remaining actions.

        Each action may use an equal part of the remaining budget, so that no action starves.
        """
        cycle = self.budget.cycle
        self._limit = self.spent + max(cycle - self.spent, 0) // left if cycle else 0
        self._is_cut = False
        yield
        if self._is_cut:
            self.cut.append(name)

    def may_go_on(self) -> bool:
        """Whether the budget allows another job; always for the first job of a cycle. If not, cut the action."""
        if self._limit and self.spent >= self._limit and self._has_begun:
            self._is_cut = True
            return False
        self._has_begun = True
        return True

    def begin_attempt(self, steps: int) -> None:
        """Count the cost of an attempt, and limit the steps until `end_attempt` to the maximum of one job."""
        self.spent += steps
        self._field = ""
        self._spent_for_others = 0
        self._cap = self.spent + self.budget.job if self.budget.job else 0

    def end_attempt(self) -> None:
        """End the attempt: further steps cannot undo the job's result."""
        self._cap = 0
