"""Define what an action may evict: the candidates for one job.

Reclaim and preempt differ mainly in this module; the search for victims is common to both. (Semantics: the filters of
Volcano's `actions/reclaim` and `actions/preempt`.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ..framework.session import Session
from ..framework.statement import Statement
from ..model.job import Job
from ..model.queue import Queue
from ..model.task import Statuses, Task, TaskStatus
from ..policy.tiers import Permitted, Protections, Spares
from ..reasons import ProtectedBy, UnschedulableReason
from ..topology.domains import Domain
from ..topology.subgroups import SubGroup

Where = Callable[[Task], Domain | None]
"""Return the domain in which room is made for a task; None for any node."""


Objection = Callable[["PreemptionRequest", Statement, Sequence[Task]], UnschedulableReason | None]
"""Return why the job of a request may not have the victims of a statement that has placed these tasks of it."""


def _anywhere(_: Task) -> Domain | None:
    return None


def _no_objection(*_: object) -> None:
    return None


RECLAIM, PREEMPT = "reclaim", "preempt"


@dataclass(slots=True)
class PreemptionRequest:
    """One job that needs room, and the rules by which an action may evict for it.

    Args:
        within_job: the candidates are tasks of the job itself, not of other jobs (second half of preempt).
        holders: jobs of any queue that wait for room that is being freed (`scheduler.preemption.holds`).
    """

    session: Session
    action: str
    job: Job
    queue: Queue = field(init=False)
    statuses: Statuses = field(init=False)
    """The statuses of candidates: running for reclaim; running or bound for preempt."""
    within_job: bool = False
    holders: Sequence[Job] = ()
    objection: Objection = _no_objection
    reprieves: bool = field(init=False)
    """Whether victims are found as `scheduler.preemption.topology_aware` does."""
    where: Where = _anywhere
    groups: Sequence[SubGroup] = ()
    """The job's subgroups. Room is made for a whole subgroup or for none of its tasks."""

    def __post_init__(self) -> None:
        self.queue = self.session.queues[self.job.queue]
        self.statuses = TaskStatus.RUNNING if self.action == RECLAIM else TaskStatus.RUNNING | TaskStatus.BOUND
        arguments = self.session.policy.configurations.get(self.action, {}) if self.action == PREEMPT else {}
        self.reprieves = bool(arguments.get("enableTopologyAwarePreemption"))

    @property
    def hook(self) -> Permitted:
        """The hook by which plugins vote on candidates, task by task."""
        hooks = self.session.hooks
        return hooks.reclaimable if self.action == RECLAIM else hooks.preemptable

    @property
    def unit_hook(self) -> Protections:
        """The hook by which plugins judge a unit as one victim."""
        hooks = self.session.hooks
        return hooks.reclaim_unit if self.action == RECLAIM else hooks.preempt_unit

    @property
    def spares(self) -> Spares:
        """The hook that limits how many tasks of a job are evicted one by one."""
        hooks = self.session.hooks
        return hooks.reclaim_spare if self.action == RECLAIM else hooks.preempt_spare

    def concerns(self, job: Job) -> bool:
        """Whether tasks of `job` are candidates."""
        if self.action == RECLAIM:
            return job.queue != self.job.queue
        return (job is self.job) if self.within_job else (job.queue == self.job.queue and job is not self.job)

    def protection(self, preemptor: Task, task: Task) -> ProtectedBy | None:
        """Return what protects a task before any plugin votes; None if nothing does."""
        if not task.status & self.statuses:
            return ProtectedBy.STATUS
        if not task.preemptable:
            return ProtectedBy.PREEMPTABLE
        if self.session.nominations.evicted_for(task.job) and not self.within_job:
            return ProtectedBy.PREEMPTOR
        if self.action == RECLAIM:
            is_reclaimable = self.session.queues[self.session.jobs[task.job].queue].reclaimable
            return None if is_reclaimable else ProtectedBy.QUEUE
        return ProtectedBy.BEST_EFFORT if preemptor.best_effort and not task.best_effort else None

    def priority(self, job: Job, task: Task) -> int:
        """Return the priority that protects a candidate: that of its job; within one job, that of the task."""
        return task.priority if self.within_job else job.priority


def starving_jobs(session: Session, jobs: Iterable[Job]) -> list[Job]:
    """Return those of `jobs` that are admitted and schedulable, have waiting tasks, and starve by `job_starving`."""
    hooks = session.hooks
    return [
        job
        for job in jobs
        if job.by_status.get(TaskStatus.PENDING)
        and not session.is_pending(job)
        and hooks.job_starving(job)
        and session.is_schedulable(job)
    ]
