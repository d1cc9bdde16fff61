"""reclaim: take back, for a queue, room that other queues hold beyond their due (semantics: Volcano's
``actions/reclaim``).

The one rule: queues take turns, job by job, in the order in which they are served; who may claim is the queue
plugin's say.
"""

from __future__ import annotations

from ..framework.priority_queue import LazyPriorityQueue
from ..framework.session import Session
from ..model.job import Job
from ..preemption import RECLAIM, CycleCache, PreemptionRequest, make_room
from ..preemption.request import starving_jobs


def reclaim(session: Session) -> None:
    """Let every starving job take room from other queues, as far as the policy permits."""
    starving = starving_jobs(session)
    if not starving:
        return
    hooks, cache = session.hooks, CycleCache.of(session)
    by_queue: dict[str, list[Job]] = {}
    for job in starving:
        by_queue.setdefault(job.queue, []).append(job)
    jobs = {name: LazyPriorityQueue(hooks.job_key, members) for name, members in by_queue.items()}
    queues = LazyPriorityQueue(hooks.queue_key, (session.queues[name] for name in by_queue))
    while queues:
        queue = queues.pop()
        if hooks.overused(queue):
            continue
        make_room(PreemptionRequest(session, RECLAIM, jobs[queue.name].pop()), cache)
        if jobs[queue.name]:
            queues.push(queue)
    cache.settle()
