"""The history of one scenario: every observed object version in order of arrival. It only grows.

Waits, monitors, failure texts and reports read the history instead of the API server. A `View` is the cluster after one
version, so a check over views also sees states that lasted a millisecond.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from ..api import clock, spaces
from ..api.kinds import SERVED, Kind, Ref

Object = dict[str, Any]
Live = dict[Kind, dict[Ref, Object]]
Key = Callable[[Object], str]
Change = Literal["was", "added", "changed", "gone"]
"""`was`: the object existed when the scenario began."""


class Version(msgspec.Struct, frozen=True):
    """One object version with the time of its observation."""

    seq: int
    """Number of the version among all kinds, from 1, in order of arrival."""
    at: float
    """Monotonic seconds."""
    wall: float
    """Seconds since 1970."""
    change: Change
    ref: Ref
    object: Object
    """The object without managedFields; for `gone` its last state."""

    @property
    def uid(self) -> str:
        """Distinguishes the object from a successor of the same name."""
        return str(self.object["metadata"].get("uid", ""))


class View:
    """The cluster after version `seq`. Valid until the replay advances: copy data that must last."""

    def __init__(self, history: History, live: Live, seq: int, at: float) -> None:
        self.history, self.seq, self.at = history, seq, at
        self._live = live
        self._grouped: dict[tuple[Kind, Key], dict[str, dict[Ref, Object]]] = {}

    def get(self, kind: Kind, name: str) -> Object | None:
        """Return the object of that name in the scenario's namespace, or None."""
        return self._live.get(kind, {}).get(self.history.ref(kind, name))

    def all(self, kind: Kind) -> Iterator[Object]:
        """Return every live object of a kind in any namespace."""
        return iter(self._live.get(kind, {}).values())

    def mine(self, kind: Kind) -> Iterator[Object]:
        """Return the live objects of a kind in the scenario's namespace; all of them for kinds without namespaces."""
        space = self.history.space(kind)
        return (obj for ref, obj in self._live.get(kind, {}).items() if ref.namespace == space)

    def mine_by(self, kind: Kind, key: Key, value: str) -> Iterator[Object]:
        """Return those objects of `mine` for which `key` returns `value`.

        The result is read from an index; otherwise each check of one of many workloads would read all pods.
        """
        groups = self._grouped.get((kind, key))
        if groups is None:
            groups, space = {}, self.history.space(kind)
            for ref, obj in self._live.get(kind, {}).items():
                if ref.namespace == space:
                    groups.setdefault(key(obj), {})[ref] = obj
            self._grouped[(kind, key)] = groups
        return iter(groups.get(value, {}).values())

    def versions(self, kind: Kind, name: str | None = None) -> Iterator[Version]:
        """Return the versions so far of one kind in the scenario's namespace, or of one object, oldest first."""
        return (version for version in self.history.versions(kind, name) if version.seq <= self.seq)

    def _step(self, version: Version) -> None:
        before = _apply(self._live, version.ref, version.change, version.object)
        for (kind, key), groups in self._grouped.items():
            if version.ref.kind == kind and version.ref.namespace == self.history.space(kind):
                if before is not None:
                    groups[key(before)].pop(version.ref)
                if version.change != "gone":
                    groups.setdefault(key(version.object), {})[version.ref] = version.object
        self.seq, self.at = version.seq, version.at


def _apply(live: Live, ref: Ref, change: Change, obj: Object) -> Object | None:
    """Apply a version to the live objects. Return the replaced object, or None."""
    of_kind = live.setdefault(ref.kind, {})
    before = of_kind.get(ref)
    if change == "gone":
        of_kind.pop(ref, None)
    else:
        of_kind[ref] = obj
    return before


class History:
    """The history that the watches write and all other parts read. Thread-safe."""

    def __init__(self, namespace: str = "", seed: Mapping[Ref, Object] | None = None) -> None:
        self.namespace = namespace
        self.began, self.began_wall = clock.monotonic(), clock.wall()
        self.opened: float | None = None
        """When the world was ready for the first sentence.

        Objects that were deleted before that time belong to an earlier scenario.
        """
        self._versions: list[Version] = []
        self._by_ref: dict[Ref, list[Version]] = {}
        self._live: Live = {}
        self._changed = threading.Condition()
        for ref, obj in (seed or {}).items():
            self.record(ref, "was", obj)

    def __len__(self) -> int:
        return len(self._versions)

    def record(self, ref: Ref, change: Change, obj: Object) -> None:
        """Append an observed version. An object of a further namespace of the scenario gets the name it has there."""
        if space := spaces.space_of(self.namespace, ref.namespace):
            obj = spaces.plain(obj, self.namespace, space)
            ref = Ref(ref.kind, obj["metadata"]["name"], self.namespace)
        with self._changed:
            version = Version(len(self._versions) + 1, clock.monotonic(), clock.wall(), change, ref, obj)
            self._versions.append(version)
            self._by_ref.setdefault(ref, []).append(version)
            _apply(self._live, ref, change, obj)
            self._changed.notify_all()

    def wake(self) -> None:
        """Wake all waiters without a new version."""
        with self._changed:
            self._changed.notify_all()

    def wait(self, seen: int, timeout: float) -> None:
        """Return as soon as there are more than `seen` versions, or after `timeout` seconds."""
        with self._changed:
            if len(self._versions) <= seen:
                clock.wait(self._changed, timeout)

    def ref(self, kind: Kind, name: str) -> Ref:
        """Return the reference of that name in the scenario's namespace."""
        return Ref(kind, name, self.space(kind))

    def space(self, kind: Kind) -> str:
        """Return the scenario's namespace; empty for a kind without namespaces."""
        return self.namespace if SERVED[kind].namespaced else ""

    def now(self) -> View:
        """Return the last observed state as a copy that later versions do not change."""
        with self._changed:
            at = self._versions[-1].at if self._versions else self.began
            return View(self, {kind: dict(objects) for kind, objects in self._live.items()}, len(self._versions), at)

    def until(self, at: float) -> View:
        """Return the state at a time (monotonic seconds), without later versions."""
        view = View(self, {}, 0, self.began)
        for version in self.since(0):
            if version.at > at:
                break
            view._step(version)
        return view

    def since(self, seq: int) -> Sequence[Version]:
        """Return the versions after `seq`."""
        with self._changed:
            return self._versions[seq:]

    def story(self, ref: Ref) -> Sequence[Version]:
        """Return every version of one name, successors included, oldest first."""
        with self._changed:
            return tuple(self._by_ref.get(ref, ()))

    def versions(self, kind: Kind, name: str | None = None) -> Sequence[Version]:
        """Return every version of a kind in the scenario's namespace, or of its object `name`, oldest first."""
        if name is not None:
            return self.story(self.ref(kind, name))
        space = self.space(kind)
        return [version for version in self.since(0) if version.ref.kind == kind and version.ref.namespace == space]

    def seconds(self, at: float) -> float:
        """Convert a monotonic time to seconds since the scenario began."""
        return at - self.began


class Replay:
    """Iterate over the states of a history, from now on or from its beginning."""

    def __init__(self, history: History, *, from_start: bool = False) -> None:
        self._history = history
        self.view = View(history, {}, 0, history.began) if from_start else history.now()

    def states(self) -> Iterator[View]:
        """Yield the current state, then one state for each version since.

        Every yielded state is the same View object, which changes.
        """
        yield self.view
        for version in self._history.since(self.view.seq):
            self.view._step(version)
            yield self.view
