"""See one action ahead, so that nobody is evicted for a job that could not keep the room.

1. No job reclaims that `preempt` is about to evict for a more important job of its queue.
2. No job preempts that another queue is about to reclaim, unless that queue could reclaim the victims as well. Two
   queues would otherwise evict each other's jobs for ever: in each, the less important job is within the share, and
   the more important one, which preempts it, is not. It may be a job that does not wait yet: the victims of preempt
   may reclaim, so that others wait.

The other action is tried, and undone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from ..framework.session import Session
from ..framework.statement import Statement
from ..model.job import Job
from ..model.task import Task, TaskStatus
from ..reasons import ReclaimedNext
from .cycle_cache import CycleCache, request_kind
from .domains import limits_of
from .preemptor import search, waiting_tasks
from .request import PREEMPT, RECLAIM, PreemptionRequest, starving_jobs
from .solver import Solver

MOST_CLAIMANTS = 16
"""How many jobs of other queues, that differ in queue or shape, are tried for one preemption."""
MOST_IN_TURN = 4
"""How many jobs are tried that a preemption displaces: its victims, and the victims for which these reclaim."""


def preempts_whole(session: Session, job: Job, cache: CycleCache) -> Job | None:
    """Return the job of higher priority for which `preempt` can evict all running tasks of `job` now; None if none."""
    outranks = session.hooks.job_outranks
    if PREEMPT not in session.policy.actions or not job.allocated or not outranks.entries:
        return None
    rivals = (other for other in session.selection.undecided if other.queue == job.queue and outranks(other, job))
    return next((other for other in starving_jobs(session, rivals) if _preempts(session, other, job, cache)), None)


def _preempts(session: Session, other: Job, job: Job, cache: CycleCache) -> bool:
    """Try to preempt for a job; whether that evicts all running tasks of `job`. Nothing changes."""
    request, tasks = preempting(session, other), waiting_tasks(session, other)
    if limits_of(request) is not None:
        return False
    solver, starts, _ = search(request, tasks, cache, request_kind(request, tasks[0]))
    is_evicted = starts and any(victim.option.whole and victim.option.job == job.key for victim in solver.victims)
    solver.statement.discard()
    return is_evicted


def preempting(session: Session, job: Job, *, within_job: bool = False) -> PreemptionRequest:
    """Return the request of `preempt` for a job, to which the reclaim that would follow objects."""
    request = PreemptionRequest(session, PREEMPT, job, within_job=within_job)
    if RECLAIM in session.policy.actions:
        request.objection = _reclaimed_next
    return request


def _reclaimed_next(request: PreemptionRequest, statement: Statement, placed: Sequence[Task]) -> ReclaimedNext | None:
    """Return that a job of another queue could reclaim what was placed, but not the victims; None if none could."""
    session, cache = request.session, CycleCache.of(request.session)
    victims = [task for task, _ in statement.evictions]
    savepoint = statement.savepoint()
    for task in victims:
        statement.release(task)
    for task in placed:
        statement.run(task)
    claimants = (job for job in _of_other_queues(request) if _may_reclaim(session, job, placed, cache))
    after = [job for job in islice(claimants, MOST_CLAIMANTS) if _reclaims(session, job, placed, cache)]
    displaced = None if after else _reclaims_in_turn(session, statement, victims, placed)
    statement.rollback(savepoint)
    if not after:
        return None if displaced is None else ReclaimedNext(displaced.key)
    for task in placed:
        statement.release(task)
    for task in victims:
        statement.restore(task)
    found = next((job for job in after if not _reclaims(session, job, victims, cache)), None)
    statement.rollback(savepoint)
    return None if found is None else ReclaimedNext(found.key)


def _reclaims_in_turn(
    session: Session, statement: Statement, victims: Sequence[Task], placed: Sequence[Task]
) -> Job | None:
    """Let the jobs of the victims reclaim, then those of their victims; return the one that evicts what was placed."""
    cache = CycleCache.of(session)
    jobs, kept = deque(dict.fromkeys(task.job for task in victims)), {task.uid for task in placed}
    for _ in range(MOST_IN_TURN):
        if not jobs:
            break
        job = session.jobs[jobs.popleft()]
        overused = session.hooks.overused(session.queues[job.queue])
        if overused or not waiting_tasks(session, job) or not session.hooks.job_starving(job):
            continue
        solver, starts, evicted = _reclaim(session, job, cache)
        if not starts:
            solver.statement.discard()
            continue
        if not kept.isdisjoint(task.uid for task in evicted):
            return job
        for task in evicted:
            statement.release(task)
        for task in solver.placed:
            statement.run(task)
        jobs.extend(dict.fromkeys(task.job for task in evicted))
    return None


def _of_other_queues(request: PreemptionRequest) -> Iterator[Job]:
    """Yield the jobs of other queues that starve, one of each queue and shape."""
    session, known = request.session, set[object]()
    hooks = session.hooks
    for job in session.selection.served(session.sums.undecided):
        if job.queue == request.job.queue or not job.by_status.get(TaskStatus.PENDING) or session.is_pending(job):
            continue
        tasks = waiting_tasks(session, job)
        kind = job.queue, job.min_available, tuple(task.shape for task in tasks)
        session.work.spend(len(tasks))
        if not tasks or kind in known or hooks.overused(session.queues[job.queue]):
            continue
        if hooks.job_starving(job) and session.would_be_schedulable(job):
            known.add(kind)
            yield job


def _may_reclaim(session: Session, job: Job, victims: Iterable[Task], cache: CycleCache) -> bool:
    """Whether a job may reclaim one of the tasks at all, wherever it fits."""
    request, task = PreemptionRequest(session, RECLAIM, job), waiting_tasks(session, job)[0]
    nodes = [session.nodes.by_name[name] for name in {victim.node for victim in victims}]
    return cache.shared(request, None, None).victim_filter.permits_any(task, nodes)


def _reclaims(session: Session, job: Job, victims: Iterable[Task], cache: CycleCache) -> bool:
    """Try to reclaim for a job; whether that evicts one of the tasks, which run. Nothing changes."""
    solver, starts, evicted = _reclaim(session, job, cache)
    solver.statement.discard()
    uids = {task.uid for task in evicted}
    return starts and any(task.uid in uids for task in victims)


def _reclaim(session: Session, job: Job, cache: CycleCache) -> tuple[Solver, bool, list[Task]]:
    """Reclaim for a job in a state that is undone; return the solver, whether the job can start, and the victims."""
    request = PreemptionRequest(session, RECLAIM, job)
    solver, starts, _ = search(request, waiting_tasks(session, job), cache, None)
    cache.forget()  # what it found in this state holds in no other
    return solver, starts, [task for task, _ in solver.statement.evictions]
