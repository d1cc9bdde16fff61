"""Say which switch of the policy, not which lack, keeps `reclaim` or `preempt` from evicting for a job that waits.

The reasons are added at the end of a cycle, to those of the actions that refused the job.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..framework.session import Session
from ..model.job import Job
from ..model.task import TaskStatus
from ..policy.schema import EVICTING
from ..reasons import NotStarving, QueueOverused, UnschedulableReason
from .request import RECLAIM


def note_early_ends(session: Session) -> None:
    """Add the reasons to the refusals of admitted jobs with tasks that wait for room."""
    actions = [action for action in session.policy.actions if action in EVICTING]
    for job in session.selection.undecided if actions else ():
        if job.key not in session.decisions.refusals or session.is_pending(job) or not _waits_for_room(job):
            continue
        if whys := [why for action in actions for why in _why_ended(session, action, job)]:
            session.refuse(job, whys)


def _waits_for_room(job: Job) -> bool:
    waiting = job.by_status.get(TaskStatus.PENDING, {})
    return any(not task.best_effort and not task.gated for task in waiting.values())


def _why_ended(session: Session, action: str, job: Job) -> Iterator[UnschedulableReason]:
    """Yield the plugin that ends an action for a job."""
    hooks = session.hooks
    if not hooks.job_starving(job):
        yield _not_starving(session, action, job)
    elif action == RECLAIM:
        queue = session.queues[job.queue]
        for tier, entries in hooks.overused.by_tier():
            for entry in entries:
                if entry.fn(queue):
                    yield QueueOverused(action, queue.name, entry.plugin, tier)


def _not_starving(session: Session, action: str, job: Job) -> NotStarving:
    for tier, entries in session.hooks.job_starving.by_tier()[:1]:
        against = [entry.plugin for entry in entries if not entry.fn(job)]
        return NotStarving(action, against[0], tier, job.min_available, len(against) < len(entries))
    return NotStarving(action)
