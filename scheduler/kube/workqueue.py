"""A queue of keys for controllers, with the semantics of client-go's rate limiting queue.

The one rule: two workers never process the same key at once. A key that is added meanwhile is processed again
afterwards.

A key that is added several times while it waits is processed once. Each failed key has a backoff of its own. Namespaces
share the workers fairly.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from .backoff import Backoff, again_after
from .errors import KubeError
from .fair_queue import FairQueue

log = logging.getLogger(__name__)


class WorkQueue:
    """Keys (`namespace/name`, or names) of one controller; at most `workers` of one namespace are processed at a time.

    `run(work)` awaits `work(key)` for each key. If `work` raises, the key is retried after a backoff that doubles from
    `first` to `most` seconds. If `work` returns, the backoff is reset.
    """

    def __init__(self, name: str, *, workers: int = 4, first: float = 0.01, most: float = 30.0) -> None:
        self.name = name
        self.failures = 0
        """Number of calls of `work` that failed."""
        self._first, self._most = first, most
        self._ready: FairQueue[str] = FairQueue(workers)
        self._waiting: set[str] = set()
        self._working: set[str] = set()
        self._again: set[str] = set()
        self._backoffs: dict[str, Backoff] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        """Return how many keys wait for a worker, without delayed ones."""
        return len(self._waiting) + len(self._again)

    def add(self, key: str) -> None:
        """Queue a key."""
        if key in self._working:
            self._again.add(key)
        elif key not in self._waiting:
            self._waiting.add(key)
            self._ready.put(_namespace_of(key), key)

    def add_after(self, key: str, seconds: float) -> None:
        """Queue a key in `seconds` seconds. Of several calls, the earliest time counts."""
        if seconds <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        at = loop.time() + seconds
        timer = self._timers.get(key)
        if timer is not None and not timer.cancelled() and timer.when() <= at:
            return
        if timer is not None:
            timer.cancel()
        self._timers[key] = loop.call_at(at, self._due, key)

    def _due(self, key: str) -> None:
        self._timers.pop(key, None)
        self.add(key)

    def retry(self, key: str) -> float:
        """Queue a key again after its backoff. Return the backoff in seconds."""
        pause = self._backoffs.setdefault(key, Backoff(self._first, self._most)).next()
        self.add_after(key, pause)
        return pause

    def forget(self, key: str) -> None:
        """Reset the backoff of a key."""
        self._backoffs.pop(key, None)

    async def run(self, work: Callable[[str], Awaitable[None]]) -> None:
        """Process keys until cancelled. Errors of `work` are logged and the key is retried; they never end a worker."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._ready.workers):
                group.create_task(self._work(work))

    async def _work(self, work: Callable[[str], Awaitable[None]]) -> None:
        while True:
            flow, key = await self._ready.take()
            self._waiting.discard(key)
            self._working.add(key)
            try:
                await work(key)
            except KubeError as error:
                self.failures += 1
                log.info(
                    "%s: %s failed, next attempt in %.2f s: %s",
                    self.name,
                    key,
                    self._retry_after(flow, key, error),
                    error,
                )
            except Exception:  # a defect that one object triggers must not stop the others
                self.failures += 1
                log.exception("%s: %s failed, next attempt in %.2f s", self.name, key, self.retry(key))
            else:
                self.forget(key)
            finally:
                self._ready.done(flow)
                self._working.discard(key)
                if key in self._again:
                    self._again.discard(key)
                    self.add(key)

    def _retry_after(self, flow: str, key: str, error: KubeError) -> float:
        pause = self.retry(key)
        again = again_after(error, Backoff())
        if again is None or not again.holds_flow:
            return pause
        self._ready.hold(flow, again.after)
        return max(pause, again.after)


def _namespace_of(key: str) -> str:
    namespace, slash, _ = key.partition("/")
    return namespace if slash else ""
