"""Compute in one pass over a history what each queue holds, and the total of all nodes."""

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
from .rules import lineage

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


class QueueSums:
    """The holdings of each queue, alone and, if queues form a tree (`is_tree`), with its descendants."""

    def __init__(self, *, is_tree: bool = False) -> None:
        self.own: dict[str, Amounts] = {}
        """Without descendants. A sum that changes is a new object."""
        self.below: dict[str, Amounts] = {}
        """With descendants."""
        self._is_tree = is_tree
        self._parents: dict[str, str] = {}
        self._lines: dict[str, tuple[str, ...]] = {}

    def line(self, queue: str) -> tuple[str, ...]:
        """Return the queue and its ancestors."""
        found = self._lines.get(queue)
        if found is None:
            found = self._lines[queue] = tuple(lineage(queue, lambda name: self._parents.get(name, "")))
        return found

    def hold(self, queue: str, held: Amounts, sign: int) -> tuple[str, ...]:
        """Add to a queue and its ancestors; return them."""
        add(self.own, queue, held, sign)
        for name in self.line(queue):
            add(self.below, name, held, sign)
        return self.line(queue)

    def put(self, queue: str, parent: str) -> Iterable[str]:
        """Place a queue in the tree; return the queues of which `below` has changed."""
        if not self._is_tree or self._parents.get(queue, "") == parent:
            return ()
        self._parents[queue] = parent
        self._lines.clear()
        known, self.below = self.below, {}
        for own, held in self.own.items():
            for above in self.line(own):
                add(self.below, above, held, 1)
        return [name for name in {**known, **self.below} if known.get(name) != self.below.get(name)]


class Holdings(QueueSums):
    """Sums up for each queue what its bound pods request, until the pods end or are marked as victims.

    `apply` takes the versions of all kinds in the order of the API server's writes. Memory grows with what exists.
    """

    def __init__(self, *, is_tree: bool = False) -> None:
        super().__init__(is_tree=is_tree)
        self._of_pod: dict[str, tuple[str, Amounts]] = {}
        """By pod: its group, and the amounts that it holds."""
        self._of_group: dict[str, Amounts] = {}
        self._named: dict[str, dict[Kind, str]] = {}
        """The queue that each object of a group names, by the key of the group."""

    def apply(self, seen: Version) -> Iterable[str]:
        """Process the next version; return the queues of which `below` has changed."""
        obj, kind, name = None if seen.change == "gone" else seen.object, seen.ref.kind, key_of(seen.object)
        if kind == Kind.POD:
            return self._apply_pod(name, obj)
        if kind in view.QUEUED:
            return self._apply_group(kind, name, obj)
        return self.put(name, parent_of(obj)) if kind == Kind.QUEUE else ()

    def _apply_pod(self, name: str, pod: Object | None) -> Iterable[str]:
        before, after = self._of_pod.pop(name, None), _holding(pod)
        if after is not None:
            self._of_pod[name] = after
        if before == after:
            return ()
        changed: tuple[str, ...] = ()
        for part, sign in ((before, -1), (after, 1)):
            if part is not None:
                group, held = part
                add(self._of_group, group, held, sign)
                changed += self.hold(self._queue(group), held, sign)
        return dict.fromkeys(changed)

    def _apply_group(self, kind: Kind, name: str, group: Object | None) -> Iterable[str]:
        before, named = self._queue(name), self._named.setdefault(name, {})
        named.pop(kind, None)
        if group is not None:
            named[kind] = view.queue_named_by(group)
        if not named:
            del self._named[name]
        after, held = self._queue(name), self._of_group.get(name)
        if before == after or held is None:
            return ()
        return dict.fromkeys(self.hold(before, held, -1) + self.hold(after, held, 1))

    def _queue(self, group: str) -> str:
        named = self._named.get(group, {})
        return next((named[kind] for kind in view.QUEUED if kind in named), "")


def parent_of(queue: Object | None) -> str:
    """Return the parent that a queue names."""
    return str(((queue or {}).get("spec") or {}).get("parent") or "")


def _holding(pod: Object | None) -> tuple[str, Amounts] | None:
    if pod is None or not keeps(pod):
        return None
    group = group_of(pod)
    return (group, amounts.of_pod(pod)) if group else None


def add(sums: dict[str, Amounts], name: str, part: Amounts, sign: int) -> None:
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
