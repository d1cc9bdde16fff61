"""Between those that live at their own pace and the cycle loop: what the watches show and what became of the writes.

The one rule: data goes round once: watches and writes put something in, the loop takes all of it out between two
cycles, applies it to the state, decides, and hands the decisions to the writes. Nobody here knows of anybody else.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..framework.decisions import Bind, Evict
from ..kube import KubeError, Resource
from ..model.objects import ObjectMeta
from ..recording.events import Input


@dataclass(frozen=True, slots=True)
class Trouble:
    """An object that the state could not take in: it is left out, the others go on."""

    resource: Resource[Any]
    metadata: ObjectMeta
    error: str


@dataclass(frozen=True, slots=True)
class Bound:
    """The API server bound a pod as it was decided, ``at`` so many seconds since the epoch."""

    decision: Bind
    at: float


@dataclass(frozen=True, slots=True)
class Refused:
    """The API server refused a bind or an eviction."""

    decision: Bind | Evict
    error: KubeError


Item = Input | Trouble | Bound | Refused


class Inbox:
    """In the order in which it came. ``arrived`` is set while there is something that the loop has to look at."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self._items: deque[Item] = deque()

    def put(self, item: Item) -> None:
        self._items.append(item)
        if not isinstance(item, Bound):  # it can wait for the watch, which soon shows the same
            self.arrived.set()

    def __len__(self) -> int:
        """How many wait."""
        return len(self._items)

    def take(self, most: int) -> Iterator[Item]:
        """The first, so many at most."""
        if len(self._items) <= most:
            self.arrived.clear()
        for _ in range(min(most, len(self._items))):
            yield self._items.popleft()
