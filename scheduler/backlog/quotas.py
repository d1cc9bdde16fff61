"""Find the jobs that wait for room in a quota, by queue and by amount.

Room in the quota of a queue concerns only jobs with a bound on that queue, and of these only the jobs that fit into the
room. The cost of a search grows with the number of these jobs, not with the number of waiting jobs.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Mapping

from .entries import HoldingsBound

Held = Callable[[str, str, bool], float | None]
"""(queue, dimension, needed) → the amount that the queue holds, or None to skip the queue. If `needed` is True, only
what the queue's jobs need to start counts.
"""
Excess = Callable[[str, str], float | None]
"""(queue, dimension) → the amount that the queue holds beyond what it deserves, or None to skip the queue."""
_Bounded = tuple[str, str, bool]
"""The queue, dimension and `needed` of a bound."""


class JobsByQuota:
    """Jobs and the bounds that they wait for. A bound holds if its queue holds at most the bound's amount."""

    def __init__(self) -> None:
        self._jobs: dict[bool, dict[_Bounded, list[tuple[float, str]]]] = {False: {}, True: {}}
        """`of_deserved` → queue, dimension and `needed` → the amounts of the bounds with their jobs, by amount."""

    def add(self, key: str, bounds: Iterable[HoldingsBound]) -> None:
        """Add a job, to be found as soon as one of the bounds may hold."""
        for bound in bounds:
            by_bounded, bounded = self._jobs[bound.of_deserved], (bound.queue, bound.dimension, bound.needed)
            bisect.insort(by_bounded.setdefault(bounded, []), (_most(bound), key))

    def remove(self, key: str, bounds: Iterable[HoldingsBound]) -> None:
        """Remove a job that was added with these bounds."""
        for bound in bounds:
            by_bounded, bounded = self._jobs[bound.of_deserved], (bound.queue, bound.dimension, bound.needed)
            jobs = by_bounded[bounded]
            del jobs[bisect.bisect_left(jobs, (_most(bound), key))]
            if not jobs:
                del by_bounded[bounded]

    def within(self, held: Held) -> set[str]:
        """Return the jobs with a bound that holds; bounds relative to deserved amounts do not count."""
        return _within(self._jobs[False], held)

    def within_deserved(self, excess: Excess) -> set[str]:
        """Return the jobs with a bound relative to a deserved amount that holds."""
        return _within(self._jobs[True], lambda queue, name, _: excess(queue, name))


def _within(by_bounded: Mapping[_Bounded, list[tuple[float, str]]], held: Held) -> set[str]:
    found: set[str] = set()
    for bounded, jobs in by_bounded.items():
        if (amount := held(*bounded)) is not None:
            found.update(key for _, key in jobs[bisect.bisect_left(jobs, (amount, "")) :])
    return found


def _most(bound: HoldingsBound) -> float:
    """Return the amount of a bound; infinity if any change of the queue could help."""
    return bound.most if bound.dimension else math.inf
