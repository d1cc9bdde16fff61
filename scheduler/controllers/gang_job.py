"""The shell that the controllers of Jobs and of PyTorchJobs share: both run their pods as one gang with a PodGroup.

`GangJobController` maps changes of the job, its pods, its PodGroup, its queue and the nodes to keys of jobs. For each
key it gathers the observed state and calls the controller's pure `_reconcile`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec

from ..kube import NAMESPACES, PODGROUPS, PODS, PRIORITY_CLASSES, Resource, WorkQueue
from ..model import resources
from ..model.objects import Namespace, Pod, PodGroup, PriorityClass, Queue
from .queue.state import DEFAULT, is_relevant_change, limits_above, usability
from .runtime.commands import NO_COMMANDS, CommandBatch
from .runtime.controller import Context, unreadable
from .runtime.executor import About
from .runtime.objects import QUEUES, Command, PyTorchJob, VolcanoJob
from .runtime.ownership import owner_key, reconcile_delay, removals_of_orphans, scoped
from .runtime.pod_batches import NO_LIMITS, CapacityLimits
from .runtime.writes import ApplyObject, ReconcileResult, Write

J = TypeVar("J", bound=VolcanoJob | PyTorchJob)


@dataclass(frozen=True)
class ObservedGangJob(Generic[J]):
    """One job and all that its reconciliation reads. `pods` are the pods that it controls, of any version."""

    job: J
    pods: Sequence[Pod] = ()
    group: PodGroup | None = None
    classes: Mapping[str, PriorityClass] = field(default_factory=dict)
    commands: Sequence[Command] = ()
    """Commands to carry out; only a Volcano Job has any."""
    queue: str = DEFAULT
    """The job's queue: named by the job, its PodGroup or its namespace."""
    limits: CapacityLimits = NO_LIMITS
    """Upper limits of the capacity for the job's gang."""
    queue_problem: str = ""
    """Why that queue cannot be used (missing, closed, has children), or empty."""
    name_taken: str = ""
    """Message about an object of another owner that has a name the job needs, or empty."""
    scheduler_name: str = ""
    """Scheduler of pods whose job names none."""
    now: float = 0.0


class GangJobController(ABC, Generic[J]):
    """Jobs of one kind, each with one PodGroup."""

    name: str
    kind: Resource[Any]

    def __init__(self, context: Context) -> None:
        self._context = context
        self._queue = WorkQueue(self.name)
        self._jobs = context.view(self.kind)
        self._last_status: dict[str, tuple[str, Any]] = {}
        """Key → uid of the job and the status that was computed last, for fields that the served definition lacks."""
        self._pods = context.view(PODS)
        self._groups = context.view(PODGROUPS)
        self._queues = context.view(QUEUES)
        self._classes = context.view(PRIORITY_CLASSES)
        self._namespaces = context.view(NAMESPACES)
        nodes = context.watch_nodes(self._capacity_changed)
        self._needs = [self._jobs, self._pods, self._groups, self._queues, self._classes, self._namespaces, nodes]
        self._jobs.informer.on_key(self._queue.add)
        self._pods.informer.on_change(self._pod_changed)
        self._groups.informer.on_change(self._group_changed)
        self._queues.informer.on_change(self._queue_changed)

    @abstractmethod
    def _is_pending(self, job: J) -> bool:
        """Return True if the job has not started, so that a change of its queue may matter."""

    @abstractmethod
    def _reason_of(self, job: J) -> str:
        """Return the reason in the job's status, or empty."""

    @abstractmethod
    def _scheduler_names_of(self, job: J) -> Iterable[str]: ...

    @abstractmethod
    def _queue_of(self, job: J, group: PodGroup | None, namespace: Namespace | None) -> str: ...

    @abstractmethod
    def _replicas_of(self, job: J) -> int:
        """Return the total number of pods that the spec includes."""

    @abstractmethod
    def _reconcile(self, seen: ObservedGangJob[J]) -> ReconcileResult: ...

    def _commands_to(self, _key: str, _job: J | None) -> CommandBatch:
        return NO_COMMANDS

    def _group_of(self, job: J) -> PodGroup | None:
        """Return the PodGroup that was created for the job."""
        return next(iter(self._groups.by("owner", scoped(job.metadata.namespace, job.metadata.uid))), None)

    async def run(self) -> None:
        await self._context.work(self.name, self._queue, self._decide, *self._needs)

    def _pod_changed(self, before: Pod | None, after: Pod | None) -> None:
        if key := owner_key(self.kind, after or before):
            self._queue.add_after(key, reconcile_delay(before, after))

    def _group_changed(self, before: PodGroup | None, after: PodGroup | None) -> None:
        if key := owner_key(self.kind, after or before):
            self._queue.add(key)

    def _queue_changed(self, before: Queue | None, after: Queue | None) -> None:
        for job in self._jobs if is_relevant_change(before, after) else ():
            # jobs of every queue: the change may have added or removed a child of their queue
            if self._is_pending(job):
                self._queue.add(job.metadata.key)

    def _capacity_changed(self) -> None:
        for job in self._jobs:
            if self._reason_of(job) == "GangTooLarge":
                self._queue.add(job.metadata.key)

    async def _decide(self, key: str) -> tuple[ReconcileResult, About | None]:
        job: J | None = self._jobs.get(key)
        if job is None and (problem := unreadable(self._jobs, key)):
            return problem, None
        commands = self._commands_to(key, job)
        if job is None:
            self._last_status.pop(key, None)
            left = removals_of_orphans(self.kind, key, self._groups, self._pods)
            return ReconcileResult([*left, *commands.to_remove], commands.requeue_after), None
        if not all(map(self._context.is_ours, self._scheduler_names_of(job))):
            return ReconcileResult(), None
        seen = self._observe(key, self._completed(key, job), commands.to_carry_out)
        outcome = await self._context.run_decision(
            len(seen.pods) + self._replicas_of(job), partial(self._reconcile, seen)
        )
        for write in outcome.writes:
            if isinstance(write, ApplyObject) and write.resource is self.kind and write.sub == "status":
                self._last_status[key] = job.metadata.uid, write.body["status"]
        return ReconcileResult([*outcome.writes, *commands.to_remove], outcome.again), (self.kind, job.metadata)

    def _completed(self, key: str, job: J) -> J:
        """Return the job with the fields of its last status that the API server's definition of the kind lacks."""
        uid, last = self._last_status.get(key, ("", None))
        if uid != job.metadata.uid:
            return job
        kept = {
            field.name: getattr(last, field.name)
            for field in msgspec.structs.fields(last)
            if self._context.lacks(self.kind, "status", field.encode_name)
        }
        status: Any = job.status
        return msgspec.structs.replace(job, status=msgspec.structs.replace(status, **kept)) if kept else job

    def _observe(self, key: str, job: J, commands: Sequence[Command]) -> ObservedGangJob[J]:
        group = self._group_of(job)
        queue = self._queue_of(job, group, self._namespaces.get(job.metadata.namespace))
        return ObservedGangJob(
            job=job,
            pods=self._pods.by("owner", scoped(job.metadata.namespace, job.metadata.uid)),
            group=group,
            classes={found.metadata.name: found for found in self._classes},
            commands=commands,
            queue=queue,
            limits=CapacityLimits(self._context.capacity.total, limits_above(queue, self._queues)),
            queue_problem=usability(queue, list(self._queues), group),
            name_taken=self._context.name_taken(self.name, key),
            scheduler_name=self._context.scheduler_names[0],
            now=self._context.clock(),
        )


def is_outdated(group: PodGroup, wanted: Mapping[str, Any]) -> bool:
    """Return True if the spec of a PodGroup differs from the wanted one in its size or priority."""
    spec = group.spec
    return (
        spec.min_member != wanted["minMember"]
        or spec.priority_class_name != wanted.get("priorityClassName", "")
        or resources.parse(spec.min_resources) != resources.parse(wanted["minResources"])
    )


def group_update(group: PodGroup, wanted: dict[str, Any]) -> Write:
    """Return the write that updates the spec of a PodGroup and removes priority class and resources not in `wanted`."""
    wanted["minResources"] = {**dict.fromkeys(group.spec.min_resources or ()), **wanted["minResources"]}
    wanted.setdefault("priorityClassName", None)
    meta = group.metadata
    return ApplyObject(PODGROUPS, meta.namespace, meta.name, {"spec": wanted}, uid=meta.uid)
