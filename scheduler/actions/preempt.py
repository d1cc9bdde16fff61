"""preempt: within a queue, who is more important takes the room of who is less so (semantics: Volcano's
``actions/preempt``).

The one rule: first between the jobs of a queue, then between the tasks of a job. With ``enableTopologyAwarePreemption``
the victims of a node are found by :mod:`scheduler.preemption.topology_aware`, else they are the cheapest set.
"""

from __future__ import annotations

from ..framework.serving_order import ServingOrder
from ..framework.session import Session
from ..model.job import Job
from ..preemption import PREEMPT, CycleCache, PreemptionRequest, make_room
from ..preemption.request import starving_jobs


def preempt(session: Session) -> None:
    """Let every starving job take room from jobs of its queue, then from lesser tasks of its own."""
    starving = starving_jobs(session)
    if not starving:
        return
    cache = CycleCache.of(session)
    reprieves = bool(session.policy.configurations.get(PREEMPT, {}).get("enableTopologyAwarePreemption"))
    for of_queue in ServingOrder(session, starving).queues():
        for _, job in ServingOrder(session, of_queue):
            with session.attempt(job, on_cap=cache.forget):
                make_room(PreemptionRequest(session, PREEMPT, job, reprieves=reprieves), cache)
        for _, job in ServingOrder(session, _still_starving(session, of_queue)):
            with session.attempt(job, on_cap=cache.forget):
                make_room(PreemptionRequest(session, PREEMPT, job, within_job=True, reprieves=reprieves), cache)
    cache.reprieve_unneeded()


def _still_starving(session: Session, jobs: list[Job]) -> list[Job]:
    return [job for job in jobs if session.hooks.job_starving(job)]
