"""Results that are computed once and kept as long as their input does not change."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar, cast

T = TypeVar("T")


class Memo:
    """Results by key. Each caller uses keys of its own, and one type of result for each key."""

    def __init__(self) -> None:
        self._known: dict[Hashable, object] = {}

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the kept result, or else the result of `make`, which is kept from then on."""
        if key not in self._known:
            self._known[key] = make()
        return cast("T", self._known[key])

    def clear(self) -> None:
        """Drop all results, because their input has changed."""
        self._known.clear()
