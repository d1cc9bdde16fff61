"""Compute the phase of each PodGroup at the end of a cycle.

Semantics: Volcano's `framework/session.go`, `jobStatus`.

A phase follows from refusals and from the tasks that the API shows as scheduled; a bind decided in this cycle does not
count yet. The phase Unknown, set after a refusal, remains until enough tasks run: a cycle that skipped the job, or was
cut before the job's turn, has no newer result.
"""

from __future__ import annotations

from ..framework.session import Session
from ..model.job import Job, PodGroupPhase
from ..model.task import COMPLETED, TaskStatus

SCHEDULED = TaskStatus.BOUND | TaskStatus.RUNNING | COMPLETED


def set_phases(session: Session) -> None:
    """Record the phase of every job whose PodGroup has a different one.

    The phase of a job that the cycle skipped, or for which no action has work, changes only if pods of the job are
    evicted and other pods of it wait.
    """
    evicted = {eviction.job for eviction in session.decisions.evictions} & session.sums.undecided
    if evicted:
        evicted.difference_update(job.key for job in session.selection.undecided)
    for job in (*session.selection.undecided, *session.selection.served(evicted)):
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
    is_waiting = job.waiting and not session.is_pending(job)
    if is_waiting and (scheduled + leaving + job.waiting >= job.min_available or session.hooks.job_pipelined(job)):
        return session.phase(job)  # room is being freed for the job, and a new admission would lose that room
    return PodGroupPhase.INQUEUE if session.phase(job) == PodGroupPhase.INQUEUE else PodGroupPhase.PENDING
