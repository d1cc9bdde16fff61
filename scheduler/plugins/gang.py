"""gang: a job runs with at least ``minMember`` tasks (and its roles with theirs), or not at all.

The one rule: what counts as running, waiting or missing is said here and nowhere else (semantics: Volcano's
``plugins/gang``,
``api/job_info.go``).
"""

from __future__ import annotations

from collections import Counter

from ..framework.plugin import Plugin
from ..model.job import Job
from ..model.task import HOLDING, READY, Statuses, Task, TaskStatus
from ..policy.hooks import (
    JobOrder,
    JobPipelined,
    JobReady,
    JobStarving,
    JobValid,
    PreemptableByUnit,
    ReclaimableByUnit,
    Vote,
)
from ..reasons import PodsMissing, UnschedulableReason

TAKING_PART = HOLDING | TaskStatus.SUCCEEDED | TaskStatus.PIPELINED | TaskStatus.PENDING
PIPELINED = READY | TaskStatus.PIPELINED


class Gang(Plugin, JobValid, JobOrder, JobReady, JobPipelined, JobStarving, ReclaimableByUnit, PreemptableByUnit):
    """See the module. Which tasks a gang can spare is told by :mod:`scheduler.preemption.units`."""

    name = "gang"

    def job_order(self, job: Job) -> bool:
        return _is_ready(job)

    def job_ready(self, job: Job) -> bool:
        return _is_ready(job) and _roles_hold(job, READY)

    def job_pipelined(self, job: Job) -> Vote:
        enough = job.ready + job.waiting + job.undemanding >= job.min_available
        return Vote.PERMIT if enough and _roles_hold(job, PIPELINED) else Vote.REJECT

    def job_starving(self, job: Job) -> bool:
        return job.ready + job.waiting < job.min_available

    def job_valid(self, job: Job) -> UnschedulableReason | None:
        if job.binding_roles:
            present = Counter(task.role for task in job.having(TAKING_PART))
            for role, minimum in sorted(job.binding_roles.items()):
                if present[role] < minimum:
                    return PodsMissing(present[role], minimum, role)
        pods = job.count(TAKING_PART)
        return None if pods >= job.min_available else PodsMissing(pods, job.min_available)


def _roles_hold(job: Job, statuses: Statuses) -> bool:
    if not job.binding_roles:
        return True
    have = Counter(
        task.role for task in job.having(statuses | TaskStatus.PENDING) if task.status & statuses or _free(task)
    )
    return all(have[role] >= minimum for role, minimum in job.binding_roles.items())


def _free(task: Task) -> bool:
    return task.best_effort and not task.gated


def _is_ready(job: Job) -> bool:
    return job.ready + job.undemanding >= job.min_available
