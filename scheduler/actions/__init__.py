"""The actions, by the name that a policy calls them. Each is a function of the session, one module each."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.actions.allocate import allocate
from scheduler.actions.backfill import backfill
from scheduler.actions.enqueue import enqueue
from scheduler.actions.preempt import preempt
from scheduler.actions.reclaim import reclaim
from scheduler.session import Session

ACTIONS: dict[str, Callable[[Session], None]] = {
    "enqueue": enqueue,
    "allocate": allocate,
    "backfill": backfill,
    "preempt": preempt,
    "reclaim": reclaim,
}
