"""priority: serve higher priorities first; they may preempt lower ones (semantics: Volcano's `plugins/priority`)."""

from __future__ import annotations

from collections.abc import Sequence

from ..framework.plugin import Covers, OrderedBy, Plugin
from ..framework.session import Session
from ..model.job import Job
from ..model.task import Task
from ..policy.hooks import JobOrder, JobOutranks, JobStarving, PreemptableByUnit, PreemptUnit, TaskOrder
from ..reasons import NotLower, Protection


class Priority(Plugin, JobOrder, JobOutranks, TaskOrder, JobStarving, PreemptableByUnit, PreemptUnit):
    """Order and preempt by priority."""

    name = "priority"
    refusal_covers = Covers.LOWER_PRIORITIES
    job_order_depends_on = OrderedBy.PRIORITY

    def open(self, session: Session) -> None:
        self._session = session

    def job_order(self, job: Job) -> int:
        return -job.priority

    def job_outranks(self, job: Job, other: Job) -> bool:
        return job.priority > other.priority

    def task_order(self, task: Task) -> int:
        return -task.priority

    def job_starving(self, job: Job) -> bool:
        return job.ready + job.waiting < len(job.tasks)

    def preempt_unit(self, preemptor: Task, unit: Sequence[Task]) -> Protection | None:
        """Return None if the unit has strictly lower priority: by job, or by task if preemptor and unit share a job."""
        jobs = self._session.cluster.jobs
        if unit[0].job == preemptor.job:
            mine, theirs = preemptor.priority, max(task.priority for task in unit)
        else:
            mine, theirs = jobs[preemptor.job].priority, jobs[unit[0].job].priority if unit[0].job in jobs else 0
        return None if theirs < mine else NotLower(theirs, mine)
