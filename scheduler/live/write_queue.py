"""What waits for what among writes.

The one rule: nothing here knows what is written.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)

Work = Callable[[], Awaitable[None]]


class WorkerPool:
    """Work of one urgency, so many at a time, in the order in which it came."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._waiting: deque[Work] = deque()
        self._some = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._busy = 0

    def __len__(self) -> int:
        """How much is waiting or in flight."""
        return len(self._waiting) + self._busy

    def put(self, work: Work) -> None:
        self._waiting.append(work)
        self._some.set()
        self._idle.clear()

    async def idle(self) -> None:
        """Wait until nothing is waiting or in flight."""
        await self._idle.wait()

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._width):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            while not self._waiting:
                self._some.clear()
                await self._some.wait()
            work = self._waiting.popleft()
            self._busy += 1
            try:
                await work()
            except Exception:  # a bug met on one pod must not stop the others
                log.exception("a write failed in an unforeseen way")
            finally:
                self._busy -= 1
                if not self._busy and not self._waiting:
                    self._idle.set()


class WaveBarrier:
    """Counts the victims of one wave that still have to be told; those behind wait for it."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._all = asyncio.Event()

    def one(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self._all.set()

    async def wait(self) -> None:
        await self._all.wait()


class TerminatingPods:
    """Victims on their way out. Each counts until it is gone, for ``seconds`` at most."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: dict[str, float] = {}
        """By uid, oldest first, by the loop's clock."""
        self._none = asyncio.Event()
        self._none.set()

    def __bool__(self) -> bool:
        now = asyncio.get_running_loop().time()
        while self._until and next(iter(self._until.values())) <= now:
            self.gone(next(iter(self._until)))
        return bool(self._until)

    def add(self, uid: str) -> None:
        """A victim is being deleted from now on."""
        self._until[uid] = asyncio.get_running_loop().time() + self._seconds
        self._none.clear()

    def gone(self, uid: str) -> None:
        """A victim, or any other pod, is gone."""
        self._until.pop(uid, None)
        if not self._until:
            self._none.set()

    async def wait(self) -> None:
        """Wait until none is left; call with a timeout, as time alone ends nothing here."""
        if self:
            await self._none.wait()
