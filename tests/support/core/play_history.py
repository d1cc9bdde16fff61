"""Record a play of a case as the history that monitors judge: each object that the core received, in order."""

from __future__ import annotations

from typing import Any

from schedspec.api.kinds import Kind, Ref
from schedspec.api.marks import Marks
from schedspec.lab.simulate.monitored import as_shown
from schedspec.observe.history import Change, Object, Version
from schedspec.scheduler.inputs import ObjectGone, ObjectSeen
from schedspec.scheduler.reasons import VictimReason, render_victim
from schedspec.virtual.outcomes import Evicted

_KINDS = {"Pod": Kind.POD, "Node": Kind.NODE, "Queue": Kind.QUEUE, "PodGroup": Kind.PODGROUP}
(_EVICTED,) = Marks().evicted


class Recorder:
    """Listens to a play (`play.play`) and keeps versions."""

    def __init__(self) -> None:
        self.versions: list[Version] = []
        self.evictions: list[tuple[float, str, str]] = []
        """Time, pod without namespace, and action of each eviction."""
        self._last: dict[tuple[Kind, str], Object] = {}
        self._generations: dict[tuple[Kind, str], int] = {}
        self._marks: dict[str, list[dict[str, str]]] = {}
        """Conditions of victims, by uid."""

    def record(self, at: float, given: object) -> None:
        """Record an input of the core, or an outcome of the simulation."""
        match given:
            case ObjectSeen() if given.kind in _KINDS:
                self._record_object(at, _KINDS[given.kind], given.object)
            case ObjectGone() if given.kind in _KINDS:
                key = _KINDS[given.kind], given.key
                if (last := self._last.pop(key, None)) is not None:
                    self._record(at, key, "gone", last)
            case Evicted():
                self.evict(at, given.pod, given.reason)

    def _record_object(self, at: float, kind: Kind, found: Any) -> None:
        key = kind, found.metadata.key
        shown = as_shown(found)
        if (marks := self._marks.get(found.metadata.uid)) is not None:
            shown.setdefault("status", {})["conditions"] = marks
        change: Change = "changed" if key in self._last else "added"
        self._record(at, key, change, shown)

    def evict(self, at: float, pod: str, reason: VictimReason) -> None:
        """Record the eviction of a pod."""
        key = Kind.POD, pod
        last = self._last[key]
        mark = {**_EVICTED._asdict(), "message": render_victim(reason)}
        self._marks[str(last["metadata"]["uid"])] = [mark]
        self.evictions.append((at, pod.rpartition("/")[2], reason.action))
        status = {**last.get("status", {}), "conditions": [mark]}
        self._record(at, key, "changed", {**last, "status": status})

    def _record(self, at: float, key: tuple[Kind, str], change: Change, shown: Object) -> None:
        kind, name = key
        number = len(self.versions) + 1
        generation = self._generations[key] = self._generations.get(key, 0) + 1
        shown = {**shown, "metadata": {**shown["metadata"], "resourceVersion": str(number), "generation": generation}}
        space, _, short = name.rpartition("/")
        self.versions.append(Version(number, at, at, change, Ref(kind, short, space), shown))
        if change != "gone":
            self._last[key] = shown
