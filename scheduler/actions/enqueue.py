"""enqueue: admit waiting PodGroups, so that their pods are created and placed.

Semantics: Volcano's `actions/enqueue`.

A refused job does not block the jobs after it. A job that quotas refuse is admitted if the evictions of the policy
would free enough for it (`scheduler.preemption.admission`).
"""

from __future__ import annotations

from ..framework.serving_order import ServingOrder
from ..framework.session import Session
from ..preemption import CycleCache
from ..preemption.admission import why_not_admitted


def enqueue(session: Session) -> None:
    """Admit the jobs that the plugins permit, queue by queue, job by job."""
    hooks = session.hooks
    for _, job in ServingOrder(session, [job for job in session.selection.to_try() if session.is_pending(job)]):
        with session.attempt(job, on_cap=lambda: CycleCache.of(session).forget()):
            if job.min_resources is None or hooks.job_enqueueable(job):
                whys = None
            else:
                whys = why_not_admitted(session, job, hooks.reasons(job, None))
            if whys is not None:
                session.refuse(job, whys)
                continue
            hooks.job_enqueued(job)
            session.admit(job)
