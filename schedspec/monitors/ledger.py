"""A history as a ledger: every version in the order in which the API server made it, and the acts among them.

The one rule: order is the resource version's, not that of arrival (watches of different kinds overtake each other).
etcd numbers all writes in one row, so comparing numbers is right on every API server that this runs against.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..api.kinds import Kind
from ..observe import view
from ..observe.history import Version
from ..observe.view import eviction
from . import amounts
from .amounts import Amounts, Object

_DETAILS = re.compile(r" \(|[,;]")


@dataclass(frozen=True)
class Violation:
    """Something that must not happen and did. ``time`` is the history's clock, ``about`` the pod or queue."""

    monitor: str
    time: float
    about: str
    text: str


@dataclass(frozen=True)
class Act:
    """A bind or an eviction: the pod as the act left it, and where in the ledger it stands."""

    kind: str
    """``bind`` or ``evict``."""
    position: int
    time: float
    pod: Object
    action: str = ""
    """Of an eviction: ``reclaim`` or ``preempt``, where the scheduler said it."""
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
        """For whom and by what the pod was evicted: what its message says before it goes into details."""
        return _DETAILS.split(self.message, maxsplit=1)[0]


class Ledger:
    """All versions in order, and the questions that monitors ask about a position in it."""

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

    # ------------------------------------------------------------------------------------------------- at a position

    def at(self, position: int, kind: Kind, name: str) -> Object | None:
        """The object as it was at a position (that version included), or None where there was none."""
        versions = self._of.get((kind, name), [])
        index = bisect.bisect_right(versions, position, key=lambda entry: entry[0]) - 1
        return versions[index][1] if index >= 0 else None

    def all_at(self, position: int, kind: Kind) -> list[Object]:
        """All objects of a kind that there were at a position."""
        found = (self.at(position, kind, name) for _, name in self._keys.get(kind, ()))
        return [item for item in found if item is not None]

    def lately(self, position: int, kind: Kind, name: str, seconds: float = 1.0) -> list[Object]:
        """The versions that the scheduler may have decided by: the one at a position and those valid shortly before."""
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
        """The pods that take room on a node at a position."""
        return [p for p in self.all_at(position, Kind.POD) if p["spec"].get("nodeName") and not is_over(p)]

    def queue_of(self, position: int, pod: Object) -> str:
        """The name of the pod's queue, or empty for a pod of no PodGroup."""
        group = self.at(position, Kind.PODGROUP, group_of(pod))
        if group is None:
            return ""
        return str(group["spec"].get("queue") or "default")


def _name(obj: Object) -> str:
    metadata = obj["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])


def group_of(pod: Object) -> str:
    """The key of the pod's PodGroup, or empty."""
    name = view.group_of(pod)
    return f"{pod['metadata'].get('namespace', '')}/{name}" if name else ""


def is_over(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def is_leaving(pod: Object) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp")) or eviction(pod) is not None


def taken(pods: Iterable[Object]) -> Amounts:
    """The sum of what pods take."""
    return amounts.total(amounts.of_pod(pod) for pod in pods)
