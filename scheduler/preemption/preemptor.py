"""One job's attempt to get room, from its first waiting task to the commit.

The one rule: what is committed lets the job start (or, if it runs already, lets each task that it evicts for start);
else nothing has happened but the reasons are told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from ..framework.session import Session
from ..model.job import Job
from ..model.task import HOLDING, Task, TaskStatus
from ..policy.hooks import Vote
from ..reasons import Denial, NeverPreempts, NotEntitled, NotNeeded, NoVictims, OfNoUse, Spared, Why
from .cycle_cache import Attempts, Kind, claimant_kind
from .request import RECLAIM, Claim
from .solver import Search
from .units import GANG


def make_room(claim: Claim, attempts: Attempts) -> bool:
    """Evict what is needed for the claim's job to start, and have its tasks wait for the room.

    Whether that was possible.
    """
    session, job = claim.session, claim.job
    tasks = waiting_tasks(session, job)
    who = claimant_kind(claim, tasks[0]) if tasks else None
    kind = None if who is None else (*who, job.min_available, tuple((task.shape, task.role) for task in tasks))
    whys = attempts.known(kind)
    if whys is None:
        search = Search(claim, attempts.shared(claim, who))
        starts, whys = _place(claim, search, tasks, attempts, who)
        if not starts and search.placed:
            # The cheapest victims may have used up what their queue can lose; those that free the least may not.
            search.statement.discard()
            search = Search(claim, attempts.shared(claim, who, frugal=True), frugal=True)
            starts, _ = _place(claim, search, tasks, attempts, None)
        if starts and search.victims:
            _commit(claim, search, attempts, whys)
            return True
        search.statement.discard()
        if starts:
            return False  # room that nobody has to leave is for allocate to give
        attempts.remember(kind, whys)
    if not claim.within_job:
        session.refuse(job, whys)
    return False


def _place(
    claim: Claim, search: Search, tasks: Sequence[Task], attempts: Attempts, who: Kind | None
) -> tuple[bool, tuple[Why, ...]]:
    """Place tasks as long as the job starves. Whether it can start with them, and why others found no place."""
    hooks, job = claim.session.hooks, claim.job
    whys: dict[Why, None] = {}
    hopeless: set[bytes] = set()
    for position, task in enumerate(tasks):
        if not hooks.first_tier_agrees("job_starving", job) or _too_few(job, search, len(tasks) - position):
            break
        why = _standing_against(claim, task)
        if why is None and task.shape not in hopeless:
            kind = (*who, task.shape, task.priority) if who is not None and not search.placed else None
            known = attempts.known(kind)
            if known is not None:
                why = known[0]
            elif not search.place(task):
                why = _no_victims(claim, task, search)
                attempts.remember(kind, (why,))
            if why is not None:
                hopeless.add(task.shape)
        if why is not None:
            whys[why] = None
    search.finish()
    return bool(search.placed) and _can_start(claim.session, job), tuple(whys)


def _can_start(session: Session, job: Job) -> bool:
    """Whether the job starts with what it has and what waits. A plugin that hurries it (sla) does not outvote gang."""
    gang = (entry.fn(job) for entry in session.hooks.of("job_pipelined") if entry.plugin == GANG)
    return session.hooks.votes("job_pipelined", job) and all(vote >= Vote.ABSTAIN for vote in gang)


def _commit(claim: Claim, search: Search, attempts: Attempts, whys: Sequence[Why]) -> None:
    session, job = claim.session, claim.job
    first = len(session.decisions.evictions)
    _claim_what_it_has(session, job, search)
    search.statement.commit()
    session.reservations.stand(job)
    _say_who_was_spared(session, search, first)
    attempts.made(search.victims, search.give_back)
    if waiting_tasks(session, job):
        session.refuse(job, whys)
    else:
        session.decisions.refusals.pop(job.key, None)


def _claim_what_it_has(session: Session, job: Job, search: Search) -> None:
    """Have the job claim what it was given earlier in this cycle and cannot start with alone.

    Else others might take that in the next one, and the victims would have gone in vain.
    """
    bound = {bind.uid for bind in session.decisions.binds} if job.by_status.get(TaskStatus.ALLOCATED) else set()
    for task in job.having(TaskStatus.ALLOCATED | TaskStatus.PIPELINED):
        if task.uid not in bound:
            node = session.nodes.by_name[task.node]
            search.statement.release(task)
            search.statement.pipeline(task, node)


def waiting_tasks(session: Session, job: Job) -> list[Task]:
    """The tasks of a job that wait for room, the first to be served first."""
    pending = job.by_status.get(TaskStatus.PENDING, {}).values()
    return sorted((task for task in pending if not task.gated), key=session.hooks.task_key)


def _too_few(job: Job, search: Search, left: int) -> bool:
    """Whether the gang cannot reach its minimum any more."""
    return job.ready + job.waiting + left < job.min_available and bool(search.placed or left < len(job.tasks))


def _standing_against(claim: Claim, task: Task) -> Why | None:
    """What keeps a task from claiming anything, whoever the candidates are."""
    if task.never_preempts:
        return NeverPreempts(task.key)
    if claim.action == RECLAIM and not claim.session.hooks.all_agree("preemptive", claim.queue, task):
        numbers = claim.session.facts.get("queues")
        why: Why | None = numbers.not_entitled(claim.queue, task) if numbers is not None else None
        return why or NotEntitled(claim.queue.name)
    return None


def _no_victims(claim: Claim, task: Task, search: Search) -> NoVictims:
    denials = Counter(search.jury.denials.get(key, OfNoUse()) for key in search.jury.seen)
    return NoVictims(claim.action, task.key, len(search.jury.seen), _spared(denials))


def _spared(denials: Counter[Denial]) -> tuple[Spared, ...]:
    return tuple(
        Spared(count, why) for why, count in sorted(denials.items(), key=lambda item: (-item[1], repr(item[0])))
    )


def _say_who_was_spared(session: Session, search: Search, first: int) -> None:
    """Complete the reasons of a commit's evictions: the candidates on the same node that may stay, and why."""
    evictions = session.decisions.evictions
    gangs = {eviction.job for eviction in evictions[first:] if eviction.reason.whole_gang}
    neighbours: dict[str, tuple[Spared, ...]] = {}
    for position, eviction in enumerate(evictions[first:], first):
        node = session.cluster.tasks[eviction.task].node
        if node not in neighbours:
            neighbours[node] = _spared(_neighbours(session, search, node))
        whole = eviction.job in gangs  # the spare tasks of a gang are part of it if the rest had to go too
        if neighbours[node] or whole != eviction.reason.whole_gang:
            reason = msgspec.structs.replace(eviction.reason, spared=neighbours[node], whole_gang=whole)
            evictions[position] = msgspec.structs.replace(eviction, reason=reason)


def _neighbours(session: Session, search: Search, node: str) -> Counter[Denial]:
    on_node: Sequence[Task] = list(session.nodes.by_name[node].tasks.values())
    return Counter(
        search.jury.denials.get(task.key, NotNeeded())
        for task in on_node
        if task.key in search.jury.seen and task.status & HOLDING
    )
