"""The queue from watches and writes to the cycle loop.

Watches and writes put items in, at any time. Between two cycles, the loop removes the items and applies them to the
state; then it decides and passes the decisions to the writer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..framework.decisions import Bind, Evict
from ..inputs import Input
from ..kube import KubeError, Resource
from ..model.objects import ObjectMeta


@dataclass(frozen=True, slots=True)
class Trouble:
    """An object that the state rejects and ignores. With `is_partial`, the state ignores only a part of the object."""

    resource: Resource[Any]
    metadata: ObjectMeta
    error: str
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """The API server bound a pod as decided, at `at` seconds since the epoch."""

    decision: Bind
    at: float


@dataclass(frozen=True, slots=True)
class RefusedWrite:
    """The API server refused a bind or an eviction."""

    decision: Bind | Evict
    error: KubeError


Item = Input | Trouble | Bound | RefusedWrite


class Inbox:
    """Items in the order of arrival. `arrived` is set while an item needs the loop's attention."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self._items: deque[Item] = deque()

    def put(self, item: Item) -> None:
        self._items.append(item)
        if not isinstance(item, Bound):  # the watch soon reports the same bind
            self.arrived.set()

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self._items)

    def take(self, most: int) -> Iterator[Item]:
        """Yield and remove the oldest items, `most` of them at most."""
        if len(self._items) <= most:
            self.arrived.clear()
        for _ in range(min(most, len(self._items))):
            yield self._items.popleft()
