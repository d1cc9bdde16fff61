"""Delay reports that the next event may make obsolete: a PodGroup does not exist yet, pods are being created.

A job's reason for waiting is reported once it has held for `SECONDS`. Callers pass the current time.
"""

from __future__ import annotations

SECONDS = 2.0
"""Seconds that a reason has to hold before it is reported."""


class Debounce:
    """The current reason of each key, and the end of its delay."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}
        self._until: dict[str, float] = {}
        """When the delay of each delayed reason ends."""

    def has_run_out(self, key: str, reason: str, now: float) -> bool:
        """Record a reason that holds now. Return True if its delay is over."""
        if self._reasons.get(key) != reason:
            self._reasons[key] = reason
            self._until[key] = now + SECONDS
        elif self._until.get(key, now) <= now:
            self._until.pop(key, None)
        return key not in self._until

    def forget(self, key: str) -> None:
        """Remove the reason of a key."""
        self._reasons.pop(key, None)
        self._until.pop(key, None)

    def due(self, now: float) -> list[str]:
        """Return the keys whose reasons are due to be reported."""
        return [key for key, until in self._until.items() if until <= now]

    def next(self) -> float | None:
        """Return when the next delay ends."""
        return min(self._until.values(), default=None)
