"""Find the jobs that wait for room in a quota, by queue and by amount.

Room in the quota of one queue concerns only the jobs whose bound names that queue, and of these only the jobs that fit
into it. Their number, and not the number of waiting jobs, is what a search costs.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable

from .entries import HoldingsBound

Held = Callable[[str, str, bool], int]
"""Returns what a queue holds of a dimension; with True, only the part that its jobs need to start."""


class JobsByQuota:
    """Jobs and the bounds that they wait for. A bound holds if its queue holds at most the amount that it names."""

    def __init__(self) -> None:
        self._by_what: dict[tuple[str, str, bool], list[tuple[float, str]]] = {}
        """Queue, dimension and kind of holdings → the bounds with their jobs, by amount."""

    def add(self, key: str, bounds: Iterable[HoldingsBound]) -> None:
        """Add a job, to be found as soon as one of the bounds may hold."""
        for bound in bounds:
            what = bound.queue, bound.dimension, bound.needed
            bisect.insort(self._by_what.setdefault(what, []), (_most(bound), key))

    def remove(self, key: str, bounds: Iterable[HoldingsBound]) -> None:
        """Remove a job that was added with these bounds."""
        for bound in bounds:
            what = bound.queue, bound.dimension, bound.needed
            jobs = self._by_what[what]
            del jobs[bisect.bisect_left(jobs, (_most(bound), key))]
            if not jobs:
                del self._by_what[what]

    def within(self, held: Held) -> set[str]:
        """Return the jobs of which one bound holds."""
        found: set[str] = set()
        for what, jobs in self._by_what.items():
            found.update(key for _, key in jobs[bisect.bisect_left(jobs, (held(*what), "")) :])
        return found


def _most(bound: HoldingsBound) -> float:
    """Return the amount of a bound; infinity if any change of the queue could help."""
    return bound.most if bound.dimension else math.inf
