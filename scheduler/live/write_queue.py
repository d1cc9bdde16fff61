"""Execute the writes of binds and evictions: fairly among namespaces, with retries, evictions in waves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from ..kube.backoff import Again
from ..kube.fair_queue import FairQueue

log = logging.getLogger(__name__)

Work = Callable[[], Awaitable[Again | None]]
"""One attempt at a write. Returns when to repeat the attempt; None if nothing is left to do."""

_STALLS_AFTER = 1.0
"""Seconds without an answer after which less urgent writes no longer wait for a flow."""
_CHECK_EVERY = 0.2


@dataclass(slots=True, eq=False)
class _Write:
    attempt: Work
    is_new: bool = True
    """Whether the write has had no attempt yet."""


@dataclass(slots=True)
class _Load:
    """The new writes of a flow: writes before or in their first attempt."""

    new: int
    progressed: float
    """When one of them last finished its first attempt, by the loop's clock."""


class WorkerPool:
    """Workers for writes of one urgency, shared fairly among flows. The writes of a flow start in the order of `put`.

    A write that has to be repeated waits without a worker and is no longer `pressing`, nor are the writes of a flow
    without answers.
    """

    def __init__(self, in_flight: int) -> None:
        self._queue: FairQueue[_Write] = FairQueue(in_flight)
        self._unfinished = 0
        self._loads: dict[str, _Load] = {}
        self._settled = asyncio.Event()

    def __len__(self) -> int:
        """Return how many writes wait, are in flight, or are to be repeated."""
        return self._unfinished

    @property
    def untried(self) -> int:
        """Return how many writes are before or in their first attempt."""
        return sum(load.new for load in self._loads.values())

    @property
    def pressing(self) -> int:
        """Return how many of the `untried` writes are in flows that get answers."""
        if not self._loads:
            return 0
        since = asyncio.get_running_loop().time() - _STALLS_AFTER
        return sum(load.new for load in self._loads.values() if load.progressed > since)

    def put(self, flow: str, work: Work) -> None:
        self._unfinished += 1
        load = self._loads.get(flow)
        if load is None:
            self._loads[flow] = _Load(1, asyncio.get_running_loop().time())
        else:
            load.new += 1
        self._queue.put(flow, _Write(work))

    async def settled(self) -> None:
        """Wait until no write is pressing."""
        while self.pressing:
            self._settled.clear()
            try:
                async with asyncio.timeout(_CHECK_EVERY):  # a flow that stalls stops being pressing without an event
                    await self._settled.wait()
            except TimeoutError:
                pass

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._queue.workers):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            flow, write = await self._queue.take()
            again: Again | None = None
            try:
                again = await write.attempt()
            except Exception:  # a defect that one pod triggers must not stop the other writes
                log.exception("write dropped after an unexpected error")
            finally:
                self._queue.done(flow)
                self._tried(flow, write)
            if again is None:
                self._unfinished -= 1
            elif again.holds_flow:
                self._queue.hold(flow, again.after)
                self._queue.put(flow, write)
            else:
                asyncio.get_running_loop().call_later(again.after, self._queue.put, flow, write)

    def _tried(self, flow: str, write: _Write) -> None:
        if not write.is_new:
            return
        write.is_new = False
        load = self._loads[flow]
        load.new -= 1
        load.progressed = asyncio.get_running_loop().time()
        if not load.new:
            del self._loads[flow]
            self._settled.set()


class WaveBarrier:
    """Delay the next wave of victims until the barrier opens, which calls `then`.

    The barrier opens once the eviction of each victim was attempted, or after `seconds`, so that a namespace without
    answers does not delay other namespaces.
    """

    def __init__(self, uids: Iterable[str], seconds: float, then: Callable[[], None]) -> None:
        self._left = set(uids)
        self._then = then
        self._is_open = False
        self._timer = asyncio.get_running_loop().call_later(seconds, self._open)

    def tried(self, uid: str) -> None:
        """Record the first attempt to evict a victim, with any result."""
        self._left.discard(uid)
        if not self._left:
            self._open()

    def _open(self) -> None:
        if not self._is_open:
            self._is_open = True
            self._timer.cancel()
            self._then()


class TerminatingPods:
    """Victims that are being deleted. Each victim counts until it is deleted, for `seconds` at most."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: dict[str, float] = {}
        """Uid → when the victim no longer counts, by the loop's clock; oldest first."""
        self._none_left = asyncio.Event()
        self._none_left.set()

    def __bool__(self) -> bool:
        now = asyncio.get_running_loop().time()
        while self._until and next(iter(self._until.values())) <= now:
            self.gone(next(iter(self._until)))
        return bool(self._until)

    def add(self, uid: str) -> None:
        """Add a victim that is being deleted."""
        self._until[uid] = asyncio.get_running_loop().time() + self._seconds
        self._none_left.clear()

    def gone(self, uid: str) -> None:
        """Remove a deleted pod; it need not be a victim."""
        self._until.pop(uid, None)
        if not self._until:
            self._none_left.set()

    async def wait(self) -> None:
        """Wait until no victim is left. Call with a timeout: the limit of `seconds` does not end this wait."""
        if self:
            await self._none_left.wait()
