"""reclaim: take back, for a queue, room that other queues hold beyond their due (semantics: Volcano's
``actions/reclaim``).

The one rule: queues take turns, job by job, in the order in which they are served; who may reclaim is the queue
plugin's say.
"""

from __future__ import annotations

from ..framework.serving_order import ServingOrder
from ..framework.session import Session
from ..preemption import RECLAIM, CycleCache, PreemptionRequest, make_room
from ..preemption.request import starving_jobs


def reclaim(session: Session) -> None:
    """Let every starving job take room from other queues, as far as the policy permits."""
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
