"""How long to wait before trying again.

The one rule: this is the only source of randomness in the scheduler, and it only ever decides when, never what.
"""

from __future__ import annotations

import random


class Backoff:
    """Doubling delays with jitter: each between half of its step and the whole of it, so that many waiters spread out.

    >>> delays = Backoff(first=1.0, most=8.0)
    >>> 0.5 <= delays.next() <= 1.0 <= delays.next() <= 2.0
    True
    """

    def __init__(self, first: float = 0.05, most: float = 30.0) -> None:
        self._first = first
        self._most = most
        self._step = first

    def next(self) -> float:
        """Seconds to wait now; the next answer is about twice as long."""
        step, self._step = self._step, min(self._step * 2, self._most)
        return step * random.uniform(0.5, 1.0)

    def reset(self) -> None:
        """It worked: begin again with the first step."""
        self._step = self._first


def spread(low: float, high: float) -> float:
    """Some number of seconds between two bounds, so that what is periodic does not fall together."""
    return random.uniform(low, high)
