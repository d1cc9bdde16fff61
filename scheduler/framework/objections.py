"""Why a job as a whole cannot be placed, whatever room there is."""

from __future__ import annotations

from collections.abc import Mapping

from ..model.job import Job
from ..model.queue import Queue
from ..placement import unsupported
from ..reasons import QueueBroken, UnschedulableReason, Unsupported
from .plugin import OpenedPlugins


class Objections:
    """The objections of one cycle, each found once."""

    def __init__(self, plugins: OpenedPlugins, queues: Mapping[str, Queue]) -> None:
        self._plugins, self._queues = plugins, queues
        self._known: dict[str, UnschedulableReason | None] = {}

    def __contains__(self, job: Job) -> bool:
        """Whether `against` was called for the job before."""
        return job.key in self._known

    def against(self, job: Job) -> UnschedulableReason | None:
        """Return the reason why the job cannot be placed; None if there is none."""
        if job.key not in self._known:
            self._known[job.key] = self._find(job)
        return self._known[job.key]

    def has_any(self, job: Job) -> bool:
        """Whether a job cannot be placed as a whole; the answer is not recorded."""
        return (self._known[job.key] if job.key in self._known else self._find(job)) is not None

    def _find(self, job: Job) -> UnschedulableReason | None:
        hooks = self._plugins.hooks
        field = unsupported.of_job(job, topology=bool(hooks.closeness.functions))
        return Unsupported(job.key, field) if field else self._ignored(job) or hooks.job_valid(job)

    def _ignored(self, job: Job) -> QueueBroken | None:
        """Return the setting of the job's queue that every plugin of the policy ignores; None if there is none."""
        if self._queues[job.queue].object.spec.affinity is None or "nodegroup" in self._plugins.by_name:
            return None
        return QueueBroken(job.queue, "spec.affinity needs the plugin nodegroup, which the policy does not name")
