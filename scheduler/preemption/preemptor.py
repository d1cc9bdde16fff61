"""One job's attempt to get room, from its first waiting task to the commit.

The one rule: what is committed lets the job start (or, if it runs already, lets each task that it evicts for start);
else nothing has happened but the reasons are told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from ..framework.session import Session
from ..model import resources
from ..model.job import Job
from ..model.task import HOLDING, Task, TaskStatus
from ..policy.hooks import Vote
from ..reasons import (
    NeverPreempts,
    NotNeeded,
    NoVictims,
    OfNoUse,
    ProtectedCount,
    Protection,
    UnschedulableReason,
)
from .cycle_cache import CycleCache, Kind, request_kind
from .request import RECLAIM, PreemptionRequest
from .solver import Solver
from .units import GANG, members_that_stay
from .victim_set import TWICE


def make_room(request: PreemptionRequest, cache: CycleCache) -> bool:
    """Evict what is needed for the request's job to start, and have its tasks wait for the room.

    Whether that was possible.
    """
    session, job = request.session, request.job
    tasks = waiting_tasks(session, job)
    who = request_kind(request, tasks[0]) if tasks else None
    kind = None if who is None else (*who, job.min_available, tuple((task.shape, task.role) for task in tasks))
    whys = cache.known(kind)
    if whys is None:
        solver, starts, whys = _search(request, tasks, cache, who)
        if starts and solver.victims:
            _commit(request, solver, cache, whys)
            return True
        solver.statement.discard()
        if starts:
            return False  # room that nobody has to leave is for allocate to give
        cache.remember(kind, whys)
    if not request.within_job:
        session.refuse(job, whys)
    return False


def _search(
    request: PreemptionRequest, tasks: Sequence[Task], cache: CycleCache, who: Kind | None
) -> tuple[Solver, bool, tuple[UnschedulableReason, ...]]:
    """Place the tasks as well as can be: the search that did, whether the job can start by it, and why others found
    no place."""
    lacking = max(request.job.min_available - request.job.ready - request.job.waiting, 0)
    asked = resources.total_of(task.request for task in tasks[: lacking or len(tasks)])
    solver = Solver(request, cache.shared(request, who, asked), asked)
    starts, whys = _place(request, solver, tasks, cache, who)
    if not starts and (solver.placed or solver.refused):
        # The cheapest victims may use up what their queue can lose; those that free the least may not.
        solver.statement.discard()
        solver = Solver(request, cache.shared(request, who, asked, smallest_first=True), asked, smallest_first=True)
        starts, _ = _place(request, solver, tasks, cache, None)
    elif starts and len(tasks) > 1 and (wasted := solver.ratio) > TWICE:
        # What was freed with others in mind was not used by them: each task for itself may do with less.
        solver.statement.discard()
        solver = Solver(request, cache.shared(request, who, None), None)
        if not _place(request, solver, tasks, cache, None)[0] or solver.ratio >= wasted:
            solver.statement.discard()
            solver = Solver(request, cache.shared(request, who, asked), asked)
            _place(request, solver, tasks, cache, None)
    return solver, starts, whys


def _place(
    request: PreemptionRequest, solver: Solver, tasks: Sequence[Task], cache: CycleCache, who: Kind | None
) -> tuple[bool, tuple[UnschedulableReason, ...]]:
    """Place tasks as long as the job starves. Whether it can start with them, and why others found no place."""
    hooks, job = request.session.hooks, request.job
    whys: dict[UnschedulableReason, None] = {}
    hopeless: set[bytes] = set()
    gang = any(entry.plugin == GANG for entry in hooks.job_pipelined.entries)
    for position, task in enumerate(tasks):
        if not hooks.job_starving(job):
            break
        if gang and _too_few(job, solver, len(tasks) - position):
            break
        why = _standing_against(request, task)
        if why is None and task.shape not in hopeless:
            kind = (*who, task.shape, task.priority) if who is not None and not solver.placed else None
            known = cache.known(kind)
            if known is not None:
                why = known[0]
            elif not solver.place(task):
                why = _no_victims(request, task, solver)
                cache.remember(kind, (why,))
            if why is not None:
                hopeless.add(task.shape)
        if why is not None:
            whys[why] = None
    solver.finish()
    return bool(solver.placed) and _can_start(request.session, job), tuple(whys)


def _can_start(session: Session, job: Job) -> bool:
    """Whether the job starts with what it has and what waits. A plugin that hurries it (sla) does not outvote gang."""
    gang = (entry.fn(job) for entry in session.hooks.job_pipelined.entries if entry.plugin == GANG)
    return session.hooks.job_pipelined(job) and all(vote >= Vote.ABSTAIN for vote in gang)


def _commit(request: PreemptionRequest, solver: Solver, cache: CycleCache, whys: Sequence[UnschedulableReason]) -> None:
    session, job = request.session, request.job
    first = len(session.decisions.evictions)
    _claim_what_it_has(session, job, solver)
    solver.statement.commit()
    session.nominations.pin(job)
    _say_who_was_spared(session, solver, first)
    cache.made(job, solver.placed, solver.victims, solver.reprieve)
    if waiting_tasks(session, job):
        session.refuse(job, whys)
    else:
        session.decisions.refusals.pop(job.key, None)


def _claim_what_it_has(session: Session, job: Job, solver: Solver) -> None:
    """Have the job keep what it was given earlier in this cycle and cannot start with alone.

    Else others might take that in the next one, and the victims would have gone in vain.
    """
    bound = {bind.uid for bind in session.decisions.binds} if job.by_status.get(TaskStatus.ALLOCATED) else set()
    for task in job.having(TaskStatus.ALLOCATED | TaskStatus.PIPELINED):
        if task.uid not in bound:
            node = session.nodes.by_name[task.node]
            solver.statement.release(task)
            solver.statement.pipeline(task, node)


def waiting_tasks(session: Session, job: Job) -> list[Task]:
    """The tasks of a job that wait for room, the first to be served first."""
    pending = job.by_status.get(TaskStatus.PENDING, {}).values()
    return sorted((task for task in pending if not task.gated), key=session.hooks.task_key)


def _too_few(job: Job, solver: Solver, left: int) -> bool:
    """Whether the gang cannot reach its minimum any more."""
    return job.ready + job.waiting + left < job.min_available and bool(solver.placed or left < len(job.tasks))


def _standing_against(request: PreemptionRequest, task: Task) -> UnschedulableReason | None:
    """What keeps a task from requesting anything, whoever the candidates are."""
    if task.never_preempts:
        return NeverPreempts(task.key)
    if request.action == RECLAIM:
        return request.session.hooks.preemptive(request.queue, task)
    return None


def _no_victims(request: PreemptionRequest, task: Task, solver: Solver) -> NoVictims:
    denials = Counter(solver.victim_filter.denials.get(key, OfNoUse()) for key in solver.victim_filter.seen)
    return NoVictims(request.action, task.key, len(solver.victim_filter.seen), _spared(denials))


def _spared(denials: Counter[Protection]) -> tuple[ProtectedCount, ...]:
    return tuple(
        ProtectedCount(count, why) for why, count in sorted(denials.items(), key=lambda item: (-item[1], repr(item[0])))
    )


def _say_who_was_spared(session: Session, solver: Solver, first: int) -> None:
    """Complete the reasons of a commit's evictions: the candidates on the same node that may stay, and why."""
    evictions = session.decisions.evictions
    gangs = {eviction.job for eviction in evictions[first:] if eviction.reason.whole_gang}
    neighbours: dict[str, tuple[ProtectedCount, ...]] = {}
    for position, eviction in enumerate(evictions[first:], first):
        node = session.cluster.tasks[eviction.task].node
        if node not in neighbours:
            neighbours[node] = _spared(_neighbours(session, solver, node))
        whole = eviction.job in gangs  # the spare tasks of a gang are part of it if the rest had to go too
        if neighbours[node] or whole:
            stay = members_that_stay(session.jobs[eviction.job]) if whole else 0
            reason = msgspec.structs.replace(
                eviction.reason, spared=neighbours[node], whole_gang=whole, members_that_stay=stay
            )
            evictions[position] = msgspec.structs.replace(eviction, reason=reason)


def _neighbours(session: Session, solver: Solver, node: str) -> Counter[Protection]:
    info = session.nodes.by_name.get(node)  # a member of a gang may stand on a node that has been deleted
    on_node: Sequence[Task] = list(info.tasks.values()) if info is not None else ()
    return Counter(
        solver.victim_filter.denials.get(task.key, NotNeeded())
        for task in on_node
        if task.key in solver.victim_filter.seen and task.status & HOLDING
    )
