"""Whether the process gets on: what ``/healthz`` tells, and why a leader gives its lease up.

The one rule: nobody else can bring it to a standstill. A refusal is an answer; while the API server does not answer for
our Lease either, no answer is expected; and a namespace whose writes are never answered is told apart from all of them
by a write of our own. Time in which the process was frozen does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

LONGEST = 30.0
"""Seconds without progress after which it is given up."""
TICK = 0.5
"""Seconds between two looks."""
_MOST_A_TICK = 2 * TICK


@dataclass(slots=True)
class Strand:
    """One thing that has to get on while it ``is_due``; ``ended`` counts how often it has. ``trouble``: what to say
    where it does not.
    """

    trouble: str
    is_due: Callable[[], bool]
    ended: Callable[[], int]
    age: float = 0.0
    """Seconds for which it has been due and did not end."""
    _seen: int = 0

    def look(self, elapsed: float) -> None:
        ended = self.ended()
        if ended != self._seen or not self.is_due():
            self._seen, self.age = ended, 0.0
        else:
            self.age += elapsed


class Progress:
    """All strands of a process. ``tick`` is called by its event loop, the rest is asked from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._strands: list[Strand] = []
        self._ticked = clock()

    def expect(self, strand: Strand) -> Strand:
        """Look at it from now on."""
        self._strands.append(strand)
        return strand

    def tick(self) -> None:
        """The event loop turns; look how the strands get on."""
        now = self._clock()
        elapsed, self._ticked = min(now - self._ticked, _MOST_A_TICK), now
        for strand in self._strands:
            strand.look(elapsed)

    @property
    def age(self) -> float:
        """Seconds for which something has been due and did not come; 0 where all is well."""
        silent = self._clock() - self._ticked
        return max([silent if silent > _MOST_A_TICK else 0.0, *(strand.age for strand in self._strands)])

    @property
    def trouble(self) -> str:
        """What has not got on for too long; empty where all does."""
        silent = self._clock() - self._ticked
        if silent > LONGEST:
            return f"the event loop hangs for {silent:.0f} s"
        late = (strand for strand in self._strands if strand.age > LONGEST)
        return next((f"{strand.trouble} for {strand.age:.0f} s" for strand in late), "")
