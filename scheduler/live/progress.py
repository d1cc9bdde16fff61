"""Detect a process that makes no progress, for `/healthz` and for giving up the lease.

Nobody else can make this process look stuck. A refusal counts as an answer. No answer is expected while the API server
does not answer for our Lease either. A write of our own distinguishes a stuck API server from a namespace whose writes
are never answered. Time in which the process was frozen does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

LONGEST = 30.0
"""Seconds without progress after which the process gives up."""
TICK = 0.5
"""Seconds between two checks."""
_MOST_A_TICK = 2 * TICK


@dataclass(slots=True)
class Expectation:
    """Something that has to finish while `is_due`.

    `ended` returns how often it has finished. `trouble` is the message where it does not.
    """

    trouble: str
    is_due: Callable[[], bool]
    ended: Callable[[], int]
    age: float = 0.0
    """Seconds for which it has been due and has not finished."""
    _seen: int = 0

    def look(self, elapsed: float) -> None:
        ended = self.ended()
        if ended != self._seen or not self.is_due():
            self._seen, self.age = ended, 0.0
        else:
            self.age += elapsed


class Progress:
    """All expectations of a process. The event loop calls `tick`; the rest may be called from any thread."""

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
        elapsed, self._ticked = min(now - self._ticked, _MOST_A_TICK), now
        for expectation in self._expectations:
            expectation.look(elapsed)

    @property
    def age(self) -> float:
        """Return the seconds for which something has been overdue; 0 while all makes progress."""
        silent = self._clock() - self._ticked
        return max([silent if silent > _MOST_A_TICK else 0.0, *(expectation.age for expectation in self._expectations)])

    @property
    def trouble(self) -> str:
        """Return what has made no progress for too long; empty if all does."""
        silent = self._clock() - self._ticked
        if silent > LONGEST:
            return f"the event loop hangs for {silent:.0f} s"
        late = (expectation for expectation in self._expectations if expectation.age > LONGEST)
        return next((f"{expectation.trouble} for {expectation.age:.0f} s" for expectation in late), "")
