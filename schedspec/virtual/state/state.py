"""The objects of a cluster at one moment."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import msgspec

from ...scheduler.inputs import Assumed, Noted, ObjectGone, ObjectSeen, PolicyLoaded
from ...scheduler.kube import WATCHED
from ...scheduler.model.errors import PlacedError
from ...scheduler.model.footprint import kept_of_pod
from ...scheduler.model.names import GROUP_NAME, VOLCANO_GROUP_NAME
from ...scheduler.model.objects import Pod
from ...scheduler.model.state_kinds import STATE_KINDS
from ...scheduler.model.task import job_key_of
from ...scheduler.model.times import timestamp

API_VERSIONS = {resource.kind: resource.api_version for resource in WATCHED}


def api_object(kind: str, item: msgspec.Struct) -> dict[str, Any]:
    return {"apiVersion": API_VERSIONS[kind], "kind": kind, **_plain(item)}


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return {
            field.encode_name: _plain(found)
            for field in _fields(type(value))
            if (found := getattr(value, field.name)) is not None and (found or found != field.default)
        }
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


@cache
def _fields(struct: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(struct)


class StateError(PlacedError):
    """A state that cannot be used."""


class CutStateError(StateError):
    """The file ends before the state is complete."""


class OtherVersionError(StateError):
    """The file was written by another version of the format."""


class TooOldError(StateError):
    """The state was taken too long ago."""


class TooLargeError(StateError):
    """The file is larger than any cluster's state."""


class ForeignStateError(StateError):
    """Another queueing system decides in this cluster."""


DAY = 86400.0


@dataclass(slots=True)
class State:
    """The state of a cluster: the objects of each kind of `model.state_kinds`, by key."""

    source: str
    taken: float = 0.0
    """Time at which the state was taken, in seconds since 1970."""
    is_exact: bool = True
    """Whether the file contains that time; otherwise `taken` is the newest time in an object."""
    objects: dict[str, dict[str, Any]] = field(default_factory=lambda: {kind: {} for kind in STATE_KINDS})
    others: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    """The objects of Kueue as the API served them, by kind and key, and the ConfigMap of its configuration."""
    policy: PolicyLoaded | None = None
    scheduler_names: list[str] = field(default_factory=list)
    """Schedulers whose pods are placed; empty: every pod of a PodGroup."""
    node_selector: dict[str, str] = field(default_factory=dict)
    redacted: bool = False
    left_out: Counter[str] = field(default_factory=Counter)
    """Kinds of objects in the file that influence no decision, with the number of objects."""
    notes: list[str] = field(default_factory=list)
    """Facts about the file that matter to readers of a result."""
    cut: bool = False
    """Whether the file is an incomplete recording: its scheduler still writes it, or was killed."""
    gangs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The PodGroups of `scheduling.k8s.io`, by key. Only the recording of a cluster has them."""
    _in_flight: dict[str, Assumed] = field(default_factory=dict)

    def put(self, kind: str, item: Any) -> None:
        """Add an object, or a later version of it."""
        self.objects[kind][item.metadata.key] = item
        if kind == "Pod":
            self._in_flight.pop(item.metadata.key, None)

    def forget(self, gone: ObjectGone) -> None:
        """Remove an object, unless its UID differs."""
        item = self.objects[gone.kind].get(gone.key)
        if item is not None and (not gone.uid or item.metadata.uid == gone.uid):
            del self.objects[gone.kind][gone.key]
            self._in_flight.pop(gone.key, None)

    def assume(self, write: Assumed) -> None:
        """Note a bind or an eviction that the API has not shown yet."""
        self._in_flight[write.key] = write

    def revert(self, key: str) -> None:
        """Note that the API refused the write in flight."""
        self._in_flight.pop(key, None)

    def settle(self) -> None:
        """Apply the writes in flight to the objects, as if all of them had succeeded."""
        pods = self.objects["Pod"]
        for key, write in self._in_flight.items():
            pod = pods.get(key)
            if pod is None or pod.metadata.uid != write.uid:
                continue
            if write.node:
                spec = msgspec.structs.replace(pod.spec, node_name=write.node)
                annotations = {**(pod.metadata.annotations or {}), **write.annotations} or None
                meta = msgspec.structs.replace(pod.metadata, annotations=annotations)
                pods[key] = Pod(meta, spec, pod.status)
            else:
                meta = msgspec.structs.replace(pod.metadata, deletion_timestamp=timestamp(self.taken))
                pods[key] = Pod(meta, pod.spec, pod.status)
        self._in_flight.clear()

    def inputs(self) -> Iterator[ObjectSeen]:
        """Yield all objects, in an order that depends on their names only."""
        for kind in STATE_KINDS:
            for _, item in sorted(self.objects[kind].items()):
                yield ObjectSeen(kind, item)

    def noted(self) -> Iterator[Noted]:
        """Yield the objects of Kueue, in the order of their names."""
        for _, found in sorted(self.others.items()):
            for _, obj in sorted(found.items()):
                yield Noted(obj)

    @property
    def moment(self) -> str:
        """Return the time of the state as the API writes it."""
        return timestamp(self.taken)

    @property
    def digest(self) -> str:
        """Return the sha256 of everything that influences decisions."""
        encode, total = msgspec.json.Encoder(order="deterministic").encode, hashlib.sha256()
        text = "" if self.policy is None else self.policy.text
        total.update(encode([self.scheduler_names, self.node_selector, text]))
        for given in (*self.inputs(), *self.noted()):
            total.update(encode(given))
        return total.hexdigest()

    def keep_scheduled(self, scheduler_names: Iterable[str] = ()) -> None:
        """Determine the schedulers whose pods are placed, and reduce all other pods to what affects these.

        Args:
            scheduler_names: The schedulers; by default those of the pods of PodGroups.
        """
        pods = self.objects["Pod"]
        named = {pod.spec.scheduler_name for pod in pods.values() if _is_of_a_group(pod)}
        self.scheduler_names = sorted({*scheduler_names} or named)
        for key, pod in pods.items():
            pods[key] = kept_of_pod(pod, 0, self.scheduler_names)

    def of_job(self) -> dict[str, list[Pod]]:
        """Return a map from the key of each PodGroup to its pods that this scheduler places, in the order of keys."""
        found: dict[str, list[Pod]] = {key: [] for key in sorted(self.objects["PodGroup"])}
        for _, pod in sorted(self.objects["Pod"].items()):
            if not self.scheduler_names or pod.spec.scheduler_name in self.scheduler_names:
                found.get(job_key_of(pod), []).append(pod)
        return found

    def queues_of_work(self) -> dict[str, str]:
        """Return the queue of each PodGroup and, for Kueue, the ClusterQueue of each Workload."""
        found = {key: group.spec.queue or "default" for key, group in self.objects["PodGroup"].items()}
        local = {
            key: str(obj["spec"].get("clusterQueue", "")) for key, obj in self.others.get("LocalQueue", {}).items()
        }
        for key, workload in self.others.get("Workload", {}).items():
            named = f"{workload['metadata']['namespace']}/{workload['spec'].get('queueName', '')}"
            found[key] = local.get(named, "")
        return found

    def check_age(self, now: float, most: float) -> None:
        """Raise TooOldError if the state was taken more than `most` seconds before `now`."""
        if now - self.taken > most:
            days = int((now - self.taken) // DAY) + 1
            then = f"was taken {render_age(now - self.taken)} ago, at {timestamp(self.taken)}"
            raise TooOldError(
                self.source,
                then if self.taken else "has no time: none of its objects has a creationTimestamp",
                f"take a new one with `schedspec dump`, or permit it with --max-age {days}d",
            )


def _is_of_a_group(pod: Pod) -> bool:
    annotations = pod.metadata.annotations or {}
    return bool(annotations.get(GROUP_NAME) or annotations.get(VOLCANO_GROUP_NAME))


def render_age(seconds: float) -> str:
    """Format an age in the largest unit of which it has at least two."""
    for unit, length in (("d", DAY), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
