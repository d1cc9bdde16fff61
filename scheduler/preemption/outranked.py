"""Find the job for which `preempt` is about to evict a job that would reclaim.

The preemption is tried, and undone, before victims are evicted for a job that could not start in their room.
"""

from __future__ import annotations

from ..framework.session import Session
from ..model.job import Job
from .cycle_cache import CycleCache, request_kind
from .domains import limits_of
from .preemptor import search, waiting_tasks
from .request import PREEMPT, PreemptionRequest, starving_jobs


def preempts_whole(session: Session, job: Job, cache: CycleCache) -> Job | None:
    """Return the job of higher priority for which `preempt` can evict all running tasks of `job` now; None if none."""
    outranks = session.hooks.job_outranks
    if PREEMPT not in session.policy.actions or not job.allocated or not outranks.entries:
        return None
    rivals = (other for other in session.selection.undecided if other.queue == job.queue and outranks(other, job))
    return next((other for other in starving_jobs(session, rivals) if _preempts(session, other, job, cache)), None)


def _preempts(session: Session, other: Job, job: Job, cache: CycleCache) -> bool:
    """Try to preempt for a job; whether that evicts all running tasks of `job`. Nothing changes."""
    request, tasks = PreemptionRequest(session, PREEMPT, other), waiting_tasks(session, other)
    if limits_of(request) is not None:
        return False
    solver, starts, _ = search(request, tasks, cache, request_kind(request, tasks[0]))
    is_evicted = starts and any(victim.option.whole and victim.option.job == job.key for victim in solver.victims)
    solver.statement.discard()
    return is_evicted
