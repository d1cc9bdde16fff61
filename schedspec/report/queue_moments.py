"""Compute what queues held over time: the sum of a queue's pods and its descendants' pods, at every change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from ..api.kinds import Kind
from ..monitors.amounts import Amounts
from ..monitors.ledger import Ledger
from ..monitors.limits import card_quota
from ..monitors.reading import in_order, read
from ..observe.history import Object, Version
from .objects import parsed, plain, quantities
from .record import QueueMoment

_AT_ONCE = 0.001
"""Seconds within which changes of one queue are one moment."""


def queue_moments(ledger: Ledger, versions: Iterable[Version], clock: Callable[[float], float]) -> list[QueueMoment]:
    """Feed an empty ledger with a history, and return the queues' numbers at every change.

    `clock` converts a history's time to the record's.
    """
    found, now, known = _Moments(), 0.0, dict[str, Amounts]()
    for version in in_order(versions):
        ledger.counts_binds = version.change != "was"  # how it came about was not observed
        read(ledger, version)
        name = version.ref.name
        changed = [queue for queue in found.queues if known.get(queue) is not ledger.sums.below.get(queue)]
        if version.ref.kind == Kind.QUEUE:
            found.queues[name] = version.object
            if version.change == "gone":
                del found.queues[name]
            changed = [name, *changed]
        if changed:
            now = max(now, clock(version.at))
        for queue in changed:
            found.note(queue, now, ledger.below(queue))
        known = {queue: ledger.below(queue) for queue in found.queues} if changed else known
    return found.moments


@dataclass(slots=True)
class _Moments:
    """The moments at which what a queue holds, or the queue's object, has changed."""

    queues: dict[str, Object] = field(default_factory=dict)
    moments: list[QueueMoment] = field(default_factory=list)
    _last: dict[str, int] = field(default_factory=dict)
    """The index of each queue's last moment."""

    def note(self, name: str, now: float, held: Amounts) -> None:
        """Record the queue's numbers if they have changed; simultaneous changes are one moment."""
        if name not in self.queues:
            return
        moment, index = _queue_moment(now, name, held, self.queues[name]), self._last.get(name)
        if index is not None:
            before = self.moments[index]
            if msgspec.structs.replace(moment, at=before.at) == before:
                return
            if now - before.at < _AT_ONCE:
                self.moments[index] = msgspec.structs.replace(moment, at=before.at)
                return
        self._last[name] = len(self.moments)
        self.moments.append(moment)


def _queue_moment(at: float, name: str, held: Amounts, queue: Object) -> QueueMoment:
    spec, status = queue.get("spec") or {}, queue.get("status") or {}
    return QueueMoment(
        at,
        name,
        quantities(held),
        parsed(status.get("deserved") or spec.get("deserved")),
        parsed(spec.get("capability")),
        parsed((spec.get("guarantee") or {}).get("resource")),
        {model: plain(amount) for model, amount in card_quota(queue).items()},
        str(spec.get("parent") or ""),
    )
