"""A bounded cache with expiry, so that a process that runs for months stays as small as a new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Keep the last `most` values by key, each of them for `seconds` by `clock`."""

    def __init__(self, seconds: float, most: int, clock: Callable[[], float]) -> None:
        self._seconds, self._most, self._clock = seconds, most, clock
        self._values: dict[K, tuple[float, V]] = {}
        """Oldest first."""

    def __len__(self) -> int:
        """Return the number of values; some of them may have expired since the last `set`."""
        return len(self._values)

    def __contains__(self, key: K) -> bool:
        found = self._values.get(key)
        return found is not None and self._clock() - found[0] < self._seconds

    def get(self, key: K) -> V | None:
        found = self._values.get(key)
        return found[1] if found is not None and self._clock() - found[0] < self._seconds else None

    def set(self, key: K, value: V) -> None:
        now = self._clock()
        self._values.pop(key, None)
        self._values[key] = (now, value)
        while len(self._values) > self._most or now - self._values[next(iter(self._values))][0] >= self._seconds:
            del self._values[next(iter(self._values))]

    def pop(self, key: K) -> None:
        """Remove a value if it exists."""
        self._values.pop(key, None)
