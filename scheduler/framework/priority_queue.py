"""A priority queue for subjects whose keys grow while they wait.

A key is read again when its subject is taken, unless nothing has changed since all keys were read. An order that
changes while capacity is allocated (a queue's share) is therefore followed exactly, as long as keys only grow, which
allocation guarantees.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class LazyPriorityQueue(Generic[T]):
    """A heap of subjects with keys that may grow. No two subjects may have equal keys.

    Args:
        key: returns the key of a subject.
        subjects: the first subjects.
        keys: the keys of `subjects`, for callers that compute many keys at once.
        version: returns a number that differs whenever keys may have changed. Without it, they may at any time.
    """

    def __init__(
        self,
        key: Callable[[T], tuple[Any, ...]],
        subjects: Iterable[T] = (),
        keys: Iterable[tuple[Any, ...]] | None = None,
        version: Callable[[], int] | None = None,
    ) -> None:
        self._key, self._version = key, version
        self._read_at = -1 if version is None else version()
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
        if self._version is not None and self._version() == self._read_at:
            return heap[0][1]
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
