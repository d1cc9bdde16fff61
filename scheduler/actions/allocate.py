"""allocate: give idle room to waiting tasks, gang by gang (semantics: Volcano's ``actions/allocate``).

The one rule: a job's turn is one transaction (:mod:`scheduler.actions.gang_allocation`). It ends as soon as the job is
ready, so queues alternate task by task once their gangs run.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from ..framework.serving_order import ServingOrder
from ..framework.session import Session
from ..model.job import Job, PodGroupPhase
from ..model.task import Task, TaskStatus
from .gang_allocation import GangAllocation, TaskBatch, runs_of

WAITING = (TaskStatus.PENDING, TaskStatus.PIPELINED)


def allocate(session: Session) -> None:
    """Place tasks until no queue has a job left that finds room. Those for whom room was freed come first."""
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
                left[job.key] = runs_of(sorted(waiting, key=hooks.task_key))
            if left[job.key] and GangAllocation(session, queue, job).take(left[job.key]) and left[job.key]:
                order.again(job)


def _candidates(session: Session) -> Iterator[Job]:
    """Jobs that may have tasks to place. Where the policy has no enqueue, all are admitted."""
    admits_all = "enqueue" not in session.policy.actions
    for job in session.to_try():
        if session.is_pending(job):
            if not admits_all:
                continue
            session.admit(job)
        yield job


def _to_place(session: Session, job: Job) -> list[Task]:
    """The tasks of a job that wait for room; none where something keeps the whole job from being placed."""
    waiting = [
        task
        for status in ((TaskStatus.PENDING,) if session.nominations.stands(job.key) else WAITING)
        for task in job.by_status.get(status, {}).values()
        if not task.gated and not task.best_effort
    ]
    if not waiting and session.phase(job) != PodGroupPhase.INQUEUE:
        return []  # nothing to place, and nobody waits for its pods
    return waiting if session.is_schedulable(job) else []
