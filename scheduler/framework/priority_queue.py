"""A priority queue for subjects whose keys grow while they wait.

A key is read again when its subject is taken. An order that changes while capacity is allocated (a queue's share) is
therefore followed exactly, as long as keys only grow, which allocation guarantees.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class LazyPriorityQueue(Generic[T]):
    """A heap of subjects with keys that may grow. No two subjects may have equal keys.

    `keys` are those of `subjects`, for callers that compute the keys of many subjects at once.
    """

    def __init__(
        self,
        key: Callable[[T], tuple[Any, ...]],
        subjects: Iterable[T] = (),
        keys: Iterable[tuple[Any, ...]] | None = None,
    ) -> None:
        self._key = key
        self._heap = (
            list(zip(keys, subjects, strict=True))
            if keys is not None
            else [(key(subject), subject) for subject in subjects]
        )
        heapq.heapify(self._heap)

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, subject: T) -> None:
        heapq.heappush(self._heap, (self._key(subject), subject))

    def first(self) -> T:
        """Return the subject with the currently smallest key, which stays in the queue."""
        heap = self._heap
        while len(heap) > 1:
            key, subject = heap[0]
            now = self._key(subject)
            if now <= key:
                break
            heapq.heapreplace(heap, (now, subject))
        return heap[0][1]

    def pop(self) -> T:
        """Remove and return the subject with the currently smallest key."""
        self.first()
        return heapq.heappop(self._heap)[1]
