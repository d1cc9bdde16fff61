"""How many steps of the core a cycle may cost, from how long steps took.

The one rule: the core counts steps, which cost the same wherever they are counted; only here do they meet a clock. A
cycle's budget is an input like any other, recorded and replayed. Only the attempts of jobs are measured: what a cycle
costs apart from them does not become less where it tries fewer, and would be taken for ever slower steps.
"""

from __future__ import annotations

from ..framework.work import Budget

CYCLE = 0.25
"""Seconds after which a cycle leaves what is left of its jobs to the next one."""
JOB = 1.0
"""Seconds that a single job may take in one action."""
FIRST = 0.8e-6
"""Seconds of a step, as long as none were measured."""
FASTEST, SLOWEST = 1e-7, 4e-5
"""What a step is taken for at least and at most, whatever was measured."""
TELLING = 5_000
"""Cycles of fewer steps tell of what every cycle costs, not of what steps do."""
_OLD = 0.8
"""The weight of what was known before."""


class Pace:
    """How long a step takes on this machine, lately."""

    def __init__(self) -> None:
        self._seconds = FIRST

    @property
    def budget(self) -> Budget:
        """The budget of the next cycle."""
        return Budget(round(CYCLE / self._seconds), round(JOB / self._seconds))

    def note(self, steps: int, seconds: float) -> None:
        """The jobs of a cycle cost so many steps, and their attempts took so long."""
        if steps >= TELLING and seconds:  # none where the last decisions stood
            measured = min(max(seconds / steps, FASTEST), SLOWEST)
            # to become slower is believed at once: the next cycle would be too long
            self._seconds = max(measured, _OLD * self._seconds + (1 - _OLD) * measured)
