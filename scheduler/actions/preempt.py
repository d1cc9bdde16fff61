"""preempt: within a queue, who is more important takes the room of who is less so (semantics: Volcano's
``actions/preempt``).

The one rule: first between the jobs of a queue, then between the tasks of a job. With ``enableTopologyAwarePreemption``
the victims of a node are found by :mod:`scheduler.preemption.topology_aware`, else they are the cheapest set.
"""

from __future__ import annotations

from ..framework.priority_queue import LazyPriorityQueue
from ..framework.session import Session
from ..model.job import Job
from ..preemption import PREEMPT, CycleCache, PreemptionRequest, make_room
from ..preemption.request import starving_jobs


def preempt(session: Session) -> None:
    """Let every starving job take room from jobs of its queue, then from lesser tasks of its own."""
    starving = starving_jobs(session)
    if not starving:
        return
    hooks, cache = session.hooks, CycleCache.of(session)
    reprieves = bool(session.policy.configurations.get(PREEMPT, {}).get("enableTopologyAwarePreemption"))
    by_queue: dict[str, list[Job]] = {}
    for job in starving:
        by_queue.setdefault(job.queue, []).append(job)
    queues = LazyPriorityQueue(hooks.queue_key, (session.queues[name] for name in by_queue))
    while queues:
        of_queue = by_queue[queues.pop().name]
        between = LazyPriorityQueue(hooks.job_key, of_queue)
        while between:
            make_room(PreemptionRequest(session, PREEMPT, between.pop(), reprieves=reprieves), cache)
        for job in sorted(of_queue, key=hooks.job_key):
            if hooks.job_starving(job):
                make_room(PreemptionRequest(session, PREEMPT, job, within_job=True, reprieves=reprieves), cache)
    cache.settle()
