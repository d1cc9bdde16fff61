"""The virtual clock, and the queue of future events.

Time moves only forward, from one event to the next. Events of one instant run in the order of their rank, and within a
rank in the order in which they were added.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from enum import IntEnum

from ..scheduler.model.times import micro_timestamp

MAX_ROUNDS = 10_000
"""Rounds of events and cycles at one virtual instant before a run counts as stuck."""


class Rank(IntEnum):
    """The order of events at one instant: capacity is freed before it is requested, and pods start last."""

    END = 0
    """A pod ends, or a victim is removed."""
    CHANGE = 1
    """A node, a queue or another object of the cluster changes."""
    ARRIVAL = 2
    """Work is submitted."""
    START = 3
    """A bound pod runs."""


class SimulationError(Exception):
    """A run in virtual time cannot continue."""


class PastEventError(SimulationError):
    """An event was added at a time in the past."""

    def __init__(self, what: str, time: float, now: float) -> None:
        super().__init__(
            f"{what} is due at {micro_timestamp(time)}, but the virtual time is already {micro_timestamp(now)}; "
            "sort the inputs by time"
        )
        self.time, self.now = time, now


class StuckError(SimulationError):
    """Virtual time does not advance."""

    def __init__(self, now: float) -> None:
        super().__init__(
            f"{MAX_ROUNDS} rounds of decisions at the virtual time {micro_timestamp(now)}, and each causes another: "
            "the policy evicts and binds the same work for ever; give victims a grace period, or correct the policy"
        )
        self.now = now


Action = Callable[[], None]


class Event:
    """An action, unless it is cancelled."""

    __slots__ = ("action",)

    def __init__(self, action: Action) -> None:
        self.action: Action | None = action
        """None once the event is cancelled."""

    def cancel(self) -> None:
        """Forget the action: time does not advance to a cancelled event."""
        self.action = None


class Agenda:
    """The virtual time `now` (seconds since the epoch), and the future events."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now
        self._events: list[tuple[float, Rank, int, Event]] = []
        """Time, rank and number of each event: a heap compares tuples ten times as fast as objects."""
        self._added = 0
        self._rounds = 0

    @property
    def next(self) -> float:
        """When the next event is due; infinity if there is none."""
        while self._events and self._events[0][-1].action is None:
            heapq.heappop(self._events)
        return self._events[0][0] if self._events else math.inf

    def at(self, time: float, rank: Rank, action: Action, what: str = "an event") -> Event:
        """Add an event. Raises PastEventError."""
        if time < self.now:
            raise PastEventError(what, time, self.now)
        self._added += 1
        event = Event(action)
        heapq.heappush(self._events, (time, rank, self._added, event))
        return event

    def advance(self, time: float) -> None:
        """Set the clock. Raises PastEventError, or StuckError after too many rounds at one instant."""
        if time < self.now:
            raise PastEventError("the next event", time, self.now)
        self._rounds = self._rounds + 1 if time == self.now else 0
        if self._rounds > MAX_ROUNDS:
            raise StuckError(self.now)
        self.now = time

    def run_due(self) -> int:
        """Run all events that are due, including those that they add to the present instant. Return their number."""
        count = 0
        while self.next <= self.now:
            action = heapq.heappop(self._events)[-1].action
            assert action is not None  # `next` drops cancelled events
            action()
            count += 1
        return count
