"""reclaim: evict tasks of queues that hold more than they deserve, for queues that hold less.

Semantics: Volcano's `actions/reclaim`.

Queues take turns, job by job, in serving order; the queue plugin decides which queue may reclaim. A job that `preempt`
is about to evict for a more important job of its queue does not reclaim: its victims would be evicted for nothing.
"""

from __future__ import annotations

from ..framework.serving_order import ServingOrder
from ..framework.session import Session
from ..preemption import RECLAIM, CycleCache, PreemptionRequest, make_room
from ..preemption.holds import holders_of
from ..preemption.outranked import preempts_whole
from ..preemption.request import starving_jobs
from ..reasons import Outranked


def reclaim(session: Session) -> None:
    """Evict tasks of other queues for every starving job, as far as the policy permits."""
    starving = starving_jobs(session, session.selection.to_try())
    if not starving:
        return
    hooks, cache = session.hooks, CycleCache.of(session)
    order, holders = ServingOrder(session, starving), holders_of(session)
    for queue, job in order:
        if hooks.overused(queue):
            order.leave_out(queue)
            continue
        with session.attempt(job, on_cap=cache.forget):
            if (other := preempts_whole(session, job, cache)) is not None:
                session.refuse(job, [Outranked(other.key)])
            else:
                make_room(PreemptionRequest(session, RECLAIM, job, holders=holders), cache)
    cache.reprieve_unneeded()
