"""Compute in one pass, for each position of a history, what each queue holds and the total of all nodes."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from ..api.kinds import Kind
from ..observe import view
from ..observe.history import Version
from . import amounts
from .amounts import NONE, Amounts, Object
from .object_state import group_of, keeps, key_of

Value = TypeVar("Value")


class Timeline(Generic[Value]):
    """A value that changes at some positions; it is `first` until the first change."""

    def __init__(self, changes: Iterable[tuple[int, Value]], first: Value) -> None:
        self._positions, self._values = list[int](), [first]
        for position, value in changes:
            self._positions.append(position)
            self._values.append(value)

    def at(self, position: int) -> Value:
        """Return the value at a position, a change at this position included."""
        return self._values[bisect.bisect_right(self._positions, position)]


class Holdings:
    """Sums up for each queue what its bound pods request, until the pods end or are marked as victims."""

    def __init__(self, versions: Sequence[Version]) -> None:
        self._versions = versions
        self._of_pod: dict[str, tuple[str, Amounts]] = {}
        """By pod: its group, and the amounts that it holds."""
        self._of_group: dict[str, Amounts] = {}
        self._of_queue: dict[str, Amounts] = {}
        self._named: dict[str, dict[Kind, str]] = {}
        """The queue that each object of a group names, by the key of the group."""

    def by_queue(self) -> Iterator[tuple[int, dict[str, Amounts]]]:
        """Yield each position at which holdings change, with what all queues hold from then on, by name."""
        for position, seen in enumerate(self._versions):
            obj = None if seen.change == "gone" else seen.object
            if seen.ref.kind == Kind.POD:
                changed = self._apply_pod(key_of(seen.object), obj)
            elif seen.ref.kind in view.QUEUED:
                changed = self._apply_group(seen.ref.kind, key_of(seen.object), obj)
            else:
                continue
            if changed:
                yield position, dict(self._of_queue)

    def _apply_pod(self, name: str, pod: Object | None) -> bool:
        before, after = self._of_pod.pop(name, None), _holding(pod)
        if after is not None:
            self._of_pod[name] = after
        if before == after:
            return False
        for part, sign in ((before, -1), (after, 1)):
            if part is not None:
                group, held = part
                _add(self._of_group, group, held, sign)
                _add(self._of_queue, self._queue(group), held, sign)
        return True

    def _apply_group(self, kind: Kind, name: str, group: Object | None) -> bool:
        before, named = self._queue(name), self._named.setdefault(name, {})
        named.pop(kind, None)
        if group is not None:
            named[kind] = view.queue_named_by(group)
        after = self._queue(name)
        if before == after or name not in self._of_group:
            return False
        _add(self._of_queue, before, self._of_group[name], -1)
        _add(self._of_queue, after, self._of_group[name], 1)
        return True

    def _queue(self, group: str) -> str:
        named = self._named.get(group, {})
        return next((named[kind] for kind in view.QUEUED if kind in named), "")


def _holding(pod: Object | None) -> tuple[str, Amounts] | None:
    if pod is None or not keeps(pod):
        return None
    group = group_of(pod)
    return (group, amounts.of_pod(pod)) if group else None


def _add(sums: dict[str, Amounts], name: str, part: Amounts, sign: int) -> None:
    """Add to the sum of a queue or group, as a new object: yielded sums do not change. The name "" has no sum."""
    if not name:
        return
    before = sums.pop(name, {})
    after = {key: before.get(key, NONE) + sign * part.get(key, NONE) for key in {**before, **part}}
    if after := {key: amount for key, amount in after.items() if amount}:
        sums[name] = after


def capacities(versions: Sequence[Version]) -> Iterator[tuple[int, Amounts]]:
    """Yield each position at which the total allocatable amounts of all nodes change, with the new total."""
    nodes: dict[str, Amounts] = {}
    total: Amounts = {}
    for position, seen in enumerate(versions):
        if seen.ref.kind != Kind.NODE:
            continue
        before, after = nodes.pop(seen.ref.name, None), None
        if seen.change != "gone":
            after = nodes[seen.ref.name] = amounts.parse(seen.object.get("status", {}).get("allocatable"))
        if before == after:
            continue
        total = amounts.total((total, after or {}) if before is None else nodes.values())
        yield position, total
