"""Order a history as a ledger: every version in the order of the API server's writes, with the acts among them.

The order is that of resource versions, not of arrival, because watches of different kinds overtake each other. etcd
numbers all writes in one sequence, so numbers are comparable on every API server that this code runs against.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from ..api.kinds import Kind
from ..observe import view
from ..observe.history import Version
from ..observe.view import eviction
from . import amounts
from .amounts import Amounts, Object

_DETAILS = re.compile(r" \(|[,;]")


@dataclass(frozen=True)
class Violation:
    """A violation of a rule. `time` is on the history's clock, `about` names the pod or queue.

    `is_bind`: a bind broke the rule. The pod may be evicted in the same moment.
    """

    monitor: str
    time: float
    about: str
    text: str
    is_bind: bool = False


@dataclass(frozen=True)
class Act:
    """A bind or an eviction: the pod after the act, and the act's position in the ledger."""

    kind: str
    """`bind` or `evict`."""
    position: int
    time: float
    pod: Object
    action: str = ""
    """For an eviction `reclaim` or `preempt`, if the scheduler reports it."""
    message: str = ""

    @property
    def name(self) -> str:
        return str(self.pod["metadata"]["name"])

    @property
    def uid(self) -> str:
        return str(self.pod["metadata"]["uid"])

    @property
    def node(self) -> str:
        return str(self.pod["spec"].get("nodeName", ""))

    @property
    def cause(self) -> str:
        """The preemptor and the action of an eviction: the scheduler's message without its details."""
        return _DETAILS.split(self.message, maxsplit=1)[0]

    def violation(self, monitor: str, text: str) -> Violation:
        """Return the violation of a monitor's rule by this act."""
        return Violation(monitor, self.time, self.name, text, is_bind=self.kind == "bind")


class Ledger:
    """All versions in order, with queries about the state at a position."""

    def __init__(self, versions: Iterable[Version]) -> None:
        self.versions = sorted(versions, key=lambda seen: int(seen.object["metadata"].get("resourceVersion") or 0))
        self._of: dict[tuple[Kind, str], list[tuple[int, Object | None]]] = {}
        self._keys: dict[Kind, list[tuple[Kind, str]]] = {}
        for position, seen in enumerate(self.versions):
            key = (seen.ref.kind, _name(seen.object))
            if key not in self._of:
                self._keys.setdefault(seen.ref.kind, []).append(key)
            self._of.setdefault(key, []).append((position, None if seen.change == "gone" else seen.object))
        self.acts = list(self._find_acts())

    def _find_acts(self) -> Iterator[Act]:
        bound: set[str] = set()
        evicted: set[str] = set()
        for position, seen in enumerate(self.versions):
            if seen.ref.kind != Kind.POD:
                continue
            pod, uid = seen.object, str(seen.object["metadata"]["uid"])
            if pod["spec"].get("nodeName") and uid not in bound:
                bound.add(uid)
                yield Act("bind", position, seen.at, pod)
            mark = eviction(pod)
            if mark is not None and uid not in evicted:
                evicted.add(uid)
                message = str(mark.get("message", ""))
                action = (
                    "reclaim" if "reclaim" in message.lower() else "preempt" if "preempt" in message.lower() else ""
                )
                yield Act("evict", position, seen.at, pod, action, message)

    def binds(self) -> list[Act]:
        return [act for act in self.acts if act.kind == "bind"]

    def evictions(self) -> list[Act]:
        return [act for act in self.acts if act.kind == "evict"]

    def evictions_at(self, time: float) -> list[Act]:
        """Return the evictions of a moment: those of one decision, which may be written after its binds."""
        return self._evictions_at.get(time, [])

    @cached_property
    def _evictions_at(self) -> dict[float, list[Act]]:
        found: dict[float, list[Act]] = {}
        for act in self.evictions():
            found.setdefault(act.time, []).append(act)
        return found

    # ------------------------------------------------------------------------------------------------- at a position

    def at(self, position: int, kind: Kind, name: str) -> Object | None:
        """Return the object at a position, that version included, or None if it did not exist."""
        versions = self._of.get((kind, name), [])
        index = bisect.bisect_right(versions, position, key=lambda entry: entry[0]) - 1
        return versions[index][1] if index >= 0 else None

    def all_at(self, position: int, kind: Kind) -> list[Object]:
        """Return all objects of a kind that existed at a position."""
        found = (self.at(position, kind, name) for _, name in self._keys.get(kind, ()))
        return [item for item in found if item is not None]

    def lately(self, position: int, kind: Kind, name: str, seconds: float = 1.0) -> list[Object]:
        """Return the versions that the scheduler may have seen: those valid at a position and shortly before it."""
        since = self.versions[position].at - seconds
        versions = self._of.get((kind, name), [])
        index = bisect.bisect_right(versions, position, key=lambda entry: entry[0]) - 1
        found: list[Object] = []
        while index >= 0:
            at, version = versions[index]
            if version is not None:
                found.append(version)
            if self.versions[at].at < since:
                break
            index -= 1
        return found

    def holding(self, position: int) -> list[Object]:
        """Return the pods that occupy capacity on a node at a position."""
        return [p for p in self.all_at(position, Kind.POD) if p["spec"].get("nodeName") and not is_over(p)]

    def queue_of(self, position: int, pod: Object) -> str:
        """Return the name of the pod's queue; empty for a pod without a PodGroup."""
        found = (self.at(position, kind, group_of(pod)) for kind in view.QUEUED)
        return next((view.queue_named_by(group) for group in found if group is not None), "")


def generation_of(obj: Object) -> int:
    """Return how often the spec of an object was changed; 0 where the object does not count that."""
    return int(obj["metadata"].get("generation") or 0)


def _name(obj: Object) -> str:
    metadata = obj["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])


def group_of(pod: Object) -> str:
    """Return the key of the pod's PodGroup, or an empty text."""
    name = view.group_of(pod)
    return f"{pod['metadata'].get('namespace', '')}/{name}" if name else ""


def is_over(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def is_leaving(pod: Object) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp")) or eviction(pod) is not None


def taken(pods: Iterable[Object]) -> Amounts:
    """Return the sum of what pods occupy."""
    return amounts.total(amounts.of_pod(pod) for pod in pods)
