"""Make room for one job: place its waiting tasks with evictions, and commit all changes or none.

The statement is committed only if the job can start with it (or, if the job runs already, if each task with evictions
is placed). Otherwise nothing changes, and the reasons are recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter

import msgspec

from ..framework.session import Session
from ..model import resources
from ..model.job import Job
from ..model.resources import PODS
from ..model.task import HOLDING, Task, TaskStatus
from ..policy.hooks import Vote
from ..reasons import (
    NeverPreempts,
    NotNeeded,
    NoVictims,
    OfNoUse,
    ProtectedCount,
    QueueSurplus,
    UnschedulableReason,
    VictimReason,
    WrongService,
)
from ..topology.closeness import Closeness
from ..topology.domains import Domain
from .cycle_cache import CycleCache, Kind, request_kind
from .domains import Limits, by_subgroup, limits_of, places
from .holds import hold_room, use_held_room
from .node_queue import Cost
from .request import RECLAIM, PreemptionRequest, Where
from .solver import Solver
from .units import remaining_members
from .victim_set import TWICE, cost

_BEST_EFFORT, _SHAPE_AND_ROLE = attrgetter("best_effort"), attrgetter("shape", "role")
FAILED_PLACES = 56
"""Maximum number of domains in which victims are searched without success for one job."""


def make_room(request: PreemptionRequest, cache: CycleCache) -> None:
    """Evict the tasks that keep the request's job from starting, and pipeline its tasks onto the freed room."""
    if not _make_room(request, cache):
        hold_room(request)


def _make_room(request: PreemptionRequest, cache: CycleCache) -> bool:
    """Return True if the job can start in room that was freed, or released by other queues, for it."""
    session, job = request.session, request.job
    tasks = waiting_tasks(session, job)
    limits = limits_of(request) if tasks else None
    if limits is not None:
        return _make_room_close(request, cache, tasks, limits)
    preemptor_kind = request_kind(request, tasks[0]) if tasks else None
    kind = None if preemptor_kind is None else (*preemptor_kind, job.min_available, tuple(map(_SHAPE_AND_ROLE, tasks)))
    refusals = cache.known(kind)
    if refusals is None:
        if request.holders and tasks and use_held_room(request, tasks, cache):
            return True
        solver, starts, refusals = search(request, tasks, cache, preemptor_kind)
        if starts and solver.victims:
            _commit(request, solver, cache, refusals)
            return True
        solver.statement.discard()
        if starts:  # no evictions are needed: allocate places the job, unless jobs that it serves first use the room
            session.backlog.left_to_allocate(job)
            return False
        cache.remember(kind, _by_position(tasks, refusals))
    else:
        refusals = _by_name(tasks, refusals)
    if refusals and not request.within_job:
        session.refuse(job, refusals)
    return False


def _make_room_close(request: PreemptionRequest, cache: CycleCache, waiting: Sequence[Task], limits: Limits) -> bool:
    """Make room for a job whose pods have to be close to each other, in the domain that costs least."""
    closeness, request.groups = limits
    room, tasks = cache.victim_room(request, waiting[0]), by_subgroup(waiting, request.groups)
    choices = places(request, limits, waiting, room)
    compared = closeness.compared if closeness is not None else 1
    session, job = request.session, request.job
    costs, kind = cache.domain_costs, _kind_of_trials(request, closeness, tasks)
    found: list[tuple[Cost, int, Where]] = []
    refusals: dict[UnschedulableReason, None] = {}
    are_from_cache = False
    for number, where in enumerate(choices):
        if len(found) == compared or number - len(found) == FAILED_PLACES:
            break
        domain = where(tasks[0])
        if (price := costs.known(kind, domain)) is not None:
            are_from_cache = True
            found.append((price, number, where))
            continue
        request.where = where
        solver, starts, whys = search(request, tasks, cache, None)
        refusals.update(dict.fromkeys(whys))
        solver.statement.discard()
        if starts and not solver.victims:
            session.backlog.left_to_allocate(job)
            return False
        if starts:
            price = _cost_of(solver)
            costs.remember(kind, domain, price)
            found.append((price, number, where))
    if not found:
        if not request.within_job:
            of_no_use = (ProtectedCount(room.candidates, OfNoUse()),) if room.candidates else ()
            no_victims = NoVictims(request.action, waiting[0].key, room.candidates, of_no_use)
            session.refuse(job, list(refusals)[:1] or [no_victims])
        return False
    price, _, request.where = min(found, key=lambda ranked: ranked[:2])
    solver, starts, whys = search(request, tasks, cache, None)
    if are_from_cache and not (starts and _cost_of(solver) == price):
        solver.statement.discard()
        costs.clear()
        return _make_room_close(request, cache, waiting, limits)
    if not starts:
        solver.statement.discard()
        return False
    _commit(request, solver, cache, whys)
    return True


def _cost_of(solver: Solver) -> Cost:
    return cost([victim.option for victim in solver.victims])


def _kind_of_trials(
    request: PreemptionRequest, closeness: Closeness | None, tasks: Sequence[Task]
) -> tuple[object, ...] | None:
    """Return the key of jobs whose victims in one domain cost the same; None if the costs may differ.

    They may differ for reclaim: what it may evict depends on the amounts of whole queues, which each eviction changes.
    """
    kind = request_kind(request, tasks[0]) if request.action != RECLAIM and not request.groups else None
    if kind is None or closeness is None:
        return None
    return (*kind, closeness.limit, request.job.min_available, tuple(map(_SHAPE_AND_ROLE, tasks)))


def search(
    request: PreemptionRequest, tasks: Sequence[Task], cache: CycleCache, preemptor_kind: Kind | None
) -> tuple[Solver, bool, tuple[UnschedulableReason, ...]]:
    """Place as many of the tasks as possible.

    Returns:
        The solver with the best result, whether the job can start, and why tasks were not placed.
    """
    requested = resources.total_of(task.request for task in tasks[: request.job.lacking or len(tasks)])
    solver = Solver(request, cache.shared(request, preemptor_kind, requested), requested)
    starts, refusals = _place(request, solver, tasks, cache, preemptor_kind)
    if not starts and solver.has_sought_victims and (solver.placed or solver.has_protected_victims):
        # The cheapest victims may exhaust what their queue can lose; the victims that free the least may not.
        solver.statement.discard()
        solver = Solver(
            request,
            cache.shared(request, preemptor_kind, requested, smallest_first=True),
            requested,
            smallest_first=True,
        )
        starts, _ = _place(request, solver, tasks, cache, None)
    elif starts and len(tasks) > 1 and (wasted := solver.ratio) > TWICE:
        # The job did not use all the freed room: choosing victims for each task on its own may need fewer.
        solver.statement.discard()
        solver = Solver(request, cache.shared(request, preemptor_kind, None), None)
        if not _place(request, solver, tasks, cache, None)[0] or solver.ratio >= wasted:
            solver.statement.discard()
            solver = Solver(request, cache.shared(request, preemptor_kind, requested), requested)
            _place(request, solver, tasks, cache, None)
    return solver, starts, refusals


def _place(
    request: PreemptionRequest, solver: Solver, tasks: Sequence[Task], cache: CycleCache, preemptor_kind: Kind | None
) -> tuple[bool, tuple[UnschedulableReason, ...]]:
    """Place tasks while the job starves; return whether it can start, and why tasks were not placed."""
    hooks, job = request.session.hooks, request.job
    if (not_entitled := _why_gang_not_entitled(request, tasks)) is not None:
        return False, (not_entitled,)
    refusals: dict[UnschedulableReason, None] = {}
    hopeless: set[tuple[bytes, Domain | None]] = set()
    for position, task in enumerate(tasks):
        if not hooks.job_starving(job) and not _splits_a_subgroup(request, solver):
            break
        if _cannot_start(request.session, job, solver, len(tasks) - position):
            break
        if task.best_effort and request.action == RECLAIM:
            continue  # a task without requests needs no entitlement; backfill places it
        why, place = _why_not_entitled(request, task), (task.shape, request.where(task))
        if why is None and place not in hopeless:
            why = _try_to_place(request, solver, task, cache, preemptor_kind)
            if why is not None:
                hopeless.add(place)
        if why is not None:
            refusals[why] = None
    solver.finish()
    if not solver.placed or not _can_start(request.session, job) or _splits_a_subgroup(request, solver):
        return False, tuple(refusals)
    if not solver.is_in_proportion() and solver.excess is not None:
        return False, (*refusals, solver.excess)
    if solver.victims and (objection := request.objection(request, solver.statement, solver.placed)) is not None:
        return False, (*refusals, objection)
    return True, tuple(refusals)


def _try_to_place(
    request: PreemptionRequest, solver: Solver, task: Task, cache: CycleCache, preemptor_kind: Kind | None
) -> UnschedulableReason | None:
    """Place a task; return why it was not placed, or None."""
    job = request.job
    kind = (
        (*preemptor_kind, task.shape, task.priority, job.lacking, tuple(job.pending_request.items()))
        if preemptor_kind is not None and not solver.placed
        else None
    )
    known = cache.known(kind)
    if known is not None:
        solver.has_sought_victims = True  # the search for the equal task did
        return msgspec.structs.replace(known[0], task=task.key) if isinstance(known[0], NoVictims) else known[0]
    if _placed(request, solver, task):
        return None
    why = solver.excess or no_victims(request, task, solver)
    cache.remember(kind, (why,))
    return why


def _splits_a_subgroup(request: PreemptionRequest, solver: Solver) -> bool:
    """Whether some tasks of a subgroup have been placed, but fewer than it needs."""
    placed = {task.uid for task in solver.placed} if request.groups else ()
    return any(
        group.name and group.lacking and any(task.uid in placed for task in group.tasks) for group in request.groups
    )


def _placed(request: PreemptionRequest, solver: Solver, task: Task) -> bool:
    with request.session.placement.inside(request.where(task)):
        return solver.place(task)


def _by_position(tasks: Sequence[Task], refusals: Iterable[UnschedulableReason]) -> tuple[UnschedulableReason, ...]:
    """Return the reasons of a job with the positions of its tasks instead of their names, for equal jobs."""
    keys = [task.key for task in tasks]
    return _renamed(refusals, lambda key: str(keys.index(key)))


def _by_name(tasks: Sequence[Task], refusals: Iterable[UnschedulableReason]) -> tuple[UnschedulableReason, ...]:
    """Return the reasons of an equal job, by position, with the names of the tasks of this job."""
    return _renamed(refusals, lambda position: tasks[int(position)].key)


def _renamed(refusals: Iterable[UnschedulableReason], name_of: Callable[[str], str]) -> tuple[UnschedulableReason, ...]:
    return tuple(
        msgspec.structs.replace(why, task=name_of(why.task))
        if isinstance(why, NoVictims | NeverPreempts | WrongService)
        else why
        for why in refusals
    )


def _can_start(session: Session, job: Job) -> bool:
    """Whether present and pipelined tasks suffice to start the job: no plugin of any tier rejects it."""
    return all(vote(job) is not Vote.REJECT for vote in session.hooks.job_pipelined.functions)


def _commit(
    request: PreemptionRequest, solver: Solver, cache: CycleCache, refusals: Sequence[UnschedulableReason]
) -> None:
    session, job = request.session, request.job
    _keep_earlier_placements(session, job, solver)
    solver.statement.commit(_complete_reasons(session, solver))
    session.nominations.pin(job)
    cache.record_success(job, solver.placed, solver.victims, solver.reprieve)
    if waiting_tasks(session, job):
        session.refuse(job, refusals)
    else:
        session.decisions.refusals.pop(job.key, None)


def _keep_earlier_placements(session: Session, job: Job, solver: Solver) -> None:
    """Pipeline tasks that were allocated earlier in this cycle and are not bound, because they cannot start alone.

    Otherwise another job might take their room in the next cycle, and the evictions would be useless.
    """
    bound = {bind.uid for bind in session.decisions.binds} if job.by_status.get(TaskStatus.ALLOCATED) else set()
    for task in job.having(TaskStatus.ALLOCATED | TaskStatus.PIPELINED):
        if task.uid not in bound:
            node = session.nodes.by_name[task.node]
            solver.statement.release(task)
            solver.statement.pipeline(task, node)


def waiting_tasks(session: Session, job: Job) -> list[Task]:
    """Return the tasks of a job that wait for room, in the order in which they are served.

    Tasks that request nothing come last: the gang counts them as placed (`Job.undemanding`), so that the other tasks
    must find room first.
    """
    pending = job.by_status.get(TaskStatus.PENDING, {}).values()
    tasks = session.hooks.sorted_tasks([task for task in pending if not task.gated] if job.gated else pending)
    return sorted(tasks, key=_BEST_EFFORT) if job.undemanding else tasks


def _cannot_start(session: Session, job: Job, solver: Solver, left: int) -> bool:
    """Whether the job cannot start even if all `left` remaining tasks find room."""
    return not session.hooks.job_reachable(job, left) and bool(solver.placed or left < len(job.tasks))


def _why_not_entitled(request: PreemptionRequest, task: Task) -> UnschedulableReason | None:
    """Return why no victim may be evicted for a task, whatever the candidates are; None if some may."""
    if task.never_preempts:
        return NeverPreempts(task.key)
    if request.action == RECLAIM:
        return request.session.hooks.preemptive(request.queue, task)
    return None


def _why_gang_not_entitled(request: PreemptionRequest, tasks: Sequence[Task]) -> UnschedulableReason | None:
    """Return why a gang may not reclaim for all tasks that it lacks, before victims are sought for the first of them.

    None if it may, if it may not even reclaim for the first task, or if it could choose among different tasks.
    """
    lacking = min(request.job.lacking, len(tasks))
    if request.action != RECLAIM or lacking < 2 or _why_not_entitled(request, tasks[0]) is not None:
        return None
    waiting = [task for task in tasks if not task.best_effort]
    needed = waiting[:lacking]
    if len(needed) < len(waiting) and any(task.shape != needed[0].shape for task in waiting):
        return None
    return request.session.hooks.preemptive_gang(request.queue, needed)


def no_victims(request: PreemptionRequest, task: Task, solver: Solver) -> NoVictims:
    """Return how many candidates there were for a task, and what protects them."""
    hopeless = solver.hopeless
    if hopeless is not None and hopeless.refusal is not None:
        return msgspec.structs.replace(hopeless.refusal, task=task.key)
    seen = solver.victim_filter.seen
    spared = solver.victim_filter.protections(seen, OfNoUse())
    found = NoVictims(request.action, task.key, len(seen), spared, tuple(_surpluses(request, task, set(seen.values()))))
    if hopeless is not None:
        hopeless.remember(found)
    return found


def _surpluses(request: PreemptionRequest, task: Task, queues: Iterable[str]) -> Iterator[QueueSurplus]:
    """Yield what the candidates' queues held above their deserved share at the start of the cycle.

    Only dimensions that the task requests are reported.
    """
    if request.action != RECLAIM:
        return
    for name in sorted(queues):
        numbers = request.session.decisions.queues.get(name)
        if numbers is None:
            continue
        for dimension in sorted(task.request):
            held, deserved = numbers.allocated.get(dimension, 0), numbers.deserved.get(dimension)
            if deserved is not None and dimension != PODS and held > deserved:
                yield QueueSurplus(name, dimension, held, deserved)


def _complete_reasons(session: Session, solver: Solver) -> dict[str, VictimReason]:
    """Return the reasons of the evictions, by uid, completed with the protected candidates on the same node."""
    evictions = solver.statement.evictions
    gangs = {task.job for task, reason in evictions if reason.whole_gang}
    neighbours: dict[str, tuple[ProtectedCount, ...]] = {}
    reasons: dict[str, VictimReason] = {}
    for task, reason in evictions:
        if task.node not in neighbours:
            neighbours[task.node] = _protected_on(session, solver, task.node)
        whole = task.job in gangs  # tasks above a gang's minimum belong to the gang if its other tasks were evicted too
        reasons[task.uid] = msgspec.structs.replace(
            reason,
            spared=neighbours[task.node],
            whole_gang=whole,
            members_that_stay=remaining_members(session.jobs[task.job]) if whole else 0,
        )
    return reasons


def _protected_on(session: Session, solver: Solver, node: str) -> tuple[ProtectedCount, ...]:
    info = session.nodes.by_name.get(node)  # a gang may have members on a deleted node
    on_node: Sequence[Task] = list(info.tasks.values()) if info is not None else ()
    seen = solver.victim_filter.seen
    return solver.victim_filter.protections(
        [task.key for task in on_node if task.key in seen and task.status & HOLDING], NotNeeded()
    )
