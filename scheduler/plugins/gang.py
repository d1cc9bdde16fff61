"""gang: run a job with at least `minMember` tasks (and the minima of its roles), or not at all.

Semantics: Volcano's `plugins/gang` and `api/job_info.go`. A minimum counts tasks that are placed, succeeded, or pending
without requests (`job_ready`); also pipelined tasks (`job_pipelined`); or also all pending tasks (`job_valid`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from ..framework.plugin import Covers, OrderedBy, Plugin
from ..framework.session import Session
from ..model.job import Job
from ..model.task import HOLDING, READY, Statuses, Task, TaskStatus
from ..policy.hooks import (
    EvictableByUnit,
    EvictSpare,
    JobOrder,
    JobPipelined,
    JobReachable,
    JobReady,
    JobStarving,
    JobValid,
    Limits,
    Vote,
)
from ..reasons import PodsMissing, UnschedulableReason
from ..topology.subgroups import REST, SubGroups, id_of

TAKING_PART = HOLDING | TaskStatus.SUCCEEDED | TaskStatus.PIPELINED | TaskStatus.PENDING
PIPELINED = READY | TaskStatus.PIPELINED
_PLACED_BEFORE = HOLDING & ~TaskStatus.ALLOCATED
"""Statuses of tasks that held room before the cycle, so that a cycle's own allocations do not move a job forward."""


class Gang(
    Plugin,
    JobValid,
    JobOrder,
    JobReady,
    JobPipelined,
    JobReachable,
    JobStarving,
    EvictableByUnit,
    EvictSpare,
):
    """Enforce the minimum of gangs. `scheduler.preemption.units` forms victims within the limits of `evict_spare`."""

    name = "gang"
    refusal_covers = Covers.LOWER_PRIORITIES
    job_order_depends_on = OrderedBy.JOB

    def open(self, session: Session) -> None:
        self._groups = session.shared(SubGroups)

    def job_order(self, job: Job) -> int:
        """Return 0 for gangs that have lost tasks, 1 for other jobs that are not ready, 2 for ready jobs.

        A job also counts as ready if its minimum is placed or pipelined and further tasks wait: these are above the
        minimum, so the minimum of any other job comes before them.
        A broken gang comes first because its remaining tasks hold capacity without doing work. Volcano serves it like
        any job that is not ready, so that by `drf` a new job comes before it (volcano#5805).
        """
        if _is_ready(job) or (job.waiting and _lacks_spare_tasks_only(job)):
            return 2
        return 0 if job.ready and job.count(_PLACED_BEFORE) else 1

    def job_ready(self, job: Job) -> bool:
        return _is_ready(job) and _roles_hold(job, READY) and self._groups.hold(job, READY)

    def job_pipelined(self, job: Job) -> Vote:
        enough = job.ready + job.waiting + job.undemanding >= job.min_available
        holds = enough and _roles_hold(job, PIPELINED) and self._groups.hold(job, PIPELINED)
        return Vote.PERMIT if holds else Vote.REJECT

    def job_reachable(self, job: Job, more: int) -> bool:
        return job.ready + job.waiting + more >= job.min_available

    def job_starving(self, job: Job) -> bool:
        """Whether the gang lacks tasks that need room.

        Pending tasks that request nothing count towards the minimum, as in `job_ready`. A job whose waiting tasks all
        request nothing starves: they may lack a pod slot.
        """
        if job.ready + job.waiting >= job.min_available:
            return not self._groups.hold(job, PIPELINED)
        lacks_only_undemanding = job.undemanding == len(job.by_status.get(TaskStatus.PENDING, ())) - job.gated
        return lacks_only_undemanding or self.job_pipelined(job) is not Vote.PERMIT

    def job_valid(self, job: Job) -> UnschedulableReason | None:
        if job.binding_roles:
            present = Counter(task.role for task in job.having(TAKING_PART))
            for role, minimum in sorted(job.binding_roles.items()):
                if present[role] < minimum:
                    return PodsMissing(present[role], minimum, role)
        if missing := self._groups.missing(job, TAKING_PART):
            name, complete, least = missing[0]
            return PodsMissing(complete, least, group=name)
        pods = job.count(TAKING_PART)
        return None if pods >= job.min_available else PodsMissing(pods, job.min_available)

    def evict_spare(self, job: Job, task: Task) -> Limits:
        """Return how many tasks the gang, the task's role and the task's subgroup have above their minimum.

        All tasks of a subgroup that has lost tasks, and gets none, are spare (KAI#2208).
        """
        limits: list[tuple[Hashable, int]] = [((job.key, None), max(job.ready - job.min_available, 0))]
        if not limits[0][1]:
            return tuple(limits)  # the usual case among thousands of candidates: no other limit matters
        of_role = job.binding_roles.get(task.role)
        if of_role is not None:
            have = sum(one.role == task.role for one in job.having(READY))
            limits.append(((job.key, task.role), max(have - of_role, 0)))
        policies = job.group.spec.sub_group_policy if job.group is not None else None
        if policies and (group := id_of(policies, task)) != REST:
            least = max(policies[group[0]].sub_group_size or 1, 1)
            have, coming = (
                sum(id_of(policies, one) == group for one in job.having(statuses))
                for statuses in (READY, TaskStatus.PIPELINED)
            )
            is_broken = have + coming < least  # what is left holds capacity without doing work
            limits.append(((job.key, group), have if is_broken else max(have - least, 0)))
        return tuple(limits)


def _lacks_spare_tasks_only(job: Job) -> bool:
    """Whether the minimum is placed or pipelined, and further tasks have no room yet."""
    enough = job.ready + job.waiting + job.undemanding >= job.min_available
    return enough and job.count(TaskStatus.PENDING) - job.gated > job.undemanding


def _roles_hold(job: Job, statuses: Statuses) -> bool:
    if not job.binding_roles:
        return True
    have = Counter(
        task.role for task in job.having(statuses | TaskStatus.PENDING) if task.status & statuses or _undemanding(task)
    )
    return all(have[role] >= minimum for role, minimum in job.binding_roles.items())


def _undemanding(task: Task) -> bool:
    return task.best_effort and not task.gated


def _is_ready(job: Job) -> bool:
    return job.ready + job.undemanding >= job.min_available
