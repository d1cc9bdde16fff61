"""What an action looks for: whose tasks may make room for whom.

The one rule: reclaim and preempt differ in what is written here and in nothing else; how victims are found is the
same for both. (Semantics: the filters of Volcano's ``actions/reclaim`` and ``actions/preempt``.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..framework.session import Session
from ..model.job import Job
from ..model.queue import Queue
from ..model.task import Statuses, Task, TaskStatus
from ..policy.tiers import Permitted, Protections

RECLAIM, PREEMPT = "reclaim", "preempt"


@dataclass(slots=True)
class PreemptionRequest:
    """One job that needs room, and the rules by which an action may make it.

    ``within_job``: tasks of the job itself are the candidates, not those of other jobs (second half of preempt).
    ``reprieves``: the set of victims is found as :mod:`scheduler.preemption.topology_aware` says.
    """

    session: Session
    action: str
    job: Job
    queue: Queue = field(init=False)
    within_job: bool = False
    reprieves: bool = False

    def __post_init__(self) -> None:
        self.queue = self.session.queues[self.job.queue]

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
    def statuses(self) -> Statuses:
        """Reclaim takes running tasks only, preempt also those that are bound."""
        return TaskStatus.RUNNING if self.action == RECLAIM else TaskStatus.RUNNING | TaskStatus.BOUND

    def concerns(self, job: Job) -> bool:
        """Whether tasks of ``job`` are candidates at all."""
        if self.action == RECLAIM:
            return job.queue != self.job.queue
        return (job is self.job) if self.within_job else (job.queue == self.job.queue and job is not self.job)

    def protection(self, preemptor: Task, task: Task) -> str:
        """What protects a task of a job that the request concerns, before any plugin is asked; or empty."""
        if not task.status & self.statuses:
            return "status"
        if not task.preemptable:
            return "preemptable"
        if self.session.nominations.stands(task.job) and not self.within_job:
            return "preemptor"
        if self.action == RECLAIM:
            return "" if self.session.queues[self.session.jobs[task.job].queue].reclaimable else "queue"
        return "best-effort" if preemptor.best_effort and not task.best_effort else ""

    def priority(self, job: Job, task: Task) -> int:
        """By which priority a candidate is protected: its job's; within a job, its own."""
        return task.priority if self.within_job else job.priority


def starving_jobs(session: Session) -> list[Job]:
    """Admitted, valid jobs with waiting tasks that the plugins call starving.

    Jobs with a network topology are left out, as in Volcano: victims found node by node say nothing about a topology.
    """
    hooks = session.hooks
    return [
        job
        for job in session.to_try()
        if job.by_status.get(TaskStatus.PENDING)
        and not session.is_pending(job)
        and not (job.group is not None and job.group.spec.network_topology)
        and hooks.job_starving(job)
        and hooks.job_valid(job) is None
    ]
