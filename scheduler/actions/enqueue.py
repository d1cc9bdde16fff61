"""enqueue: admit waiting PodGroups, so that their pods are created and placed.

Semantics: Volcano's `actions/enqueue`.

A refused job does not block the jobs after it.
"""

from __future__ import annotations

from ..framework.serving_order import ServingOrder
from ..framework.session import Session


def enqueue(session: Session) -> None:
    """Admit the jobs that the plugins permit, queue by queue, job by job."""
    hooks = session.hooks
    for _, job in ServingOrder(session, [job for job in session.to_try() if session.is_pending(job)]):
        with session.attempt(job):
            if job.min_resources is None or hooks.job_enqueueable(job):
                hooks.job_enqueued(job)
                session.admit(job)
            else:
                session.refuse(job, hooks.reasons(job, None))
