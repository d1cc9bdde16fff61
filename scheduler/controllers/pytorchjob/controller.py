"""The shell of the PyTorchJob controller: a `GangJobController` that defers to a training operator.

Where a training operator is installed, it manages all PyTorchJobs, and this controller writes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from ...model.objects import Namespace, PodGroup
from ..gang_job import GangJobController, ObservedGangJob
from ..runtime.controller import Context
from ..runtime.executor import About
from ..runtime.objects import DEPLOYMENTS, PYTORCH_JOBS, PyTorchJob
from ..runtime.pods import controller_of
from ..runtime.writes import ReconcileResult
from .pods import total_of
from .reconcile import reconcile
from .state import queue_of
from .status import TrainingCondition

log = logging.getLogger(__name__)

OPERATOR = "control-plane=kubeflow-training-operator"
"""Label of the training operator's Deployment in its manifests."""


class PyTorchJobController(GangJobController[PyTorchJob]):
    """PyTorchJobs of `kubeflow.org` whose pods we schedule."""

    name = "pytorchjob"
    kind = PYTORCH_JOBS

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._operators = context.view(DEPLOYMENTS, labels=OPERATOR)
        self._needs.append(self._operators)
        self._operators.informer.on_key(self._operator_changed)

    def _is_pending(self, job: PyTorchJob) -> bool:
        return not job.status.conditions or job.status.conditions[-1].type == TrainingCondition.CREATED

    def _reason_of(self, job: PyTorchJob) -> str:
        return job.status.conditions[-1].reason if job.status.conditions else ""

    def _scheduler_names_of(self, job: PyTorchJob) -> Iterable[str]:
        for replica in job.spec.pytorch_replica_specs.values():
            yield (replica.template.get("spec") or {}).get("schedulerName", "")

    def _queue_of(self, job: PyTorchJob, group: PodGroup | None, namespace: Namespace | None) -> str:
        return queue_of(job, group, namespace)

    def _replicas_of(self, job: PyTorchJob) -> int:
        return total_of(job)

    def _group_of(self, job: PyTorchJob) -> PodGroup | None:
        """Return the PodGroup that was created for the job, or a user's PodGroup with its name and without owner."""
        if owned := super()._group_of(job):
            return owned
        found: PodGroup | None = self._groups.get(job.metadata.key)
        return found if found is not None and controller_of(found.metadata) is None else None

    def _group_changed(self, before: PodGroup | None, after: PodGroup | None) -> None:
        super()._group_changed(before, after)
        group = after or before
        if group is not None and controller_of(group.metadata) is None and self._jobs.get(group.metadata.key):
            self._queue.add(group.metadata.key)

    def _operator_changed(self, key: str) -> None:
        manager = "the training operator" if len(self._operators.informer) else "this controller"
        log.info("Deployment %s changed: PyTorchJobs are managed by %s", key, manager)
        for job in self._jobs:
            self._queue.add(job.metadata.key)

    async def _decide(self, key: str) -> tuple[ReconcileResult, About | None]:
        return (ReconcileResult(), None) if len(self._operators.informer) else await super()._decide(key)

    def _reconcile(self, seen: ObservedGangJob[PyTorchJob]) -> ReconcileResult:
        return reconcile(seen)
