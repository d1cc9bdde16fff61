"""enqueue: admit waiting PodGroups, so that their pods may be created and placed (semantics: Volcano's
``actions/enqueue``).

The one rule: a job that is refused does not stand in the way of the next one.
"""

from __future__ import annotations

from ..framework.priority_queue import LazyPriorityQueue
from ..framework.session import Session
from ..model.job import Job


def enqueue(session: Session) -> None:
    """Admit what the plugins let in, queue by queue, job by job."""
    hooks = session.hooks
    waiting: dict[str, list[Job]] = {}
    for job in session.unsettled:
        if session.is_pending(job):
            waiting.setdefault(job.queue, []).append(job)
    by_queue = {name: LazyPriorityQueue(hooks.job_key, jobs) for name, jobs in waiting.items()}
    queues = LazyPriorityQueue(hooks.queue_key, (session.queues[name] for name in by_queue))
    while queues:
        queue = queues.pop()
        jobs = by_queue[queue.name]
        if not jobs:
            continue
        job = jobs.pop()
        if job.min_resources is None or hooks.job_enqueueable(job):
            hooks.job_enqueued(job)
            session.admit(job)
        else:
            session.refuse(job, hooks.reasons(job, None))
        queues.push(queue)
