"""The metrics of a run. Definitions and units: docs/simulation.md.

`Metrics` keeps only numbers, 16 bytes for each job, so that a million jobs fit into memory. It integrates over time
what queues held and what they were entitled to.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .records import JobRecord

SIZES = ((0, "0"), (1, "1"), (7, "2-7"), (8, "8"), (63, "9-63"), (math.inf, "64+"))
"""Classes of jobs by their cards: upper limit and name."""
_ROUNDING = 1e-9


def size_of(cards: float) -> str:
    """Return the class of a job with this number of cards."""
    return next(name for limit, name in SIZES if cards <= limit)


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed (nearest rank)."""
    return float(ordered[max(0, math.ceil(share * len(ordered)) - 1)])


def scaled(seconds: float) -> tuple[float, str]:
    """Return a duration in the largest unit of which it has at least two, and the unit."""
    units = (("d", 86400), ("h", 3600), ("min", 60))
    return next(((seconds / length, unit) for unit, length in units if abs(seconds) >= 2 * length), (seconds, "s"))


def spread(values: Iterable[float]) -> dict[str, float]:
    """Return number, mean, p50, p95, p99 and maximum; only the number if there are no values."""
    ordered = sorted(values)
    if not ordered:
        return {"jobs": 0}
    found: dict[str, float] = {"jobs": len(ordered), "mean": math.fsum(ordered) / len(ordered)}
    for share in (50, 95, 99):
        found[f"p{share}"] = percentile(ordered, share / 100)
    return {**found, "max": ordered[-1]}


@dataclass(slots=True)
class QueueMetrics:
    entitled: float = 0.0
    """Card-seconds to which the queue was entitled: the smaller of deserved and requested."""
    short: float = 0.0
    """Card-seconds to which the queue was entitled and which it did not hold."""
    short_seconds: float = 0.0
    """Seconds for which the queue held less than it was entitled to."""
    guarantee_short_seconds: float = 0.0
    """Seconds for which the queue held less than was both guaranteed and requested."""
    longest: float = 0.0
    """Longest span in seconds for which the queue held less than it was entitled to; `current`: the present span."""
    current: float = 0.0
    held: float = 0.0
    lost: float = 0.0
    evicted: float = 0.0


@dataclass(slots=True)
class Metrics:
    """Sums over the jobs and the time of a run."""

    capacity: float
    """Cards of all nodes."""
    queues: dict[str, QueueMetrics] = field(default_factory=dict)
    waits: dict[tuple[str, str], array[float]] = field(default_factory=dict)
    completions: array[float] = field(default_factory=lambda: array("d"))
    outcomes: dict[str, int] = field(default_factory=dict)
    first: float = math.inf
    last: float = 0.0
    jain: float = 0.0
    contended: float = 0.0
    """Seconds for which at least one queue was entitled to cards."""
    jobs: int = 0
    evictions: int = 0
    evicted_jobs: int = 0
    evicted_cards: float = 0.0
    requested_by_preemptors: float = 0.0
    held: dict[str, float] = field(default_factory=dict)
    """Queue → cards that it holds now."""
    _sizes: dict[str, dict[float, int]] = field(default_factory=dict)
    """Number of pods by their cards, for each queue."""
    _usual: dict[str, float] = field(default_factory=dict)

    def of(self, queue: str) -> QueueMetrics:
        return self.queues.setdefault(queue, QueueMetrics())

    def add(self, job: JobRecord) -> None:
        """Add a job that is over, or that was not over at the end of the run."""
        self.jobs += 1
        self.outcomes[job.outcome] = self.outcomes.get(job.outcome, 0) + 1
        if job.wait is not None:
            self.waits.setdefault((job.queue, size_of(job.cards)), array("d")).append(job.wait)
        if job.completion is not None:
            self.completions.append(job.completion)
        totals = self.of(job.queue)
        totals.held += job.card_seconds_used
        totals.lost += job.card_seconds_lost
        self.last = max(self.last, job.ended or 0.0)
        pods = sum(eviction.pods for eviction in job.evictions)
        self.evictions += pods
        self.evicted_jobs += bool(pods)
        for eviction in job.evictions:
            totals.evicted += eviction.cards
            if eviction.preemptor:
                self.evicted_cards += eviction.cards

    def submitted(self, at: float, queue: str, cards: float, pods: int) -> None:
        """Note a new job, whose pods have as many cards. The run counts from the first job on.

        The size that most pods of a queue have is its usual one, at least a card.
        """
        self.first = min(self.first, at)
        if not cards:
            return
        sizes = self._sizes.setdefault(queue, {})
        sizes[cards] = sizes.get(cards, 0) + pods
        self._usual[queue] = max(min(sizes, key=lambda size: (-sizes[size], size)), 1.0)

    def hold(self, queue: str, cards: float) -> None:
        """Add cards to what a queue holds; a negative number removes cards."""
        self.held[queue] = self.held.get(queue, 0.0) + cards

    def integrate(self, entitlements: dict[str, tuple[float, float]], seconds: float) -> None:
        """Add a span without changes. `entitlements`: queue → entitled cards, and the guaranteed ones among them.

        A queue is below its share only if one more pod of its usual size would fit into the gap: a deserved share of
        4.5 cards is met by 4 cards.
        """
        shares = []
        for name, (entitled, guaranteed) in entitlements.items():
            totals, held = self.of(name), self.held.get(name, 0.0)
            least = self._usual.get(name, 1.0) - _ROUNDING
            is_short = entitled - held >= least
            if is_short:
                totals.short += (entitled - held) * seconds
                totals.short_seconds += seconds
                totals.current += seconds
                totals.longest = max(totals.longest, totals.current)
            else:
                totals.current = 0.0
            totals.guarantee_short_seconds += seconds if guaranteed - held >= least else 0.0
            if entitled:
                totals.entitled += entitled * seconds
                shares.append(held / entitled if is_short else 1.0)
        if shares:
            squares = math.fsum(share * share for share in shares)
            self.jain += seconds * (math.fsum(shares) ** 2 / (len(shares) * squares) if squares else 1.0)
            self.contended += seconds

    def preempts(self, cards: float) -> None:
        """Add the cards of a job for which pods are evicted for the first time."""
        self.requested_by_preemptors += cards

    def result(self, end: float) -> dict[str, Any]:
        names = sorted({queue for queue, _ in self.waits} | self.queues.keys())
        span = max(end - self.first, 0.0) if self.jobs else 0.0
        used = math.fsum(queue.held for queue in self.queues.values())
        entitled = math.fsum(queue.entitled for queue in self.queues.values())
        short = math.fsum(queue.short for queue in self.queues.values())
        sizes = [name for _, name in SIZES if any(size == name for _, size in self.waits)]
        return {
            "jobs": self.jobs,
            "outcomes": self.outcomes,
            "wait_seconds": spread(self._waits()),
            "wait_seconds_by_queue": {name: spread(self._waits(queue=name)) for name in names},
            "wait_seconds_by_size": {name: spread(self._waits(size=name)) for name in sizes},
            "completion_seconds": spread(self.completions),
            "makespan_seconds": max(self.last - self.first, 0.0) if self.last else 0.0,
            "utilisation": _ratio(used, self.capacity * span),
            "used_card_hours": used / 3600,
            "lost_card_hours": math.fsum(queue.lost for queue in self.queues.values()) / 3600,
            "evicted_pods": self.evictions,
            "evicted_jobs": self.evicted_jobs,
            "evictions_per_job": _ratio(self.evictions, self.jobs) or 0.0,
            "evicted_to_requested": _ratio(self.evicted_cards, self.requested_by_preemptors),
            "distance_from_deserved": _ratio(short, entitled),
            "jain": _ratio(self.jain, self.contended),
            "queues": {
                name: {
                    "used_card_hours": totals.held / 3600,
                    "lost_card_hours": totals.lost / 3600,
                    "evicted_cards": totals.evicted,
                    "below_deserved_seconds": totals.short_seconds,
                    "below_deserved_longest_seconds": totals.longest,
                    "below_guarantee_seconds": totals.guarantee_short_seconds,
                    "distance_from_deserved": _ratio(totals.short, totals.entitled),
                }
                for name, totals in sorted(self.queues.items())
            },
        }

    def _waits(self, queue: str | None = None, size: str | None = None) -> Iterable[float]:
        for (of_queue, of_size), values in self.waits.items():
            if queue in (None, of_queue) and size in (None, of_size):
                yield from values


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
