"""Order a history as a ledger: every version in the order of the API server's writes, with the acts among them.

The order is that of resource versions, not of arrival, because watches of different kinds overtake each other. etcd
numbers all writes in one sequence, so these numbers are comparable on every API server that this code runs against.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from ..api.kinds import Kind
from ..observe import view
from ..observe.history import Version
from ..observe.view import eviction
from . import amounts
from .amounts import Amounts, Object
from .holdings import Holdings, Timeline, capacities
from .object_state import group_of, holds, is_over, key_of

Key = TypeVar("Key")
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

    @cached_property
    def cause(self) -> str:
        """The preemptor and the action of an eviction: the scheduler's message without its details."""
        return _DETAILS.split(self.message, maxsplit=1)[0]

    @cached_property
    def group(self) -> str:
        """The key of the pod's PodGroup, or an empty text."""
        return group_of(self.pod)

    @cached_property
    def amounts(self) -> Amounts:
        """The amounts that the pod occupies on a node."""
        return amounts.of_pod(self.pod)

    def violation(self, monitor: str, text: str) -> Violation:
        """Return the violation of a monitor's rule by this act."""
        return Violation(monitor, self.time, self.name, text, is_bind=self.kind == "bind")


class Ledger:
    """All versions in order, with queries about the state at a position.

    Queries about one node, group, cause or queue use indexes, so monitors may make them at each act. `all_at` and
    `holding` read all objects of a kind: if they were called with pods at each act, the time to judge a history would
    grow with the square of its length.
    """

    def __init__(self, versions: Iterable[Version]) -> None:
        self.versions = in_order(versions)
        self._of: dict[tuple[Kind, str], list[tuple[int, Object | None]]] = {}
        self._names: dict[Kind, list[str]] = {}
        self._of_node: dict[str, dict[str, None]] = {}
        """The names of the pods that were ever on a node."""
        self._of_group: dict[str, dict[str, None]] = {}
        """The names of the pods that were ever in a group."""
        self._ends_on: dict[str, list[tuple[int, str]]] = {}
        """The positions at which pods of a node have ended or are gone, with the uid of each pod."""
        for position, seen in enumerate(self.versions):
            name = key_of(seen.object)
            key = (seen.ref.kind, name)
            if key not in self._of:
                self._names.setdefault(seen.ref.kind, []).append(name)
            self._of.setdefault(key, []).append((position, None if seen.change == "gone" else seen.object))
            if seen.ref.kind == Kind.POD:
                self._of_group.setdefault(group_of(seen.object), {})[name] = None
                if node := seen.object["spec"].get("nodeName"):
                    self._of_node.setdefault(node, {})[name] = None
                    if seen.change == "gone" or is_over(seen.object):
                        self._ends_on.setdefault(node, []).append((position, str(seen.object["metadata"]["uid"])))
        self.acts = list(self._find_acts())
        self._binds = [act for act in self.acts if act.kind == "bind"]
        self._evictions = [act for act in self.acts if act.kind == "evict"]

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

    # ------------------------------------------------------------------------------------------------------------ acts

    def binds(self) -> Sequence[Act]:
        return self._binds

    def binds_between(self, position: int, end: int) -> Sequence[Act]:
        """Return the binds after `position` and until `end`, `end` included."""
        first, last = (bisect.bisect_right(self._binds, limit, key=_position) for limit in (position, end))
        return self._binds[first:last]

    def last_bind_between(self, position: int, end: float, node: str) -> int | None:
        """Return the position of the last bind to a node after `position` and before `end`; None if there is none."""
        binds = self._binds_on.get(node, [])
        before = bisect.bisect_left(binds, end, key=_position) - 1
        return binds[before].position if before >= 0 and binds[before].position > position else None

    def ends_on(self, node: str) -> Sequence[tuple[int, str]]:
        """Return the positions at which pods of a node have ended or are gone, with the uid of each pod."""
        return self._ends_on.get(node, ())

    def evictions(self) -> Sequence[Act]:
        return self._evictions

    def causes_until(self, position: int) -> dict[str, Act]:
        """Return the last eviction of each cause until a position, this position included."""
        known = ((acts, bisect.bisect_right(acts, position, key=_position)) for acts in self._evictions_of.values())
        return {acts[number - 1].cause: acts[number - 1] for acts, number in known if number}

    def evictions_at(self, time: float) -> Sequence[Act]:
        """Return the evictions of a moment: those of one decision, which may be written after its binds."""
        return self._evictions_at.get(time, ())

    def evictions_of(self, cause: str) -> Sequence[Act]:
        return self._evictions_of.get(cause, ())

    def evictions_of_group(self, cause: str, group: str) -> Sequence[Act]:
        """Return the evictions of a group's pods for a cause."""
        return self._evictions_of_group.get((cause, group), ())

    def evictions_from(self, cause: str, node: str) -> Sequence[Act]:
        """Return the evictions from a node for a cause."""
        return self._evictions_from.get((cause, node), ())

    def preemptors(self, act: Act) -> list[str]:
        """Return the groups that the cause of an eviction names; none if the scheduler does not name its preemptor."""
        return [word for word in dict.fromkeys(act.cause.split()) if word in self._of_group]

    @cached_property
    def evictions_for(self) -> Mapping[str, Sequence[Act]]:
        """The evictions for each group that a cause names."""
        found: dict[str, list[Act]] = {}
        for act in self._evictions:
            for group in self.preemptors(act):
                found.setdefault(group, []).append(act)
        return found

    def acts_on(self, group: str) -> Sequence[Act]:
        """Return the binds and evictions of a group's pods."""
        return self._acts_on.get(group, ())

    @cached_property
    def _evictions_at(self) -> dict[float, list[Act]]:
        return _buckets(self._evictions, lambda act: act.time)

    @cached_property
    def _evictions_of(self) -> dict[str, list[Act]]:
        return _buckets(self._evictions, lambda act: act.cause)

    @cached_property
    def _evictions_of_group(self) -> dict[tuple[str, str], list[Act]]:
        return _buckets(self._evictions, lambda act: (act.cause, act.group))

    @cached_property
    def _evictions_from(self) -> dict[tuple[str, str], list[Act]]:
        return _buckets(self._evictions, lambda act: (act.cause, act.node))

    @cached_property
    def _binds_on(self) -> dict[str, list[Act]]:
        return _buckets(self._binds, lambda act: act.node)

    @cached_property
    def _acts_on(self) -> dict[str, list[Act]]:
        return _buckets(self.acts, lambda act: act.group)

    # ------------------------------------------------------------------------------------------------- at a position

    def at(self, position: int, kind: Kind, name: str) -> Object | None:
        """Return the object at a position, a version at this position included, or None if it did not exist."""
        versions = self._of.get((kind, name), [])
        index = bisect.bisect_right(versions, position, key=_position_of_version) - 1
        return versions[index][1] if index >= 0 else None

    def all_at(self, position: int, kind: Kind) -> list[Object]:
        """Return all objects of a kind that existed at a position."""
        return self._existing(position, kind, self._names.get(kind, ()))

    def _existing(self, position: int, kind: Kind, names: Iterable[str]) -> list[Object]:
        found = (self.at(position, kind, name) for name in names)
        return [item for item in found if item is not None]

    def lately(self, position: int, kind: Kind, name: str, seconds: float = 1.0) -> list[Object]:
        """Return the versions that the scheduler may have seen: those valid at a position and shortly before it."""
        since = self.versions[position].at - seconds
        versions = self._of.get((kind, name), [])
        index = bisect.bisect_right(versions, position, key=_position_of_version) - 1
        found: list[Object] = []
        while index >= 0:
            at, version = versions[index]
            if version is not None:
                found.append(version)
            if self.versions[at].at < since:
                break
            index -= 1
        return found

    def since(self, position: int, kind: Kind, name: str) -> Iterator[Object]:
        """Yield the versions of an object from a position on."""
        versions = self._of.get((kind, name), [])
        for _, version in versions[bisect.bisect_left(versions, position, key=_position_of_version) :]:
            if version is not None:
                yield version

    def holding(self, position: int) -> list[Object]:
        """Return the pods that occupy capacity on a node at a position."""
        return [pod for pod in self.all_at(position, Kind.POD) if holds(pod)]

    def on_node(self, position: int, node: str) -> list[Object]:
        """Return the pods that occupy capacity on this node at a position."""
        pods = self._existing(position, Kind.POD, self._of_node.get(node, ()))
        return [pod for pod in pods if holds(pod) and pod["spec"]["nodeName"] == node]

    def members(self, position: int, group: str) -> list[Object]:
        """Return the pods of a group that existed at a position."""
        pods = self._existing(position, Kind.POD, self._of_group.get(group, ()))
        return [pod for pod in pods if group_of(pod) == group]

    def pod_of(self, position: int, act: Act) -> Object | None:
        """Return the pod of an act as it is at a position; None if it is gone, even if a successor has its name."""
        pod = self.at(position, Kind.POD, key_of(act.pod))
        return pod if pod is not None and pod["metadata"]["uid"] == act.uid else None

    def queue_of(self, position: int, pod: Object) -> str:
        """Return the name of the pod's queue; empty for a pod without a PodGroup."""
        return self.queue_of_group(position, group_of(pod))

    def queue_of_group(self, position: int, group: str) -> str:
        """Return the name of a group's queue; empty if the group does not exist."""
        found = (self.at(position, kind, group) for kind in view.QUEUED)
        return next((view.queue_named_by(it) for it in found if it is not None), "")

    # --------------------------------------------------------------------------------------------------------- amounts

    def held(self, position: int) -> Mapping[str, Amounts]:
        """Return what the pods of each queue hold at a position, without descendants and without leaving pods."""
        return self._held.at(position)

    def capacity(self, position: int) -> Amounts:
        """Return the total allocatable amounts of all nodes at a position."""
        return self._capacity.at(position)

    @cached_property
    def _held(self) -> Timeline[dict[str, Amounts]]:
        sums = Holdings()
        return Timeline(((at, {**sums.own}) for at, seen in enumerate(self.versions) if sums.apply(seen)), {})

    @cached_property
    def _capacity(self) -> Timeline[Amounts]:
        return Timeline(capacities(self.versions), {})


def in_order(versions: Iterable[Version]) -> list[Version]:
    """Return versions in the order of the API server's writes."""
    return sorted(versions, key=lambda seen: int(seen.object["metadata"].get("resourceVersion") or 0))


def _position(act: Act) -> int:
    return act.position


def _position_of_version(entry: tuple[int, Object | None]) -> int:
    return entry[0]


def _buckets(acts: Iterable[Act], key: Callable[[Act], Key]) -> dict[Key, list[Act]]:
    found: dict[Key, list[Act]] = {}
    for act in acts:
        found.setdefault(key(act), []).append(act)
    return found


def occupied(pods: Iterable[Object]) -> Amounts:
    """Return the total amounts that pods occupy."""
    return amounts.total(amounts.of_pod(pod) for pod in pods)
