"""Delay reasons that the next event may resolve: a PodGroup that does not exist yet, pods that are being created.

A reason is reported once it has held for `SECONDS`. Callers pass the time.
"""

from __future__ import annotations

SECONDS = 2.0
"""Seconds that a reason has to hold before it is reported."""


class Debounce:
    """Reasons by key, from their start to their end."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}
        self._until: dict[str, float] = {}
        """When the delay of each delayed reason ends."""

    def has_run_out(self, key: str, reason: str, now: float) -> bool:
        """Return True if a reason that holds, new or old, is to be reported."""
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
        """Return the keys whose reasons are to be reported now."""
        return [key for key, until in self._until.items() if until <= now]

    def next(self) -> float | None:
        """Return when the next delay ends."""
        return min(self._until.values(), default=None)
