"""preempt: within a queue, evict less important tasks for more important ones.

Semantics: Volcano's `actions/preempt`. With `enableTopologyAwarePreemption`, `scheduler.preemption.topology_aware`
chooses the victims of a node; otherwise they are the cheapest set.

Preemption between the jobs of a queue comes first, then preemption between the tasks of one job.
"""

from __future__ import annotations

from ..framework.serving_order import ServingOrder
from ..framework.session import Session
from ..model.job import Job
from ..preemption import CycleCache, make_room
from ..preemption.outranked import preempting
from ..preemption.request import starving_jobs


def preempt(session: Session) -> None:
    """Evict for every starving job: first tasks of other jobs in its queue, then its own tasks of lower priority."""
    starving = starving_jobs(session, session.selection.to_try())
    if not starving:
        return
    cache = CycleCache.of(session)
    for of_queue in ServingOrder(session, starving).queues():
        for _, job in ServingOrder(session, of_queue):
            with session.attempt(job, on_cap=cache.forget):
                make_room(preempting(session, job), cache)
        for _, job in ServingOrder(session, _still_starving(session, of_queue)):
            with session.attempt(job, on_cap=cache.forget):
                make_room(preempting(session, job, within_job=True), cache)
    cache.reprieve_unneeded()


def _still_starving(session: Session, jobs: list[Job]) -> list[Job]:
    return [job for job in jobs if session.hooks.job_starving(job)]
