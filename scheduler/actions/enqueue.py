"""enqueue: admit waiting PodGroups, so that their pods may be created and placed (semantics: Volcano's
``actions/enqueue``).

The one rule: a job that is refused does not stand in the way of the next one.
"""

from __future__ import annotations

from ..framework.serving_order import ServingOrder
from ..framework.session import Session


def enqueue(session: Session) -> None:
    """Admit what the plugins let in, queue by queue, job by job."""
    hooks = session.hooks
    for _, job in ServingOrder(session, [job for job in session.to_try() if session.is_pending(job)]):
        with session.attempt(job):
            if job.min_resources is None or hooks.job_enqueueable(job):
                hooks.job_enqueued(job)
                session.admit(job)
            else:
                session.refuse(job, hooks.reasons(job, None))
