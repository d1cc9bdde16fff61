"""reclaim: evict tasks of queues that hold more than they deserve, for queues that hold less.

Semantics: Volcano's `actions/reclaim`.

Queues take turns, job by job, in serving order; the queue plugin decides which queue may reclaim.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..framework.serving_order import ServingOrder
from ..framework.session import Session
from ..model.queue import Queue
from ..preemption import RECLAIM, CycleCache, PreemptionRequest, make_room
from ..preemption.request import starving_jobs
from ..reasons import QueueOverused


def reclaim(session: Session) -> None:
    """Evict tasks of other queues for every starving job, as far as the policy permits."""
    starving = starving_jobs(session, RECLAIM)
    if not starving:
        return
    hooks, cache = session.hooks, CycleCache.of(session)
    order = ServingOrder(session, starving)
    for queue, job in order:
        if hooks.overused(queue):
            order.leave_out(queue)
            for other in starving:
                if other.queue == queue.name:
                    session.refuse(other, _overused(session, queue))
            continue
        with session.attempt(job, on_cap=cache.forget):
            make_room(PreemptionRequest(session, RECLAIM, job), cache)
    cache.reprieve_unneeded()


def _overused(session: Session, queue: Queue) -> Iterator[QueueOverused]:
    """Yield which plugins end the action for the jobs of a queue."""
    for tier, entries in session.hooks.overused.by_tier():
        for entry in entries:
            if entry.fn(queue):
                yield QueueOverused(RECLAIM, queue.name, entry.plugin, tier)
