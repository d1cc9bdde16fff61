"""Say which switch of the policy, not which lack, keeps `reclaim` or `preempt` from evicting for a job that waits.

The reasons are added at the end of a cycle, to those of the actions that refused the job.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..framework.session import Session
from ..model.job import Job
from ..model.queue import Queue
from ..model.task import TaskStatus
from ..policy.schema import EVICTING
from ..reasons import NotStarving, QueueOverused
from .request import RECLAIM


def note_early_ends(session: Session) -> None:
    """Add the reasons to the refusals of admitted jobs with tasks that wait for room."""
    actions = [action for action in session.policy.actions if action in EVICTING]
    overused: dict[str, list[QueueOverused]] = {}
    for job in session.selection.undecided if actions else ():
        if job.key not in session.decisions.refusals or session.is_pending(job) or not _waits_for_room(job):
            continue
        if not session.hooks.job_starving(job):
            session.refuse(job, [_not_starving(session, action, job) for action in actions])
        elif RECLAIM in actions:
            if job.queue not in overused:
                overused[job.queue] = list(_why_overused(session, session.queues[job.queue]))
            if overused[job.queue]:
                session.refuse(job, overused[job.queue])


def _waits_for_room(job: Job) -> bool:
    waiting = job.by_status.get(TaskStatus.PENDING, {})
    return any(not task.best_effort and not task.gated for task in waiting.values())


def _why_overused(session: Session, queue: Queue) -> Iterator[QueueOverused]:
    """Yield the plugins that end reclaim for the jobs of a queue."""
    for tier, entries in session.hooks.overused.by_tier():
        for entry in entries:
            if entry.fn(queue):
                yield QueueOverused(RECLAIM, queue.name, entry.plugin, tier)


def _not_starving(session: Session, action: str, job: Job) -> NotStarving:
    for tier, entries in session.hooks.job_starving.by_tier()[:1]:
        against = [entry.plugin for entry in entries if not entry.fn(job)]
        return NotStarving(action, against[0], tier, job.min_available, len(against) < len(entries))
    return NotStarving(action)
