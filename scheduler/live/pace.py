"""Convert the cycle's time budget into a step budget, from the CPU time that steps took.

The core counts steps, which are the same on every machine; only this module relates them to a clock. A cycle's budget
is an input, which is recorded and replayed. Only the attempts of jobs are measured: the fixed cost of a cycle does not
shrink with fewer attempts, and would appear as ever slower steps.
"""

from __future__ import annotations

import time

from ..framework.work import Budget

CYCLE = 0.25
"""CPU seconds after which a cycle leaves its remaining jobs to the next one."""
JOB = 1.0
"""CPU seconds that one job may take in one action."""
FIRST = 0.8e-6
"""CPU seconds per step before the first measurement."""
FASTEST, SLOWEST = 4e-7, 4e-5
"""Bounds of the assumed seconds per step. The cheap steps of one tenant must not buy long cycles for the costly steps
of another tenant.
"""
MEASURED_FROM = 5_000
"""Cycles with fewer steps are not measured: their fixed cost dominates."""
_WEIGHT_OF_OLD = 0.8
"""Weight of the previous value."""


class Pace:
    """The recent duration of a step on this machine."""

    def __init__(self) -> None:
        self._seconds = FIRST

    @property
    def budget(self) -> Budget:
        """Return the budget of the next cycle."""
        return Budget(round(CYCLE / self._seconds), round(JOB / self._seconds))

    def budget_within(self, seconds: float) -> Budget:
        """Return the budget of a cycle that takes at most `seconds` of CPU time."""
        steps = round(seconds / self._seconds)
        return Budget(steps, steps, full=self.budget.cycle)

    def note(self, steps: int, seconds: float) -> None:
        """Record the steps that the jobs of a cycle cost, and the CPU seconds that their attempts took."""
        if steps >= MEASURED_FROM and seconds:  # there are no steps if the last decisions still hold
            measured = min(max(seconds / steps, FASTEST), SLOWEST)
            # adopt a slower pace at once, or the next cycle would be too long
            self._seconds = max(measured, _WEIGHT_OF_OLD * self._seconds + (1 - _WEIGHT_OF_OLD) * measured)

    def cpu_seconds(self) -> float:
        """Return the CPU seconds that this thread has used. Differences of this value decide which cycles are quick."""
        return time.thread_time()


class FixedPace(Pace):
    """A constant duration of a step, for virtual time.

    No measured duration changes a budget, so that a busy machine gets the same decisions as an idle one.
    """

    def note(self, steps: int, seconds: float) -> None:
        """Ignore the measurement."""

    def cpu_seconds(self) -> float:
        """Return 0.0, so that only the number of its steps decides whether a cycle is quick."""
        return 0.0
