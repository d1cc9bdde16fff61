"""Share workers fairly among flows, usually namespaces: no flow can keep the others from being served.

1. Flows take turns.
2. A flow with slow items has at most twice as many workers as are free, so that a new flow always finds a worker.
   Network switches share their buffers in this way (the dynamic threshold of Choudhury and Hahne).
3. A waiting item occupies no worker.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Item = TypeVar("Item")

_BUSY_PER_FREE = 2


@dataclass(slots=True)
class _Flow(Generic[Item]):
    waiting: deque[Item] = field(default_factory=deque)
    busy: int = 0
    held_until: float = 0.0


class FairQueue(Generic[Item]):
    """A queue of items by flow.

    A worker calls `take`, works, and calls `done`. At most `workers` items are taken at a time. `alone` is the maximum
    number of workers of one flow while no other flow has items.

    >>> FairQueue(alone=64).workers
    96
    """

    def __init__(self, alone: int) -> None:
        self.workers = alone + -(-alone // _BUSY_PER_FREE)
        self._free = self.workers
        self._flows: dict[str, _Flow[Item]] = {}
        self._turns: dict[str, None] = {}
        """Flows with waiting items, the next one first."""
        self._takers: deque[asyncio.Future[None]] = deque()

    def put(self, flow: str, item: Item) -> None:
        """Add an item behind the waiting items of its flow."""
        found = self._flows.get(flow)
        if found is None:
            found = self._flows[flow] = _Flow()
        found.waiting.append(item)
        self._turns.setdefault(flow)
        if self._takers and self._may_take_another(found):
            self._wake_one()

    def hold(self, flow: str, seconds: float) -> None:
        """Return no item of this flow from `take` for `seconds` seconds."""
        loop = asyncio.get_running_loop()
        found = self._flows.setdefault(flow, _Flow())
        found.held_until = max(found.held_until, loop.time() + seconds)
        loop.call_at(found.held_until, self._release, flow)

    async def take(self) -> tuple[str, Item]:
        """Return the next item and its flow. The caller calls `done` afterwards."""
        while (flow := self._next_flow()) is None:
            taker = asyncio.get_running_loop().create_future()
            self._takers.append(taker)
            try:
                await taker
            except asyncio.CancelledError:
                if taker.done() and not taker.cancelled():
                    self._wake_one()  # pass the wake-up on
                raise
        item = self._take_of(flow)
        if self._takers and self._next_flow() is not None:
            self._wake_one()
        return flow, item

    def done(self, flow: str) -> None:
        """Release the worker of an item."""
        self._free += 1
        self._flows[flow].busy -= 1
        self._forget(flow)

    def _next_flow(self) -> str | None:
        return next((name for name in self._turns if self._may_take_another(self._flows[name])), None)

    def _take_of(self, name: str) -> Item:
        flow = self._flows[name]
        item = flow.waiting.popleft()
        flow.busy += 1
        self._free -= 1
        del self._turns[name]
        if flow.waiting:
            self._turns[name] = None
        return item

    def _may_take_another(self, flow: _Flow[Item]) -> bool:
        if flow.held_until and flow.held_until > asyncio.get_running_loop().time():
            return False
        left = self._free - 1
        return left >= 0 if not flow.busy else left > 0 and flow.busy < _BUSY_PER_FREE * self._free

    def _wake_one(self) -> None:
        while self._takers:
            taker = self._takers.popleft()
            if not taker.done():
                taker.set_result(None)
                return

    def _release(self, flow: str) -> None:
        found = self._flows.get(flow)
        if found is not None and found.held_until <= asyncio.get_running_loop().time():
            found.held_until = 0.0
            self._forget(flow)
            self._wake_one()

    def _forget(self, flow: str) -> None:
        found = self._flows[flow]
        if not (found.waiting or found.busy or found.held_until):
            del self._flows[flow]
