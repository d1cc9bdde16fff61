"""Who is served next.

The one rule: keys are looked at when someone is taken, not only when they were put in, so an order that changes as
room is given out (a queue's share) is followed exactly as long as keys only grow, which is what giving out room does.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class LazyPriorityQueue(Generic[T]):
    """A heap of subjects by a key that may grow meanwhile. Keys must be total: no two subjects share one."""

    def __init__(self, key: Callable[[T], tuple[Any, ...]], subjects: Iterable[T] = ()) -> None:
        self._key = key
        self._heap = [(key(subject), subject) for subject in subjects]
        heapq.heapify(self._heap)

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, subject: T) -> None:
        heapq.heappush(self._heap, (self._key(subject), subject))

    def pop(self) -> T:
        """Take out the subject with the smallest key as of now."""
        while True:
            key, subject = self._heap[0]
            now = self._key(subject)
            if now <= key or len(self._heap) == 1:
                return heapq.heappop(self._heap)[1]
            heapq.heapreplace(self._heap, (now, subject))
