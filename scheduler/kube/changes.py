"""What can happen to an object, as whoever follows a kind of objects is told.

The one rule: a change says what is, not what was done: it is right however often it is told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from .decoding import Malformed
from .resource import T


@dataclass(frozen=True, slots=True)
class Present(Generic[T]):
    """The object exists, and is like this now."""

    object: T


@dataclass(frozen=True, slots=True)
class Absent:
    """The object of this key (``namespace/name`` or name) and uid is gone."""

    key: str
    uid: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The object exists and cannot be read; what was told of it before no longer holds."""

    key: str
    malformed: Malformed


Change = Present[T] | Absent | Unreadable
Handler = Callable[[Change[T]], None]
