"""Everything the cluster showed during one scenario, in the order it was seen. Grows at the end, never changes.

Waits, monitors, failure texts and reports all read this; nobody asks the API server. A `View` is the cluster as it was
after one version: a check over views sees states that lasted for a millisecond.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from ..api.kinds import SERVED, Kind, Ref

Object = dict[str, Any]
Change = Literal["was", "added", "changed", "gone"]
"""`was`: it was there when the scenario began."""


class Version(msgspec.Struct, frozen=True):
    """One object as the cluster showed it at one time."""

    seq: int
    """Counts the versions of all kinds, from 1, in the order of arrival."""
    at: float
    """Monotonic seconds."""
    wall: float
    """Seconds since 1970."""
    change: Change
    ref: Ref
    object: Object
    """Without managedFields; for `gone` its last state."""

    @property
    def uid(self) -> str:
        """Sets a successor of the same name apart."""
        return str(self.object["metadata"].get("uid", ""))


class View:
    """The cluster after version `seq`. Valid until the replay goes on: copy what must last."""

    def __init__(self, history: History, live: dict[Ref, Object], seq: int, at: float) -> None:
        self.history, self.seq, self.at = history, seq, at
        self._live = live

    def get(self, kind: Kind, name: str) -> Object | None:
        """The object of that name in the scenario's namespace, or None."""
        return self._live.get(self.history.ref(kind, name))

    def all(self, kind: Kind) -> Iterator[Object]:
        """Every live object of a kind, in any namespace."""
        return (obj for ref, obj in self._live.items() if ref.kind == kind)

    def mine(self, kind: Kind) -> Iterator[Object]:
        """The live objects of a kind in the scenario's namespace; all of them for kinds without namespaces."""
        space = self.history.namespace if SERVED[kind].namespaced else ""
        return (obj for ref, obj in self._live.items() if ref.kind == kind and ref.namespace == space)

    def versions(self, kind: Kind, name: str | None = None) -> Iterator[Version]:
        """What was seen up to here of one kind in the scenario's namespace, or of one object, oldest first."""
        return (version for version in self.history.versions(kind, name) if version.seq <= self.seq)

    def _step(self, version: Version) -> None:
        if version.change == "gone":
            self._live.pop(version.ref, None)
        else:
            self._live[version.ref] = version.object
        self.seq, self.at = version.seq, version.at


class History:
    """Written by the watches, read by everybody. Thread-safe."""

    def __init__(self, namespace: str = "", seed: Mapping[Ref, Object] | None = None) -> None:
        self.namespace = namespace
        self.began, self.began_wall = time.monotonic(), time.time()
        self.opened: float | None = None
        """When the world was open for the first sentence; what was gone by then is of an earlier scenario."""
        self._versions: list[Version] = []
        self._by_ref: dict[Ref, list[Version]] = {}
        self._live: dict[Ref, Object] = {}
        self._changed = threading.Condition()
        for ref, obj in (seed or {}).items():
            self.record(ref, "was", obj)

    def __len__(self) -> int:
        return len(self._versions)

    def record(self, ref: Ref, change: Change, obj: Object) -> None:
        """Add what was just seen."""
        with self._changed:
            version = Version(len(self._versions) + 1, time.monotonic(), time.time(), change, ref, obj)
            self._versions.append(version)
            self._by_ref.setdefault(ref, []).append(version)
            if change == "gone":
                self._live.pop(ref, None)
            else:
                self._live[ref] = obj
            self._changed.notify_all()

    def wake(self) -> None:
        """Make every wait look again, though nothing was seen."""
        with self._changed:
            self._changed.notify_all()

    def wait(self, seen: int, timeout: float) -> None:
        """Return as soon as there are more than `seen` versions, or after `timeout` seconds."""
        with self._changed:
            if len(self._versions) <= seen:
                self._changed.wait(timeout)

    def ref(self, kind: Kind, name: str) -> Ref:
        """The object of that name in the scenario's namespace."""
        return Ref(kind, name, self.namespace if SERVED[kind].namespaced else "")

    def now(self) -> View:
        """The cluster as last seen. A copy: it does not go stale under the reader."""
        with self._changed:
            at = self._versions[-1].at if self._versions else self.began
            return View(self, dict(self._live), len(self._versions), at)

    def since(self, seq: int) -> Sequence[Version]:
        """The versions after `seq`."""
        with self._changed:
            return self._versions[seq:]

    def story(self, ref: Ref) -> Sequence[Version]:
        """Every version of one name, successors included, oldest first."""
        with self._changed:
            return tuple(self._by_ref.get(ref, ()))

    def versions(self, kind: Kind, name: str | None = None) -> Sequence[Version]:
        """Every version of a kind in the scenario's namespace, or of one object of it, oldest first."""
        if name is not None:
            return self.story(self.ref(kind, name))
        space = self.namespace if SERVED[kind].namespaced else ""
        return [it for it in self.since(0) if it.ref.kind == kind and it.ref.namespace == space]

    def seconds(self, at: float) -> float:
        """A monotonic time as seconds since the scenario began."""
        return at - self.began


class Replay:
    """Walks through a history state by state, as far as it has come, from now on or from its beginning."""

    def __init__(self, history: History, *, from_start: bool = False) -> None:
        self._history = history
        self.view = View(history, {}, 0, history.began) if from_start else history.now()

    def states(self) -> Iterator[View]:
        """The state that it stands at, then one state for each version seen since. Yields one View that changes."""
        yield self.view
        for version in self._history.since(self.view.seq):
            self.view._step(version)
            yield self.view
