"""reclaim: evict tasks of queues that hold more than they deserve, for queues that hold less.

Semantics: Volcano's `actions/reclaim`.

Queues take turns, job by job, in serving order; the queue plugin decides which queue may reclaim.
"""

from __future__ import annotations

from ..framework.serving_order import ServingOrder
from ..framework.session import Session
from ..preemption import RECLAIM, CycleCache, PreemptionRequest, make_room
from ..preemption.request import starving_jobs


def reclaim(session: Session) -> None:
    """Evict tasks of other queues for every starving job, as far as the policy permits."""
    starving = starving_jobs(session)
    if not starving:
        return
    hooks, cache = session.hooks, CycleCache.of(session)
    order = ServingOrder(session, starving)
    for queue, job in order:
        if hooks.overused(queue):
            order.leave_out(queue)
            continue
        with session.attempt(job, on_cap=cache.forget):
            make_room(PreemptionRequest(session, RECLAIM, job), cache)
    cache.reprieve_unneeded()
