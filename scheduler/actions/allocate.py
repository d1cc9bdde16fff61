"""allocate: place waiting tasks on idle room, gang by gang (semantics: Volcano's `actions/allocate`).

A job's turn is one transaction (`scheduler.actions.gang_allocation`). The turn ends as soon as the job is ready, so
that queues alternate task by task once their gangs are ready.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from ..framework.serving_order import ServingOrder
from ..framework.session import Session
from ..model.job import Job, PodGroupPhase
from ..model.task import Task, TaskStatus
from .domain_allocation import allocation_of, batches_of
from .gang_allocation import TaskBatch

WAITING = (TaskStatus.PENDING, TaskStatus.PIPELINED)


def allocate(session: Session) -> None:
    """Place tasks until no queue has a job that fits, first those whose nominated room has become free."""
    session.nominations.bind_ready()
    hooks = session.hooks
    left: dict[str, list[TaskBatch]] = {}
    order = ServingOrder(session, _candidates(session))
    for queue, job in order:
        if hooks.overused(queue):
            for other in chain((job,), order.rest_of(queue)):
                with session.attempt(other):
                    if tasks := _to_place(session, other):
                        session.refuse(other, hooks.reasons(other, min(tasks, key=hooks.task_key)))
            continue
        with session.attempt(job):
            if job.key not in left:
                waiting = _to_place(session, job)
                session.work.spend(2 * len(waiting))
                left[job.key] = batches_of(session, job, waiting)
            if left[job.key] and allocation_of(session, queue, job).place(left[job.key]) and left[job.key]:
                order.again(job)


def _candidates(session: Session) -> Iterator[Job]:
    """Iterate over jobs that may have tasks to place. Without enqueue in the policy, all jobs are admitted."""
    admits_all = "enqueue" not in session.policy.actions
    for job in session.selection.to_try():
        if session.is_pending(job):
            if not admits_all:
                continue
            session.admit(job)
        yield job


def _to_place(session: Session, job: Job) -> list[Task]:
    """Return the tasks of a job that wait for room; none if the whole job may not be placed."""
    waiting = [
        task
        for status in ((TaskStatus.PENDING,) if session.nominations.evicted_for(job.key) else WAITING)
        for task in job.by_status.get(status, {}).values()
        if not task.gated and not task.best_effort
    ]
    if not waiting and session.phase(job) != PodGroupPhase.INQUEUE:
        return []  # no task to place; an objection is recorded only if the job's pods are still to come
    return waiting if session.is_schedulable(job) else []
