"""The phase of each PodGroup at the end of a cycle (semantics: Volcano's ``framework/session.go``, ``jobStatus``).

The one rule: a phase follows from the tasks that the API shows as scheduled and from what was refused; a bind that has
only been decided does not count yet. Unknown, which a refusal brought about, stays until enough tasks run: a cycle that
had nothing to try for the job, or was cut before it came to it, knows no better.
"""

from __future__ import annotations

from ..framework.session import Session
from ..model.job import Job, PodGroupPhase
from ..model.task import COMPLETED, TaskStatus

SCHEDULED = TaskStatus.BOUND | TaskStatus.RUNNING | COMPLETED


def set_phases(session: Session) -> None:
    """Note the phase of every job whose PodGroup has another one."""
    for job in session.undecided:  # evictions leave the phase of the others as it is
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
        return session.phase(job)  # its room is being freed; back at the admission it would lose it
    return PodGroupPhase.INQUEUE if session.phase(job) == PodGroupPhase.INQUEUE else PodGroupPhase.PENDING
