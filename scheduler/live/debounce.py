"""Reasons that the next event may do away with: a group that is not there yet, pods that are still being made.

The one rule: what is being made is not complained of, what was never made is; time is given, never read.
"""

from __future__ import annotations

SECONDS = 2.0
"""How long a reason has to stand before it is told."""


class Debounce:
    """Reasons by key, from when they came up until they stand no more."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}
        self._until: dict[str, float] = {}
        """Of those that are not to be told yet."""

    def has_run_out(self, key: str, reason: str, now: float) -> bool:
        """Whether a reason that stands, since now or for a while, is to be told."""
        if self._reasons.get(key) != reason:
            self._reasons[key] = reason
            self._until[key] = now + SECONDS
        elif self._until.get(key, now) <= now:
            self._until.pop(key, None)
        return key not in self._until

    def forget(self, key: str) -> None:
        """No such reason stands any more."""
        self._reasons.pop(key, None)
        self._until.pop(key, None)

    def due(self, now: float) -> list[str]:
        """The keys of the reasons that are to be told now."""
        return [key for key, until in self._until.items() if until <= now]

    def next(self) -> float | None:
        """When the next of them is to be told."""
        return min(self._until.values(), default=None)
