"""Detect a process that makes no progress, for `/healthz` and for giving up the lease.

Faults outside of the process must not make it look stuck. A refused write counts as answered. While requests for
our Lease are not answered, no write is expected to be answered. A probe distinguishes writes that are stuck everywhere
from one namespace whose writes are never answered. Time in which the process was frozen does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

LONGEST = 30.0
"""Seconds without progress after which the process gives up."""
TICK = 0.5
"""Seconds between two checks."""
_MAX_PER_TICK = 2 * TICK
"""Maximum seconds that count between two ticks; a longer interval means that the process was frozen."""


@dataclass(slots=True)
class Expectation:
    """Repeated work, such as cycles, that must make progress while `is_due` returns True.

    `ended` returns how often the work has finished. `trouble` is the message if it makes no progress.
    """

    trouble: str
    is_due: Callable[[], bool]
    ended: Callable[[], int]
    age: float = 0.0
    """Seconds for which the work has been due and has not finished."""
    _seen: int = 0

    def check(self, elapsed: float) -> None:
        ended = self.ended()
        if ended != self._seen or not self.is_due():
            self._seen, self.age = ended, 0.0
        else:
            self.age += elapsed


class Progress:
    """All expectations of a process. The event loop calls `tick`; any thread may read `age` and `trouble`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._expectations: list[Expectation] = []
        self._ticked = clock()

    def expect(self, expectation: Expectation) -> Expectation:
        """Check this expectation from now on."""
        self._expectations.append(expectation)
        return expectation

    def tick(self) -> None:
        """Record that the event loop runs, and check all expectations."""
        now = self._clock()
        elapsed, self._ticked = min(now - self._ticked, _MAX_PER_TICK), now
        for expectation in self._expectations:
            expectation.check(elapsed)

    @property
    def age(self) -> float:
        """Return the longest time in seconds without progress; 0 while all expectations make progress."""
        silent = self._clock() - self._ticked
        return max([silent if silent > _MAX_PER_TICK else 0.0, *(it.age for it in self._expectations)])

    @property
    def trouble(self) -> str:
        """Return a message about an expectation without progress for too long, or an empty string."""
        silent = self._clock() - self._ticked
        if silent > LONGEST:
            return f"the event loop hangs for {silent:.0f} s"
        late = (expectation for expectation in self._expectations if expectation.age > LONGEST)
        return next((f"{expectation.trouble} for {expectation.age:.0f} s" for expectation in late), "")
