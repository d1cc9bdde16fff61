"""Let a claim use room that other queues hold beyond their shares, and let a job hold room before `allocate`.

`allocate` lets a job wait for room that is being freed, and the job's queue may exceed its share with that hold. A hold
counts in its queue. Otherwise the queue would lose running pods because of the hold, while the hold itself stays.

Under `sla`, a job that has waited too long holds the part of its room that it has found. In a policy whose preempt or
reclaim comes before `allocate`, the job holds that part from its turn in the first of them on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..framework.session import Session
from ..framework.statement import Statement
from ..model.job import Job
from ..model.task import Task, TaskStatus
from ..policy.hooks import Vote
from ..reasons import Protection
from .cycle_cache import CycleCache
from .domains import limits_of
from .reprieve import Reprieve
from .request import PreemptionRequest

_PLACED = TaskStatus.ALLOCATED | TaskStatus.PIPELINED


def holders_of(session: Session) -> list[Job]:
    """Return the jobs that wait for room that was not freed for them, in reverse order of service."""
    if not _judges(session):
        return []  # no plugin says what a queue may reclaim from another
    changed = (session.jobs.get(key) for key in reversed({task.job: None for task, *_ in session.changes.entries}))
    return [job for job in changed if job is not None and _waits_for_any_room(session, job)]


def use_held_room(request: PreemptionRequest, tasks: Sequence[Task], cache: CycleCache) -> bool:
    """Release holds beyond their queues' shares, last served first, until the request's job can start in their room.

    The tasks of the job are then nominated, so that the holds do not come back before them. No pod is evicted. If the
    job cannot start in that room, nothing changes.

    Returns:
        True if the job can start.
    """
    session, statement, judges = request.session, request.session.statement(), _judges(request.session)
    released: list[list[tuple[Task, str]]] = []
    for held in _held_by_others(request):
        if any(judge(tasks[0], held) is not None for judge in judges):
            continue
        if not released and _place(request, tasks, statement):
            break  # the job needs no hold: allocate places it
        released.append([(task, task.node) for task in held])
        for task in held:
            statement.release(task)
        if placed := _place(request, tasks, statement):
            for unit in reversed(released):
                _hold_again(session, unit, statement)
            _commit(request, placed, statement, cache)
            return True
    statement.discard()
    return False


def hold_room(request: PreemptionRequest) -> None:
    """Pipeline what a job has found of its room, if the job may wait with a part of it; evict nothing.

    A later job could otherwise use that room, together with the room of its victims.
    """
    session, job, queue = request.session, request.job, request.queue
    hooks, statement = session.hooks, session.statement()
    if request.within_job or not hooks.job_pipelined(job) or limits_of(request) is not None:
        return
    if not any(vote(job) is Vote.REJECT for vote in hooks.job_pipelined.functions):
        return  # the job needs no more room
    for task in hooks.sorted_tasks(list(job.by_status.get(TaskStatus.PENDING, {}).values())):
        if job.lacking and not task.gated and not task.best_effort and hooks.allocatable(queue, task):
            node = session.placement.best(task) or session.placement.best(task, future=True)
            if node is not None:
                statement.pipeline(task, node)


def _judges(session: Session) -> list[Callable[[Task, Sequence[Task]], Protection | None]]:
    """Return the votes on units of the plugins that also say which queues may reclaim."""
    plugins = {entry.plugin for entry in session.hooks.preemptive.entries}
    return [entry.fn for entry in session.hooks.reclaim_unit.entries if entry.plugin in plugins]


def _waits_for_any_room(session: Session, job: Job) -> bool:
    """Whether the job waits for room that is being freed, and none of it was freed for the job."""
    return (
        bool(job.count(TaskStatus.PIPELINED))
        and not session.nominations.evicted_for(job.key)
        and not any(task.nominated for task in job.having(TaskStatus.PIPELINED))
    )


def _held_by_others(request: PreemptionRequest) -> Iterator[list[Task]]:
    """Yield the holds of other queues: single tasks of a job that is ready, otherwise all placed tasks of a job."""
    session = request.session
    for job in request.holders:
        queue = session.queues[job.queue]
        if queue is request.queue or not queue.reclaimable or not _waits_for_any_room(session, job):
            continue
        if session.hooks.job_ready(job):
            yield from ([task] for task in reversed(list(job.having(TaskStatus.PIPELINED))))
        else:
            bound = {bind.uid for bind in session.decisions.binds}
            yield [task for task in job.having(_PLACED) if task.uid not in bound]


def _place(request: PreemptionRequest, tasks: Sequence[Task], statement: Statement) -> list[Task]:
    """Place tasks without evictions until the job can start; if it cannot, change nothing and return no task."""
    session, hooks, savepoint = request.session, request.session.hooks, statement.savepoint()
    placed: list[Task] = []
    for task in tasks:
        if not hooks.job_starving(request.job):
            break
        if task.best_effort:
            continue
        node = None
        if hooks.preemptive(request.queue, task) is None and hooks.allocatable(request.queue, task):
            node = session.placement.best(task, future=True)
        if node is None:
            break
        statement.pipeline(task, node)
        placed.append(task)
    if placed and hooks.job_pipelined(request.job):
        return placed
    statement.rollback(savepoint)
    return []


def _commit(request: PreemptionRequest, placed: Sequence[Task], statement: Statement, cache: CycleCache) -> None:
    session, job, reprieve = request.session, request.job, Reprieve(request.session)
    session.nominations.take_over(job, [], statement)
    statement.commit()
    session.nominations.pin(job)
    for task in placed:
        reprieve.placed(task, session.nodes.by_name[task.node], request.queue, reclaims=False)
    cache.record_success(job, placed, (), reprieve)
    if not job.by_status.get(TaskStatus.PENDING):
        session.decisions.refusals.pop(job.key, None)


def _hold_again(session: Session, unit: Sequence[tuple[Task, str]], statement: Statement) -> None:
    """Restore a hold that the claim left room for, wholly or not at all."""
    savepoint = statement.savepoint()
    for task, name in unit:
        node, queue = session.nodes.by_name[name], session.queues[session.jobs[task.job].queue]
        if not (session.hooks.allocatable(queue, task) and session.placement.fits(task, node, future=True)):
            statement.rollback(savepoint)
            return
        statement.pipeline(task, node)
