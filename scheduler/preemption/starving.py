"""Who may ask others to go."""

from __future__ import annotations

from ..framework.session import Session
from ..model.job import Job
from ..model.task import TaskStatus


def starving_jobs(session: Session) -> list[Job]:
    """Admitted, valid jobs with waiting tasks that the plugins call starving.

    Jobs with a network topology are left out, as in Volcano: victims found node by node say nothing about a topology.
    """
    hooks = session.hooks
    return [
        job
        for job in session.jobs.values()
        if job.by_status.get(TaskStatus.PENDING)
        and not session.is_pending(job)
        and not (job.group is not None and job.group.spec.network_topology)
        and hooks.first_tier_agrees("job_starving", job)
        and hooks.first_objection("job_valid", job) is None
    ]
