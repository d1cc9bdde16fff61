"""priority: who has the higher priority is served first, and may preempt who has a lower one (semantics: Volcano's ``plugins/priority``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scheduler.hooks import Vote
from scheduler.model.job import Job
from scheduler.model.task import Task

if TYPE_CHECKING:
    from scheduler.policy import PluginOption
    from scheduler.session import Register, Session


class Priority:
    """The plugin."""

    name = "priority"

    def __init__(self, option: PluginOption) -> None:
        self._option = option

    def open(self, session: Session, register: Register) -> None:
        self._session = session
        register("job_order", lambda job: -job.priority)
        register("task_order", lambda task: -task.priority)
        register("preemptable", self._lower)
        register("job_starving", _has_waiting_tasks)

    def _lower(self, claimant: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
        """Candidates of strictly lower priority: of the job between jobs, of the task within one."""
        jobs = self._session.cluster.jobs
        mine = jobs[claimant.job].priority
        lower = [
            task
            for task in candidates
            if (
                task.priority < claimant.priority
                if task.job == claimant.job
                else (jobs[task.job].priority if task.job in jobs else 0) < mine
            )
        ]
        return lower, Vote.PERMIT


def _has_waiting_tasks(job: Job) -> bool:
    return job.ready + job.waiting < len(job.tasks)
