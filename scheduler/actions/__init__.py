"""The actions of a cycle, by their names in a policy. Each action is a function that changes the session."""

from __future__ import annotations

from collections.abc import Callable

from ..framework.session import Session
from .allocate import allocate
from .backfill import backfill
from .enqueue import enqueue
from .preempt import preempt
from .reclaim import reclaim

ACTIONS: dict[str, Callable[[Session], None]] = {
    "enqueue": enqueue,
    "allocate": allocate,
    "backfill": backfill,
    "preempt": preempt,
    "reclaim": reclaim,
}
