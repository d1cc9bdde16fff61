"""Choose the cards of a node, or the part of its cpus, on which each pod is drawn: the lowest free ones.

This module is pure. Kubernetes does not publish which card a pod got; a picture assigns one and keeps it.
"""

from __future__ import annotations

from collections.abc import Sequence

_EPSILON = 1e-9
Part = tuple[float, float]
"""Position and size of a part."""


def place(intervals: Sequence[tuple[float, float, float]]) -> list[list[Part]]:
    """Return the parts that each pod occupies, from its interval (from, until, amount); intervals are ordered by start.

    A pod occupies the lowest gap that is large enough, else several gaps, else the space above all parts. That space is
    unlimited: the caller shows what exceeds a node's capacity.
    """
    occupied: list[tuple[float, float, float]] = []  # low, high, until when
    found: list[list[Part]] = []
    for began, until, amount in intervals:
        occupied = sorted(part for part in occupied if part[2] > began)
        parts = _parts(occupied, amount)
        occupied += [(low, low + size, until) for low, size in parts]
        found.append(parts)
    return found


def _parts(occupied: Sequence[tuple[float, float, float]], amount: float) -> list[Part]:
    free: list[Part] = []
    low = 0.0
    for start, end, _ in occupied:
        if start - low > _EPSILON:
            free.append((low, start - low))
        low = max(low, end)
    whole = next(((start, amount) for start, size in free if size >= amount - _EPSILON), None)
    if whole is not None:
        return [whole]
    if sum(size for _, size in free) < amount - _EPSILON:
        return [(low, amount)]
    parts: list[Part] = []
    for start, size in free:
        use = min(size, amount)
        parts.append((start, use))
        amount -= use
        if amount <= _EPSILON:
            break
    return parts
