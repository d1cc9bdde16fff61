"""The clock of a run: the machine's clock, or the clock of a cluster in virtual time.

Code that measures, waits or sleeps for the cluster uses this clock. Only a session that opens a simulated cluster sets
the clock, and it resets the clock when it closes.
"""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """A source of time, and waits on it."""

    def monotonic(self) -> float:
        """Return monotonic seconds."""

    def wall(self) -> float:
        """Return seconds since 1970."""

    def sleep(self, seconds: float) -> None:
        """Sleep for some seconds."""

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        """Wait until the condition, which the caller holds, is notified, or the seconds are over."""


class _Real:
    """The clock of the machine."""

    monotonic = staticmethod(time.monotonic)
    wall = staticmethod(time.time)
    sleep = staticmethod(time.sleep)

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        condition.wait(seconds)


REAL: Clock = _Real()
_current: Clock = REAL


def use(clock: Clock) -> None:
    """Measure by this clock from now on."""
    global _current  # noqa: PLW0603 - only the session sets the clock
    _current = clock


def monotonic() -> float:
    """Return monotonic seconds."""
    return _current.monotonic()


def wall() -> float:
    """Return seconds since 1970."""
    return _current.wall()


def sleep(seconds: float) -> None:
    """Sleep for some seconds."""
    _current.sleep(seconds)


def wait(condition: threading.Condition, seconds: float) -> None:
    """Wait until the condition, which the caller holds, is notified, or the seconds are over."""
    _current.wait(condition, seconds)
