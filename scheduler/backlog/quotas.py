"""Find the jobs that wait for room in a quota, by queue and by amount.

Room in the quota of one queue concerns only the jobs whose bound names that queue, and of these only the jobs that fit
into it. Their number, and not the number of waiting jobs, is what a search costs.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Mapping

from .entries import HoldingsBound

Held = Callable[[str, str, bool], float | None]
"""Returns what a queue holds of a dimension, or None to leave the queue aside; with True, only the part that its jobs
need to start.
"""
Excess = Callable[[str, str], float | None]
"""Returns what a queue holds beyond what it deserves of a dimension, or None to leave the queue aside."""


class JobsByQuota:
    """Jobs and the bounds that they wait for. A bound holds if its queue holds at most the amount that it names."""

    def __init__(self) -> None:
        self._by_what: dict[bool, dict[tuple[str, str, bool], list[tuple[float, str]]]] = {False: {}, True: {}}
        """Whether it is relative to what the queue deserves → queue, dimension and kind of holdings → the bounds with
        their jobs, by amount.
        """

    def add(self, key: str, bounds: Iterable[HoldingsBound]) -> None:
        """Add a job, to be found as soon as one of the bounds may hold."""
        for bound in bounds:
            by_what, what = self._by_what[bound.of_deserved], (bound.queue, bound.dimension, bound.needed)
            bisect.insort(by_what.setdefault(what, []), (_most(bound), key))

    def remove(self, key: str, bounds: Iterable[HoldingsBound]) -> None:
        """Remove a job that was added with these bounds."""
        for bound in bounds:
            by_what, what = self._by_what[bound.of_deserved], (bound.queue, bound.dimension, bound.needed)
            jobs = by_what[what]
            del jobs[bisect.bisect_left(jobs, (_most(bound), key))]
            if not jobs:
                del by_what[what]

    def within(self, held: Held) -> set[str]:
        """Return the jobs of which one bound holds, bounds relative to deserved amounts left aside."""
        return _within(self._by_what[False], held)

    def within_deserved(self, excess: Excess) -> set[str]:
        """Return the jobs of which one bound holds that is relative to a deserved amount."""
        return _within(self._by_what[True], lambda queue, name, _: excess(queue, name))


def _within(by_what: Mapping[tuple[str, str, bool], list[tuple[float, str]]], held: Held) -> set[str]:
    found: set[str] = set()
    for what, jobs in by_what.items():
        if (amount := held(*what)) is not None:
            found.update(key for _, key in jobs[bisect.bisect_left(jobs, (amount, "")) :])
    return found


def _most(bound: HoldingsBound) -> float:
    """Return the amount of a bound; infinity if any change of the queue could help."""
    return bound.most if bound.dimension else math.inf
