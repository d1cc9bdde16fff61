"""How much work a cycle and its jobs may cost, in steps: the core has no clock.

The one rule: steps follow from the state and the policy alone, never from what is kept between cycles or from the
machine, so that a cycle that is decided again is cut in the same place. A step is about a microsecond of one core; the
shell measures what it takes and sets the numbers (:mod:`scheduler.live.pace`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec


class Budget(msgspec.Struct, frozen=True):
    """Steps that the jobs of a cycle may cost, and a single job in one action; 0 is no limit."""

    cycle: int = 0
    job: int = 0


UNLIMITED = Budget()


class CapReached(Exception):  # noqa: N818 - no error of anybody's: a job is taken back and tried last
    """A job has cost as much as a single one may."""


class Work:
    """The steps of one cycle.

    ``cut`` are the actions that had to leave jobs for the next cycle.
    """

    def __init__(self, budget: Budget = UNLIMITED) -> None:
        self.budget = budget
        self.spent = 0
        self.cut: list[str] = []
        self._cap = 0
        self._limit = 0
        self._has_begun = False

    def spend(self, steps: int) -> None:
        """Note that something is about to be done. Raises CapReached within a job's attempt that costs too much."""
        self.spent += steps
        if self._cap and self.spent > self._cap:
            self._cap = 0
            raise CapReached

    @contextmanager
    def action(self, name: str, left: int) -> Iterator[None]:
        """Run one of the ``left`` actions to come: it may use an equal part of what is left, so that none of them
        starves.
        """
        cycle = self.budget.cycle
        self._limit = self.spent + max(cycle - self.spent, 0) // left if cycle else 0
        self._is_cut = False
        yield
        if self._is_cut:
            self.cut.append(name)

    def may_go_on(self) -> bool:
        """Whether there is budget for one more job; the first of a cycle always has some. Else the action is cut."""
        if self._limit and self.spent >= self._limit and self._has_begun:
            self._is_cut = True
            return False
        self._has_begun = True
        return True

    def begin_attempt(self, steps: int) -> None:
        """Note what every attempt costs, and let what is done until :meth:`end_attempt` cost as much as one job may."""
        self.spent += steps
        self._cap = self.spent + self.budget.job if self.budget.job else 0

    def end_attempt(self) -> None:
        """The job's attempt is over, or what it has got stands from here on, whatever the rest of it costs."""
        self._cap = 0
