"""Room that was freed for a task is kept for it, across cycles and restarts.

The one rule: a claim is nothing but the pod's ``status.nominatedNodeName``; every cycle derives the nominations from
it anew. While what was freed is still releasing, or the rest of the gang waits, the preemptor is pipelined onto its
node, so that nobody served meanwhile takes that room; a claim that came to nothing is given up in the same cycle.
What a job got in a cycle in which others had to go for it stands until the cycle ends, whatever action comes next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model.job import Job
from ..model.task import Task, TaskStatus
from .decisions import Nominate

if TYPE_CHECKING:
    from .session import Session
    from .statement import Statement


class Nominations:
    """The claims of one cycle."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._claims: dict[str, list[Task]] = {}
        self._made: set[str] = set()

    def claim(self) -> None:
        """Pipeline every preemptor onto its node, in the order in which queues, jobs and tasks are served."""
        session, hooks = self._session, self._session.hooks
        found: dict[str, list[Task]] = {}
        for key in session.cluster.nominated:
            task = session.cluster.tasks[key]
            if task.status is TaskStatus.PENDING and task.job in session.jobs:
                found.setdefault(task.job, []).append(task)
        jobs = [session.jobs[key] for key in found]
        jobs.sort(key=lambda job: (hooks.queue_key(session.queues[job.queue]), hooks.job_key(job)))
        for job in jobs:
            self._claims[job.key] = tasks = sorted(found[job.key], key=hooks.task_key)
            if session.is_pending(job) or not session.is_schedulable(job):
                continue
            statement = session.statement()
            queue = session.queues[job.queue]
            for task in tasks:
                node = session.nodes.by_name.get(task.nominated)
                if (
                    node is not None
                    and not task.gated
                    and hooks.all_agree("allocatable", queue, task)
                    and session.placement.fits(task, node, future=True)
                ):
                    statement.pipeline(task, node)

    def bind_ready(self) -> None:
        """Bind the jobs whose preemptors all find their room by now; the others go on waiting."""
        session = self._session
        for key, tasks in self._claims.items():
            job = session.jobs[key]
            statement = session.statement()
            for task in tasks:
                if task.status is TaskStatus.PIPELINED:
                    node = session.nodes.by_name[task.node]
                    if not session.placement.has_idle_room(task, node):
                        continue  # who is to go is still there; the most part of most cycles in which victims leave
                    statement.release(task)
                    if session.placement.fits(task, node):
                        statement.allocate(task, node)
                    else:
                        statement.pipeline(task, node)
            if statement.changes and session.hooks.all_agree("job_ready", job):
                statement.commit()
            else:
                statement.discard()

    def pin(self, job: Job) -> None:
        """Others have had to go for this job: until the cycle ends it stays where it is and keeps what it has."""
        self._made.add(job.key)

    def stands(self, job: str) -> bool:
        """Whether others have had to go for this job in this cycle."""
        return job in self._made

    def release(self, job: Job, statement: Statement) -> None:
        """Free the job's own claims within its turn, so that it may also run elsewhere."""
        if self.stands(job.key):
            return
        for task in self._claims.get(job.key, ()):
            if task.status is TaskStatus.PIPELINED:
                statement.release(task)

    def yield_to(self, job: Job, statement: Statement) -> list[Task]:
        """Free the claims of jobs of the same queue that the job outranks; whom they were of."""
        if not self._claims or all(entry.plugin != "priority" for entry in self._session.hooks.of("job_order")):
            return []
        jobs = self._session.jobs
        outranked = [
            task
            for key, tasks in self._claims.items()
            if jobs[key].queue == job.queue and jobs[key].priority < job.priority and not self.stands(key)
            for task in tasks
            if task.status is TaskStatus.PIPELINED
        ]
        for task in outranked:
            statement.release(task)
        return outranked

    def take_over(self, job: Job, yielded: list[Task], statement: Statement) -> None:
        """The job has taken room that others yielded: note its own claims, and give back to the others what is left."""
        for task in job.having(TaskStatus.PIPELINED):
            if task.nominated != task.node:
                self._session.decisions.nominations.append(Nominate(task.key, task.uid, task.node))
        for task in yielded:
            node = self._session.nodes.by_name[task.nominated]
            if self._session.placement.fits(task, node, future=True):
                statement.pipeline(task, node)

    def give_up(self) -> None:
        """At the end of a cycle: withdraw the nominations that have come to nothing."""
        session = self._session
        for key, tasks in self._claims.items():
            job = session.jobs[key]
            stands = session.hooks.votes("job_pipelined", job)
            for task in tasks:
                waits = task.status is TaskStatus.PIPELINED and stands
                if not waits and task.status & (TaskStatus.PENDING | TaskStatus.PIPELINED):
                    session.decisions.nominations.append(Nominate(task.key, task.uid, ""))
