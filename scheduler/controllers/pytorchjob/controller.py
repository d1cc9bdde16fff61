"""The PyTorchJob controller's shell: which job to look at when something changes, and when to keep out.

The one rule: where a training operator is installed, PyTorchJobs are its own, and nothing is written here.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import cast

from ...kube import NAMESPACES, PODGROUPS, PODS, PRIORITY_CLASSES, WorkQueue
from ...model.objects import Pod, PodGroup, Queue
from ..queue.state import is_news, limits_above, usability
from ..runtime.controller import Context, unreadable
from ..runtime.executor import About
from ..runtime.objects import DEPLOYMENTS, PYTORCH_JOBS, QUEUES, PyTorchJob
from ..runtime.ownership import delay_of, left_behind, owner_key
from ..runtime.pods import controller_of
from ..runtime.slices import RoomLimits
from ..runtime.writes import ReconcileResult
from .reconcile import reconcile
from .state import ObservedTraining, queue_of
from .status import TrainingCondition

log = logging.getLogger(__name__)

OPERATOR = "control-plane=kubeflow-training-operator"
"""The label of the training operator's Deployment, as its manifests set it."""


class PyTorchJobController:
    """PyTorchJobs of ``kubeflow.org`` whose pods are ours to schedule."""

    name = "pytorchjob"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._queue = WorkQueue(self.name)
        self._jobs = context.view(PYTORCH_JOBS)
        self._pods = context.view(PODS)
        self._groups = context.view(PODGROUPS)
        self._classes = context.view(PRIORITY_CLASSES)
        self._queues = context.view(QUEUES)
        self._homes = context.view(NAMESPACES)
        self._operators = context.view(DEPLOYMENTS, labels=OPERATOR)
        nodes = context.watch_nodes(self._room_changed)
        others = (self._classes, self._queues, self._homes, self._operators, nodes)
        self._needs = (self._jobs, self._pods, self._groups, *others)
        self._jobs.informer.on_key(self._queue.add)
        self._pods.informer.on_change(self._pod_changed)
        self._groups.informer.on_change(self._group_changed)
        self._queues.informer.on_change(self._queue_changed)
        self._operators.informer.on_key(self._operator_changed)

    async def run(self) -> None:
        await self._context.work(self.name, self._queue, self._decide, *self._needs)

    def _pod_changed(self, before: Pod | None, after: Pod | None) -> None:
        if key := owner_key(PYTORCH_JOBS, after or before):
            self._queue.add_after(key, delay_of(before, after))

    def _group_changed(self, before: PodGroup | None, after: PodGroup | None) -> None:
        if key := owner_key(PYTORCH_JOBS, after or before):
            self._queue.add(key)

    def _queue_changed(self, before: Queue | None, after: Queue | None) -> None:
        for job in self._jobs if is_news(before, after) else ():
            if not job.status.conditions or job.status.conditions[-1].type == TrainingCondition.CREATED:
                self._queue.add(job.metadata.key)

    def _room_changed(self) -> None:
        for job in self._jobs:
            if job.status.conditions and job.status.conditions[-1].reason == "GangTooLarge":
                self._queue.add(job.metadata.key)

    def _operator_changed(self, key: str) -> None:
        whose = "its own" if len(self._operators.informer) else "ours"
        log.info("training operator %s: PyTorchJobs are %s", key, whose)
        for job in self._jobs:
            self._queue.add(job.metadata.key)

    async def _decide(self, key: str) -> tuple[ReconcileResult, About | None]:
        job: PyTorchJob | None = self._jobs.get(key)
        if len(self._operators.informer):
            return ReconcileResult(), None
        if job is None and (problem := unreadable(self._jobs, key)):
            return problem, None
        if job is None:
            return ReconcileResult(left_behind(PYTORCH_JOBS, key, self._groups, self._pods)), None
        if not self._is_ours(job):
            return ReconcileResult(), None
        group = self._group_of(job)
        queue = queue_of(job, group, self._homes.get(job.metadata.namespace))
        seen = ObservedTraining(
            job=job,
            pods=self._pods.by("owner", job.metadata.uid),
            group=group,
            classes=list(self._classes),
            queue=queue,
            place=RoomLimits(self._context.capacity.total, limits_above(queue, self._queues)),
            queue_problem=usability(queue, list(self._queues), group),
            scheduler_name=self._context.scheduler_names[0],
            now=self._context.clock(),
        )
        wanted = sum(replica.replicas or 0 for replica in job.spec.pytorch_replica_specs.values())
        outcome = await self._context.think(len(seen.pods) + wanted, partial(reconcile, seen))
        return outcome, (PYTORCH_JOBS, job.metadata)

    def _group_of(self, job: PyTorchJob) -> PodGroup | None:
        """The PodGroup that was made for the job, or one of its name that a user made and nobody owns."""
        if owned := self._groups.by("owner", job.metadata.uid):
            return cast(PodGroup, owned[0])
        found: PodGroup | None = self._groups.get(job.metadata.key)
        return found if found is not None and controller_of(found.metadata) is None else None

    def _is_ours(self, job: PyTorchJob) -> bool:
        specs = [replica.template.get("spec") or {} for replica in job.spec.pytorch_replica_specs.values()]
        return all(self._context.is_ours(spec.get("schedulerName", "")) for spec in specs)
