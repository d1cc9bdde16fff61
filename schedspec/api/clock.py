"""The clock of a run: the machine's, or that of a cluster in virtual time.

Code that measures, waits or sleeps for the cluster uses this clock. Only a session that opens a simulated cluster sets
the clock, and it resets the clock when it closes.
"""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Seconds, and ways to let them pass."""

    def monotonic(self) -> float:
        """Monotonic seconds."""

    def wall(self) -> float:
        """Seconds since 1970."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        """Let time pass until the condition, which the caller holds, is notified."""


class _Real:
    """The machine's."""

    monotonic = staticmethod(time.monotonic)
    wall = staticmethod(time.time)
    sleep = staticmethod(time.sleep)

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        condition.wait(seconds)


REAL: Clock = _Real()
_current: Clock = REAL


def use(clock: Clock) -> None:
    """Measure by this clock from now on."""
    global _current  # noqa: PLW0603 - the one owner of this is the session
    _current = clock


def monotonic() -> float:
    """Monotonic seconds."""
    return _current.monotonic()


def wall() -> float:
    """Seconds since 1970."""
    return _current.wall()


def sleep(seconds: float) -> None:
    """Let time pass."""
    _current.sleep(seconds)


def wait(condition: threading.Condition, seconds: float) -> None:
    """Let time pass until the condition, which the caller holds, is notified."""
    _current.wait(condition, seconds)
