"""An asyncio event loop in virtual time: waiting costs nothing, and everything happens in one thread.

Where a real loop would sleep until its next timer, this loop sets its clock to that timer. It runs the work of
executors at once. Coroutines of the live scheduler run unchanged, and equal calls cause equal orders of events.
"""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import Callable
from typing import Any


class _NeverWaits(selectors.SelectSelector):
    """A selector that records the requested timeout and returns at once."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("a task waits for ever: no timer and no callback is left in the virtual loop")
        self.passed += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time()` is virtual and begins at 0; `wall()` is the virtual time in seconds since the epoch.

    `random` draws the delays of retries (`scheduler.kube.backoff`); its seed is fixed.
    """

    def __init__(self, start: float) -> None:
        self._clock = _NeverWaits()
        super().__init__(self._clock)
        self._start = start
        self.random = random.Random(0)

    def time(self) -> float:
        return self._clock.passed

    def wall(self) -> float:
        """Return the virtual time, in seconds since the epoch."""
        return self._start + self._clock.passed

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Run `func` now, whatever the executor."""
        del executor
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - raised where the future is awaited
            future.set_exception(error)
        return future
