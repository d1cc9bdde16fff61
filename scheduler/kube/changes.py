"""The changes that a reflector reports to its handlers.

A change describes the current state of an object, not an action, so a handler may receive the same change several
times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic

from .decoding import Malformed
from .resource import T


@dataclass(frozen=True, slots=True)
class Present(Generic[T]):
    """The object exists and has this content."""

    object: T


@dataclass(frozen=True, slots=True)
class Absent:
    """The object with this key (`namespace/name`, or the name) and uid no longer exists."""

    key: str
    uid: str
    last: Any = field(default=None, compare=False)
    """The object's last version, if a watch reported the deletion; it is not trimmed."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The object exists and cannot be read. Its previous content no longer holds."""

    key: str
    malformed: Malformed


Change = Present[T] | Absent | Unreadable
Handler = Callable[[Change[T]], None]
