"""A priority queue of items whose keys may grow while the items wait.

A key is computed again when its item is next, unless nothing has changed since all keys were computed. The queue
therefore follows exactly an order that changes while capacity is allocated (by a queue's share), as long as keys only
grow, which allocation guarantees.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class LazyPriorityQueue(Generic[T]):
    """A heap of items with keys that may grow. No two items may have equal keys.

    Args:
        key: returns the key of an item.
        items: the first items.
        keys: the keys of `items`, for callers that compute many keys at once.
        version: returns a number that differs whenever keys may have changed. Without it, keys may change at any time.
    """

    def __init__(
        self,
        key: Callable[[T], tuple[Any, ...]],
        items: Iterable[T] = (),
        keys: Iterable[tuple[Any, ...]] | None = None,
        version: Callable[[], int] | None = None,
    ) -> None:
        self._key, self._version = key, version
        self._keys_version = -1 if version is None else version()
        self._heap = list(zip(keys, items, strict=True)) if keys is not None else [(key(item), item) for item in items]
        heapq.heapify(self._heap)

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, item: T) -> None:
        heapq.heappush(self._heap, (self._key(item), item))

    def first(self) -> T:
        """Return the item with the currently smallest key, without removing the item."""
        heap = self._heap
        if self._version is not None and self._version() == self._keys_version:
            return heap[0][1]
        while len(heap) > 1:
            key, item = heap[0]
            now = self._key(item)
            if now <= key:
                break
            heapq.heapreplace(heap, (now, item))
        return heap[0][1]

    def pop(self) -> T:
        """Remove and return the item with the currently smallest key."""
        self.first()
        return heapq.heappop(self._heap)[1]
