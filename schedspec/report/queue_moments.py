"""Compute what queues held over time: the sum of a queue's pods and its descendants' pods, at every change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal

import msgspec

from ..api.kinds import Kind
from ..monitors import amounts
from ..monitors.amounts import NONE, Amounts
from ..monitors.ledger import Ledger
from ..monitors.object_state import keeps
from ..monitors.queues import usage
from ..observe.history import Object, Version
from .objects import Queues, parsed, plain, quantities
from .record import QueueMoment

_AT_ONCE = 0.001
"""Seconds within which changes of one queue are one moment."""


def queue_moments(ledger: Ledger, queues: Queues, is_tree: bool, clock: Callable[[float], float]) -> list[QueueMoment]:
    """Return the queues' numbers at every change. `clock` converts a history's time to the record's."""
    sums, now = _Sums(is_tree), 0.0
    holding: dict[str, tuple[str, Amounts]] = {}
    for version in ledger.versions:
        kind, name = version.ref.kind, version.ref.name
        if kind not in (Kind.POD, Kind.QUEUE):
            continue
        now = max(now, clock(version.at))
        if kind == Kind.QUEUE:
            if version.change == "gone":
                sums.queues.pop(name, None)
            else:
                sums.queues[name] = version.object
            sums.note(name, now)
            continue
        old, new = holding.pop(version.uid, None), _holds(version, queues)
        if new is not None:
            holding[version.uid] = new
        if old == new:
            continue
        touched = sums.add(old, -1) | sums.add(new, 1)
        for queue in touched:
            sums.note(queue, now)
    return sums.moments


@dataclass(slots=True)
class _Sums:
    """Track what each queue holds, and the moments at which the amount or the queue's object changed."""

    is_tree: bool
    queues: dict[str, Object] = field(default_factory=dict)
    moments: list[QueueMoment] = field(default_factory=list)
    _held: dict[str, dict[str, Decimal]] = field(default_factory=dict)
    _last: dict[str, int] = field(default_factory=dict)
    """The index of each queue's last moment."""

    def add(self, part: tuple[str, Amounts] | None, sign: int) -> dict[str, None]:
        """Add (1) or remove (-1) a pod's amounts at a queue and its ancestors, and return these queues."""
        lineage = self._lineage(part[0]) if part is not None else {}
        for name in lineage:
            sums = self._held.setdefault(name, {})
            for dimension, amount in part[1].items() if part is not None else ():
                sums[dimension] = sums.get(dimension, NONE) + sign * amount
        return lineage

    def note(self, name: str, now: float) -> None:
        """Record the queue's numbers if they have changed; simultaneous changes are one moment."""
        if name not in self.queues:
            return
        moment, index = _queue_moment(now, name, self._held.get(name, {}), self.queues[name]), self._last.get(name)
        if index is not None:
            before = self.moments[index]
            if msgspec.structs.replace(moment, at=before.at) == before:
                return
            if now - before.at < _AT_ONCE:
                self.moments[index] = msgspec.structs.replace(moment, at=before.at)
                return
        self._last[name] = len(self.moments)
        self.moments.append(moment)

    def _lineage(self, name: str) -> dict[str, None]:
        seen: dict[str, None] = {}
        while name and name not in seen and name != "root":
            seen[name] = None
            name = str((self.queues.get(name, {}).get("spec") or {}).get("parent") or "") if self.is_tree else ""
        return seen


def _holds(version: Version, queues: Queues) -> tuple[str, Amounts] | None:
    pod = version.object
    if version.change == "gone" or not keeps(pod):
        return None
    queue = queues.of(pod)
    return (queue, amounts.of_pod(pod)) if queue else None


def _queue_moment(at: float, name: str, held: Amounts, queue: Object) -> QueueMoment:
    spec, status = queue.get("spec") or {}, queue.get("status") or {}
    return QueueMoment(
        at,
        name,
        quantities(held),
        parsed(status.get("deserved") or spec.get("deserved")),
        parsed(spec.get("capability")),
        parsed((spec.get("guarantee") or {}).get("resource")),
        {model: plain(amount) for model, amount in usage.card_quota(queue).items()},
        str(spec.get("parent") or ""),
    )
