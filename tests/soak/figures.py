"""Figures of an hour of churn: how gangs start, and the scheduler's memory while it rests."""

from __future__ import annotations

import statistics
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Start:
    """The start of a gang: seconds from the request for its PodGroup until its pods had nodes, and until they existed.

    `beside` counts the hostile objects of that time by kind.
    """

    bound: float
    created: float
    name: str
    beside: str

    def __str__(self) -> str:
        return f"{self.bound:.2f} s ({self.name}; its pods existed after {self.created:.2f} s; beside {self.beside})"


def slope(samples: list[tuple[float, float]]) -> float:
    """Return the growth of an amount in an hour, fitted to samples (seconds, amount)."""
    if len(samples) < 2:
        return 0.0
    at, size = zip(*samples, strict=True)
    return statistics.linear_regression(at, size).slope * 3600


@dataclass(frozen=True)
class Rest:
    """The scheduler's memory at a rest."""

    seconds: float
    memory: float
    """Resident, in MB."""
    blocks: float
    """In use in Python's allocator, in thousands."""
    connections: int
    alive: dict[str, int]
    """Objects, by kind."""

    def __str__(self) -> str:
        alive = ", ".join(f"{count} {kind}" for kind, count in self.alive.items())
        return (
            f"{self.memory:.1f} MB, {self.blocks:.1f} thousand blocks, {self.connections} connections; alive: {alive}"
        )
