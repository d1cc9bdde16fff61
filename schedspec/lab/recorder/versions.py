"""Turn the inputs of a recording into the versions that monitors and pages read, as a stream of bounded memory.

1. Versions are sorted by the order of the API server's writes within the last seconds, because watches of different
   kinds overtake each other.
2. After a gap nothing can be concluded from what came before it: the reader restarts with the objects that live then.

The one rule: a version is a change that was observed. What a checkpoint shows for the first time is no change.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from ...api.kinds import SERVED, Kind, Ref, kind_of
from ...observe import view
from ...observe.history import Change, History, Object, Version
from ...observe.watcher import HistoryWriter
from ...scheduler.inputs import Gap, Input, Noted, ObjectGone, ObjectSeen, PolicyLoaded, Started, Taken, Unnoted
from ...schedulers import Adapter
from ...schedulers.kube_scheduler import KubeScheduler
from ...schedulers.kueue import Kueue
from ...schedulers.own import Own
from ...schedulers.volcano import Volcano
from ...virtual.state.state import api_object

ORDERED = 3.0
"""Seconds within which watches of different kinds may overtake each other."""
UNSETTLED = 1.0
"""Seconds after a gap of one kind in which its new list is reported, and nothing is concluded."""
_KINDS = {
    SERVED[kind].kind: kind
    for kind in (Kind.POD, Kind.NODE, Kind.QUEUE, Kind.PODGROUP, Kind.PRIORITYCLASS, Kind.HYPERNODE)
}
_LEDGER = ("pods", "nodes", "queues", "podgroups", "workloads")
"""Plurals of the kinds without whose versions nothing can be concluded."""


class Listener(Protocol):
    """Reads versions: a judge, or a window."""

    def restart(self, at: float, adapter: Adapter, policy: str, live: Mapping[Ref, Object], gap: Gap | None) -> None:
        """Begin anew with the objects that live at a time: at the beginning, after a gap, or under another policy."""

    def read(self, version: Version) -> None:
        """Process the next version."""

    def pass_time(self, at: float) -> None:
        """Process that all versions before a time were read."""


class VersionReader:
    """Reads inputs, and passes versions to a listener. Scheduler and policy are by default those of the recording."""

    def __init__(self, listener: Listener, adapter: Adapter | None = None, policy: str | None = None) -> None:
        self._listener, self._named, self._named_policy = listener, adapter, policy
        self._adapter: Adapter = adapter or Own()
        self._policy = policy or ""
        self._sink = _PassingHistory(self._arrived)
        self._writer = self._new_writer()
        self._checkpoint: dict[Kind, list[Object]] | None = None
        self._waiting: list[tuple[int, int, Version]] = []
        self._gap: Gap | None = None
        self._quiet_until = -float("inf")
        self._has_begun = False
        self._at = 0.0

    def read_all(self, inputs: Iterable[tuple[float, Input]]) -> None:
        for at, given in inputs:
            self.read(at, given)
        self.close()

    def read(self, at: float, given: Input) -> None:
        self._at = self._sink.moment = at
        if self._gap is not None and self._checkpoint is None and at > self._quiet_until:
            self._restart()
        match given:
            case Started():
                self._checkpoint = {}
            case PolicyLoaded():
                self._use_policy(given)
            case ObjectSeen() if given.kind in _KINDS:
                kind = _KINDS[given.kind]
                self._seen(kind, api_object(given.kind, given.object))
            case Noted():
                if (noted := _kind_of(given.object)) is not None:
                    self._seen(noted, given.object)
            case ObjectGone() if given.kind in _KINDS:
                self._gone(_KINDS[given.kind], given.key)
            case Unnoted():
                if (noted := _kind_of({"apiVersion": given.api_version, "kind": given.kind})) is not None:
                    self._gone(noted, given.key)
            case Taken():
                self._end_checkpoint()
            case Gap():
                self._on_gap(given)
        self._emit(at - ORDERED)
        if self._has_begun and self._gap is None:
            self._listener.pass_time(at - ORDERED)

    def close(self) -> None:
        """Read what still waits for earlier versions."""
        self._emit(float("inf"))
        self._listener.pass_time(self._at)

    def _use_policy(self, given: PolicyLoaded) -> None:
        if self._named_policy is not None or given.text == self._policy:
            return
        self._policy = given.text
        if self._checkpoint is None:
            self._emit(float("inf"))
            self._restart()

    def _on_gap(self, gap: Gap) -> None:
        if gap.kind and gap.kind.partition(".")[0] not in _LEDGER:
            return
        self._emit(float("inf"))
        self._gap, self._quiet_until = gap, gap.until + UNSETTLED

    def _end_checkpoint(self) -> None:
        found, self._checkpoint = self._checkpoint or {}, None
        if self._named is None:
            self._adapter = adapter_of(found)
        if not self._has_begun:
            self._writer = self._new_writer()
        for kind in {*found, *_KINDS.values(), *(Kind.WORKLOAD, Kind.GANG, Kind.GANG_ALPHA)}:
            self._writer.relisted(kind, found.get(kind, ()))
        self._restart()

    def _restart(self) -> None:
        gap, self._gap = self._gap, None
        self._waiting.clear()  # differences to the time before a gap are no changes
        self._has_begun = True
        self._listener.restart(self._at, self._adapter, self._policy, self._writer.live(), gap)

    def _new_writer(self) -> HistoryWriter:
        writer = HistoryWriter(self._adapter.marks)
        writer.history = self._sink
        return writer

    def _seen(self, kind: Kind, obj: Object) -> None:
        if self._checkpoint is None and self._has_begun:
            self._reconsider(kind, obj)
        if kind == Kind.EVENT:
            if self._checkpoint is None:
                ref = Ref(kind, obj["metadata"]["name"], obj["metadata"].get("namespace", ""))
                self._sink.record(ref, "added", obj)
        elif self._checkpoint is not None:
            self._checkpoint.setdefault(kind, []).append(obj)
        else:
            self._writer.record(kind, obj)

    def _reconsider(self, kind: Kind, obj: Object) -> None:
        """Begin anew with another adapter, if an object shows that another scheduler decides here than it seemed."""
        found = None if self._named is not None else _shown_by(kind, obj, self._adapter)
        if found is None:
            return
        self._emit(float("inf"))
        self._adapter, live = found, self._writer.live()
        self._writer = self._new_writer()
        for ref, known in live.items():
            self._writer.record(ref.kind, known)
        self._restart()

    def _gone(self, kind: Kind, key: str) -> None:
        namespace, _, name = key.rpartition("/")
        known = self._writer.known(Ref(kind, name, namespace))
        if known is not None:
            self._writer.record(kind, known, gone=True)

    def _arrived(self, version: Version) -> None:
        if not self._has_begun or self._checkpoint is not None or self._gap is not None:
            return
        if version.ref.kind == Kind.EVENT:  # events may have an etcd, and so numbers, of their own
            self._listener.read(version)
        else:
            written = int(version.object["metadata"].get("resourceVersion") or 0)
            heapq.heappush(self._waiting, (written, version.seq, version))

    def _emit(self, until: float) -> None:
        """Pass on the versions that were observed up to a time, and those written before them."""
        while self._waiting and self._waiting[0][2].at <= until:
            self._listener.read(heapq.heappop(self._waiting)[2])


class _PassingHistory(History):
    """Passes versions on instead of keeping them. Their clock is that of the recording."""

    def __init__(self, arrived: Callable[[Version], None]) -> None:
        super().__init__()
        self.moment, self._number, self._pass_on = 0.0, 0, arrived

    def record(self, ref: Ref, change: Change, obj: Object) -> None:
        self._number += 1
        self._pass_on(Version(self._number, self.moment, self.moment, change, ref, obj))


def _kind_of(obj: Mapping[str, object]) -> Kind | None:
    """Return the kind of a noted object, whatever the version of Kueue's API."""
    group, _, _ = str(obj.get("apiVersion", "")).rpartition("/")
    newest = f"{group}/v1beta2" if group == "kueue.x-k8s.io" else obj.get("apiVersion", "")
    return kind_of({"apiVersion": newest, "kind": obj.get("kind", "")})


def _shown_by(kind: Kind, obj: Object, seems: Adapter) -> Adapter | None:
    """Return the adapter of the scheduler that an object shows, if it is another one than it seems."""
    if isinstance(seems, Kueue):
        return None
    if kind in (Kind.WORKLOAD, Kind.CLUSTERQUEUE):
        return Kueue()
    if kind == Kind.POD and not isinstance(seems, Volcano) and obj["spec"].get("schedulerName") == Volcano.name:
        return Volcano() if view.group_of(obj) else None
    return Own() if kind in (Kind.PODGROUP, Kind.QUEUE) and isinstance(seems, KubeScheduler) else None


def adapter_of(objects: Mapping[Kind, Iterable[Object]]) -> Adapter:
    """Return the adapter of the scheduler that decides on a cluster's objects."""
    if objects.get(Kind.WORKLOAD) or objects.get(Kind.CLUSTERQUEUE):
        return Kueue()
    names = {str(pod["spec"].get("schedulerName", "")) for pod in objects.get(Kind.POD, ()) if view.group_of(pod)}
    if Volcano.name in names:
        return Volcano()
    has_queues = any(True for kind in (Kind.PODGROUP, Kind.QUEUE) for _ in objects.get(kind, ()))
    return Own() if has_queues else KubeScheduler()
