"""allocate: give idle room to waiting tasks, gang by gang (semantics: Volcano's ``actions/allocate``).

The one rule: a job's turn is one transaction (:mod:`scheduler.actions.gang_allocation`). It ends as soon as the job is
ready, so queues alternate task by task once their gangs run.
"""

from __future__ import annotations

from ..framework.priority_queue import LazyPriorityQueue
from ..framework.session import Session
from ..model.job import Job, PodGroupPhase
from ..model.task import TaskStatus
from .gang_allocation import GangAllocation, TaskBatch, runs_of

WAITING = (TaskStatus.PENDING, TaskStatus.PIPELINED)


def allocate(session: Session) -> None:
    """Place tasks until no queue has a job left that finds room. Those for whom room was freed come first."""
    session.nominations.bind_ready()
    hooks = session.hooks
    left: dict[str, list[TaskBatch]] = {}
    by_queue = {name: LazyPriorityQueue(hooks.job_key, jobs) for name, jobs in _candidates(session, left).items()}
    queues = LazyPriorityQueue(hooks.queue_key, (session.queues[name] for name in by_queue))
    while queues:
        queue = queues.pop()
        jobs = by_queue[queue.name]
        if not jobs:
            continue
        if hooks.overused(queue):
            while jobs:
                job = jobs.pop()
                session.refuse(job, hooks.reasons(job, left[job.key][0].tasks[-1]))
            continue
        job = jobs.pop()
        if GangAllocation(session, queue, job).take(left[job.key]) and left[job.key]:
            jobs.push(job)
        queues.push(queue)


def _candidates(session: Session, left: dict[str, list[TaskBatch]]) -> dict[str, list[Job]]:
    """Jobs with tasks to place, by queue; their tasks go into ``left``. Where the policy has no enqueue, all are
    admitted.
    """
    admits_all = "enqueue" not in session.policy.actions
    by_queue: dict[str, list[Job]] = {}
    for job in session.unsettled:
        if session.is_pending(job):
            if not admits_all:
                continue
            session.admit(job)
        waiting = [
            task
            for status in ((TaskStatus.PENDING,) if session.nominations.stands(job.key) else WAITING)
            for task in job.by_status.get(status, {}).values()
            if not task.gated and not task.best_effort
        ]
        if not waiting and session.phase(job) != PodGroupPhase.INQUEUE:
            continue  # nothing to place, and nobody waits for its pods
        if not session.is_schedulable(job) or not waiting:
            continue
        left[job.key] = runs_of(sorted(waiting, key=session.hooks.task_key))
        by_queue.setdefault(job.queue, []).append(job)
    return by_queue
