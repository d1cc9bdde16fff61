"""Figures of an hour of churn: how fast gangs start, and how the memory of the idle scheduler grows."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Start:
    """The start of a gang, in seconds from the request for its PodGroup.

    `beside` counts the hostile objects of that time by kind.
    """

    name: str
    created: float
    """When the API server had created all of its pods: hostile objects delay the API server too."""
    bound: float
    """When all of its pods had nodes, after the same request."""
    beside: str

    @property
    def waited(self) -> float:
        """Return the seconds for which the pods existed without nodes."""
        return self.bound - self.created

    def __str__(self) -> str:
        return (
            f"{self.waited:.2f} s ({self.name}; {self.bound:.2f} s from the request for its PodGroup; "
            f"beside {self.beside})"
        )


@dataclass(frozen=True)
class Growth:
    """The growth of an amount per hour, by a line fitted to samples."""

    fitted: float
    certain: float
    """The lower bound of the growth at 95 % confidence, because single samples scatter."""

    def __str__(self) -> str:
        return f"{self.fitted:+.1f} (with 95 % certainty at least {self.certain:+.1f})"


T95 = (6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86)
"""Quantiles of Student's t distribution for one to eight degrees of freedom."""


def growth(samples: list[tuple[float, float]]) -> Growth:
    """Fit a line to three to ten samples (seconds, amount)."""
    at, size = zip(*samples, strict=True)
    slope, start = statistics.linear_regression(at, size)
    freedom = len(samples) - 2
    scatter = sum((amount - start - slope * time) ** 2 for time, amount in samples) / freedom
    spread = sum((time - statistics.fmean(at)) ** 2 for time in at)
    return Growth(slope * 3600, (slope - T95[freedom - 1] * math.sqrt(scatter / spread)) * 3600)


@dataclass(frozen=True)
class Pause:
    """The scheduler's memory at a pause (`tests.soak.churn`)."""

    seconds: float
    memory: float
    """Resident, in MB."""
    heap: float
    """In use in the C library's heap, in MB."""
    blocks: float
    """In use in Python's allocator, in thousands."""
    connections: int
    alive: dict[str, int]
    """Kind → number of objects."""

    def __str__(self) -> str:
        alive = ", ".join(f"{count} {kind}" for kind, count in self.alive.items())
        return (
            f"{self.memory:.1f} MB, {self.heap:.1f} MB in use in the heap, {self.blocks:.1f} thousand blocks, "
            f"{self.connections} connections; alive: {alive}"
        )
