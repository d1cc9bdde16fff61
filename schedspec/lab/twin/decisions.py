"""Read what a scheduler decided in a twin from the versions that the cluster showed.

A scheduler that places pods decides by binds and deletions; Kueue decides by the conditions of Workloads. Only their
owners delete pods in a twin as well, so that every other deletion is an eviction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ...api.client import Object
from ...api.kinds import Kind
from ...monitors import amounts
from ...observe import view
from ...observe.history import Version
from ..plan.answer import PlannedEviction, PlannedWorld, Start

_EVICTED, _RESERVED = "Evicted", "QuotaReserved"
_PREEMPTOR = re.compile(r"\(UID: ([^,)]*)")
"""Where a message of Kueue names the preempting Workload."""


@dataclass(slots=True)
class Work:
    """Where the work of a state belongs: names that a twin's objects do not have by themselves."""

    jobs: Mapping[str, str]
    """Pod → its job, for pods of jobs."""
    queues: Mapping[str, str]
    """Job or Workload → its queue."""
    names: Mapping[str, str] = field(default_factory=dict)
    """UID of a Workload → its key."""


class Decisions:
    """The decisions of one scheduler on one twin. Feed it each version in order; not thread-safe."""

    def __init__(self, work: Work, resource: str, scheduler_name: str, *, by_workload: bool) -> None:
        self._work, self._resource, self._by_workload = work, resource, by_workload
        self._scheduler_name = scheduler_name
        self.deleted: set[str] = set()
        """Uids of pods that their owners delete."""
        self._told: set[str] = set()
        """Pods and Workloads of which the scheduler has shown something since the world began."""
        self._live: dict[str, Object] = {}
        self._groups: dict[str, Object] = {}
        self._evicted: dict[str, PlannedEviction] = {}
        self._placed: dict[str, str] = {}
        """Pod or Workload that was placed and is not evicted since → its node."""

    def feed(self, version: Version) -> bool:
        """Add a version. Return whether it shows a decision."""
        key = f"{version.ref.namespace}/{version.ref.name}"
        if version.ref.kind in (Kind.PODGROUP, Kind.GANG, Kind.GANG_ALPHA):
            self._groups[key] = version.object
            return False
        if version.ref.kind != (Kind.WORKLOAD if self._by_workload else Kind.POD):
            return False
        before, obj = self._live.get(key), version.object
        if version.change == "gone":
            self._live.pop(key, None)
        else:
            self._live[key] = obj
        if version.change == "was":
            return False
        self._told.add(key)
        if _leaves(obj) and not (before is not None and _leaves(before)):
            if obj["metadata"].get("uid") in self.deleted:
                self._placed.pop(key, None)
            else:
                self._evict(key, obj)
            return True
        if _holds(obj) and not (before is not None and _holds(before)) and version.change != "gone":
            self._place(key, obj)
            return True
        return False

    @property
    def all_told(self) -> bool:
        """Whether the scheduler has shown something of all work that waits."""
        return all(key in self._told for key, obj in self._live.items() if self._waits(obj))

    def _waits(self, obj: Object) -> bool:
        is_ours = self._by_workload or obj["spec"].get("schedulerName") == self._scheduler_name
        return is_ours and not _holds(obj) and not _ended(obj)

    def _evict(self, key: str, obj: Object) -> None:
        self._placed.pop(key, None)
        mark = view.condition(obj, _EVICTED) if self._by_workload else view.eviction(obj) or {}
        preempted = view.condition(obj, "Preempted") if self._by_workload else {}
        why = str(preempted.get("message") or mark.get("message") or mark.get("reason") or "")
        named = _PREEMPTOR.search(why)
        preemptor = self._work.names.get(named[1], "") if named else ""
        job = self._job(key)
        self._evicted[key] = PlannedEviction(
            key, job, self._work.queues.get(job, ""), "" if self._by_workload else str(obj["spec"].get("nodeName", "")),
            preemptor, self._work.queues.get(preemptor, ""), str(preempted.get("reason") or mark.get("reason") or ""),
            why, pods=_pods_of(obj) if self._by_workload else 1,
        )  # fmt: skip

    def _place(self, key: str, obj: Object) -> None:
        if not self._by_workload:
            self._infer(key, str(obj["spec"]["nodeName"]))
        if key in self._evicted:
            self._evicted[key].runs_again = True
        else:
            self._placed[key] = "" if self._by_workload else obj["spec"]["nodeName"]

    def _infer(self, pod: str, node: str) -> None:
        """Take a pod as the preemptor of the victim on its node that has none, where the scheduler names none."""
        job = self._job(pod)
        for victim in self._evicted.values():
            if victim.node == node and victim.job != job and not victim.preemptor:
                victim.preemptor, victim.preemptor_queue = job, self._work.queues.get(job, "")
                return

    def result(self, deserved: Mapping[str, float], problem: str) -> PlannedWorld:
        """Return the world after the last version."""
        starts: dict[str, list[str]] = {}
        for key in sorted(self._placed):
            starts.setdefault(self._job(key), []).append(key)
        found = [
            Start(
                job,
                self._work.queues.get(job, ""),
                sum(_pods_of(self._live[key]) for key in keys if key in self._live) if self._by_workload else len(keys),
                [] if self._by_workload else [self._placed[key] for key in keys],
            )
            for job, keys in sorted(starts.items())
        ]
        held: dict[str, float] = {}
        for key, obj in self._live.items():
            if _holds(obj) and not view.is_over(obj):
                queue = self._work.queues.get(self._job(key), "")
                held[queue] = held.get(queue, 0.0) + self._amount(obj)
        held = {queue: amount for queue, amount in sorted(held.items()) if amount}
        return PlannedWorld([*self._evicted.values()], found, dict(self._waiting()), held, {**deserved}, 0, problem)

    def _job(self, key: str) -> str:
        return key if self._by_workload else self._work.jobs.get(key, key)

    def _waiting(self) -> Iterator[tuple[str, str]]:
        """Yield each job with waiting work, and the scheduler's words; the first pod's that it says something of."""
        found: dict[str, str] = {}
        for key, obj in sorted(self._live.items()):
            job = self._job(key)
            if self._waits(obj):
                found[job] = found.get(job) or view.reason(obj) or view.reason(self._groups.get(job, {}))
        yield from sorted((job, why or "the scheduler publishes no reason") for job, why in found.items())

    def _amount(self, obj: Object) -> float:
        if self._by_workload:
            sets = (obj["status"].get("admission") or {}).get("podSetAssignments") or ()
            used = amounts.total(amounts.parse(part.get("resourceUsage")) for part in sets)
            return float(used.get(self._resource, 0))
        return float(amounts.of_pod(obj).get(self._resource, 0))


def _leaves(obj: Object) -> bool:
    """Whether a pod is being deleted, or a Workload is evicted."""
    return bool(obj["metadata"].get("deletionTimestamp")) or view.condition(obj, _EVICTED).get("status") == "True"


def _holds(obj: Object) -> bool:
    """Whether a pod has a node, or a Workload has quota."""
    if obj["kind"] == "Pod":
        return bool(obj["spec"].get("nodeName"))
    return view.condition(obj, _RESERVED).get("status") == "True" and not _ended(obj)


def _ended(obj: Object) -> bool:
    return view.condition(obj, "Finished").get("status") == "True" or view.is_over(obj)


def _pods_of(workload: Object) -> int:
    return sum(int(part.get("count", 1)) for part in workload["spec"].get("podSets") or ())
