"""Compute the phase of each PodGroup at the end of a cycle.

Semantics: Volcano's `framework/session.go`, `jobStatus`.

A phase follows from the tasks that the API shows as scheduled and from refusals; a bind that has only been decided does
not count yet. The phase Unknown, set after a refusal, stays until enough tasks run: a cycle that tried nothing for the
job, or ended before its turn, has no newer result.
"""

from __future__ import annotations

from ..framework.session import Session
from ..model.job import Job, PodGroupPhase
from ..model.task import COMPLETED, TaskStatus

SCHEDULED = TaskStatus.BOUND | TaskStatus.RUNNING | COMPLETED


def set_phases(session: Session) -> None:
    """Record the phase of every job whose PodGroup has another one.

    The phase of a job that the cycle passed over, or for which no action has work, changes only if pods of the job are
    evicted and others wait.
    """
    evicted = {eviction.job for eviction in session.decisions.evictions} & session.sums.undecided
    if evicted:
        evicted.difference_update(job.key for job in session.undecided)
    for job in (*session.undecided, *session.served(evicted)):
        phase = _phase(session, job)
        if phase != job.phase:
            session.decisions.phases[job.key] = phase


def _phase(session: Session, job: Job) -> str:
    refused = job.key in session.decisions.refusals or job.phase == PodGroupPhase.UNKNOWN
    if job.by_status.get(TaskStatus.RUNNING) and refused and job.ready < job.min_available:
        return PodGroupPhase.UNKNOWN
    scheduled = job.count(SCHEDULED)
    leaving = sum(bool(task.node) for task in job.by_status.get(TaskStatus.RELEASING, {}).values())
    if scheduled + leaving and scheduled + leaving >= job.min_available:
        return PodGroupPhase.COMPLETED if job.count(COMPLETED) == scheduled and not leaving else PodGroupPhase.RUNNING
    if job.waiting and scheduled + leaving + job.waiting >= job.min_available and not session.is_pending(job):
        return session.phase(job)  # its room is being freed; a new admission would lose that room
    return PodGroupPhase.INQUEUE if session.phase(job) == PodGroupPhase.INQUEUE else PodGroupPhase.PENDING
