"""Which cards of a node, or which part of its cpus, each pod is drawn on: the lowest that are free when it comes.

Pure. Kubernetes does not say which card a pod got; a picture has to put it somewhere, and leaves it there.
"""

from __future__ import annotations

from collections.abc import Sequence

_NOTHING = 1e-9
Part = tuple[float, float]
"""From where, and how much."""


def place(stays: Sequence[tuple[float, float, float]]) -> list[list[Part]]:
    """For each stay (from, until, amount), in the order of their beginning, the parts that it takes.

    A stay takes one part where there is room for it in one piece, else the lowest pieces that are free. There is no end
    to the room: what is beyond a node's capacity is for the caller to show.
    """
    taken: list[tuple[float, float, float]] = []  # from where, to where, until when
    found: list[list[Part]] = []
    for began, until, amount in stays:
        taken = sorted(it for it in taken if it[2] > began)
        parts = _parts(taken, amount)
        taken += [(low, low + size, until) for low, size in parts]
        found.append(parts)
    return found


def _parts(taken: Sequence[tuple[float, float, float]], amount: float) -> list[Part]:
    free: list[Part] = []
    low = 0.0
    for start, end, _ in taken:
        if start - low > _NOTHING:
            free.append((low, start - low))
        low = max(low, end)
    whole = next(((start, amount) for start, size in free if size >= amount - _NOTHING), None)
    if whole is not None:
        return [whole]
    if sum(size for _, size in free) < amount - _NOTHING:
        return [(low, amount)]
    parts: list[Part] = []
    for start, size in free:
        use = min(size, amount)
        parts.append((start, use))
        amount -= use
        if amount <= _NOTHING:
            break
    return parts
