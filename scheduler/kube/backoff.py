"""Compute how long to wait before the next attempt.

This module is a live scheduler's only source of randomness. It decides only when something happens, never what.
An event loop in virtual time has a random generator of its own, so that its delays are reproducible.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

from .errors import ApiError, KubeError, TooManyRequests, Unreachable


class Backoff:
    """Doubling delays with jitter.

    Each delay lies between half of its step and the whole step, so that many waiters spread out.

    >>> delays = Backoff(first=1.0, most=8.0)
    >>> 0.5 <= delays.next() <= 1.0 <= delays.next() <= 2.0
    True
    """

    def __init__(self, first: float = 0.05, most: float = 30.0) -> None:
        self._first = first
        self._most = most
        self._step = first

    def next(self) -> float:
        """Return the seconds to wait now. The next delay is about twice as long."""
        step, self._step = self._step, min(self._step * 2, self._most)
        return step * spread(0.5, 1.0)

    def reset(self) -> None:
        """Start again with the first step, after a success."""
        self._step = self._first


def spread(low: float, high: float) -> float:
    """Return a random number of seconds between two bounds, so that periodic work of several processes spreads out."""
    return _uniform()(low, high)


def _uniform() -> Callable[[float, float], float]:
    """Return `uniform` of the running event loop's `random` if it has one, else of the module `random`."""
    try:
        own = getattr(asyncio.get_running_loop(), "random", None)
    except RuntimeError:
        own = None
    return random.uniform if own is None else own.uniform


_TEMPORARY = (429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class Again:
    """Retry after `after` seconds. With `holds_flow`, the other items of the flow wait equally long."""

    after: float
    holds_flow: bool = False


def again_after(error: KubeError, backoff: Backoff) -> Again | None:
    """Return when to retry a write; None if the error is permanent.

    The caller makes sure that the write may be repeated. An item that has to be retried waits without a worker, so that
    it blocks no other item. A pause that the server requests applies to one flow: one kind of write in one namespace.
    """
    if isinstance(error, TooManyRequests) and error.retry_after is not None:
        return Again(error.retry_after, holds_flow=True)
    if isinstance(error, Unreachable) or (isinstance(error, ApiError) and error.status in _TEMPORARY):
        return Again(backoff.next())
    return None
