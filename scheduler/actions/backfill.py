"""backfill: place tasks that ask for nothing (semantics: Volcano's ``actions/backfill``).

The one rule: such a task takes no share of a queue, so no queue limit is asked; where it may run is asked as for any
other.
"""

from __future__ import annotations

from ..framework.serving_order import ServingOrder
from ..framework.session import Session
from ..model.job import Job
from ..model.task import Task, TaskStatus


def backfill(session: Session) -> None:
    """Place best-effort tasks, in the order of queues, jobs and tasks."""
    candidates = [job for job in session.to_try() if not session.is_pending(job) and _waiting(job)]
    for _, job in ServingOrder(session, candidates):
        with session.attempt(job):
            if session.is_schedulable(job):
                _place(session, job)


def _waiting(job: Job) -> list[Task]:
    return [t for t in job.by_status.get(TaskStatus.PENDING, {}).values() if t.best_effort and not t.gated]


def _place(session: Session, job: Job) -> None:
    hooks = session.hooks
    statement = session.statement()
    for task in sorted(_waiting(job), key=hooks.task_key):
        node = session.placement.best(task)
        if node is None:
            session.refuse(job, [session.placement.explain(task)])
        else:
            statement.allocate(task, node)
    if hooks.job_ready(job):
        statement.commit()
    else:
        statement.discard()
