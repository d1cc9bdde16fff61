"""The core of the scheduler: compute the decisions of one cycle from the state and the policy.

The one rule: `decide` is pure. It uses no I/O, no clock and no randomness; equal input leads to equal output; the input
is unchanged. Caches of values that follow from the input alone, such as `Nodes.kept`, may grow. `scheduler.core` keeps
what one cycle leaves to the next.

At its end, the phase of each PodGroup follows from refusals and from the tasks that the API shows as scheduled
(Volcano's `framework/session.go`, `jobStatus`); a bind of this cycle does not count yet. The phase Unknown, set after a
refusal, remains until enough tasks run: a cycle that skipped the job, or was cut before its turn, has no newer result.
"""

from __future__ import annotations

from collections.abc import Set

import msgspec

from .actions import ACTIONS
from .backlog.backlog import Backlog
from .backlog.cycle_end import CycleEnd, CycleOutcome
from .framework.decisions import Decisions
from .framework.plugin import OpenedPlugins
from .framework.session import Session
from .framework.tracing import Step, no_trace
from .framework.work import UNLIMITED, Budget
from .model.cluster import Cluster
from .model.job import Job, PodGroupPhase
from .model.task import COMPLETED, TaskStatus
from .placement.empty_nodes import EmptyNodes
from .plugins import PLUGINS
from .policy.model import Policy
from .preemption.early_ends import note_early_ends
from .reasons import Gated, NoNode, NotBackfilled

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


BACKFILL = "backfill"


def decide(
    cluster: Cluster,
    policy: Policy,
    now: float,
    step: Step = no_trace,
    *,
    budget: Budget = UNLIMITED,
    backlog: Backlog | None = None,
) -> Decisions:
    """Run one cycle and return its decisions.

    Jobs that an earlier cycle refused, as recorded in the backlog, are skipped until a change could help them. If the
    results of this cycle could help skipped jobs, the cycle is decided anew with these jobs, so that each is tried in
    its place in the order of service.

    Args:
        cluster: The objects. They are unchanged after the cycle.
        policy: Actions, plugins and their configuration.
        now: Seconds since 1970.
        step: Called for each plugin, action and attempt.
        budget: The amount of work after which the remaining jobs are left for the next cycle.
        backlog: The waiting jobs of the cluster; None if no job has been refused yet.

    >>> decide(Cluster(), Policy(actions=(), tiers=()), now=0.0).binds
    []
    """
    return run_cycle(cluster, OpenedPlugins(policy, PLUGINS), now, step, budget=budget, backlog=backlog).decisions


def run_cycle(
    cluster: Cluster,
    plugins: OpenedPlugins,
    now: float,
    step: Step = no_trace,
    *,
    budget: Budget = UNLIMITED,
    backlog: Backlog | None = None,
) -> Session:
    """Return the session of one cycle after its end. The arguments are as in `decide`; `plugins` belong to a policy."""
    backlog = backlog or Backlog.of(cluster)
    session = _run(Session(cluster, plugins, now, step, budget=budget, backlog=backlog))
    decisions, woken = session.decisions, set[str]()
    while not decisions.cut and (helped := _helped(session)):
        woken |= helped
        more = Session(cluster, plugins, now, step, budget=budget, backlog=backlog, woken=woken, spent=decisions.steps)
        _run(more)
        if more.decisions.cut:  # the deletion of the victims wakes these jobs for a later cycle
            decisions.steps = more.decisions.steps
            break
        session, decisions = more, more.decisions
    return session


def _run(session: Session) -> Session:
    """Run all actions once, and restore the state."""
    try:
        session.nominations.claim()
        actions = session.policy.actions
        for number, name in enumerate(actions):
            session.backlog.action = name
            with session.step("action", name), session.work.action(name, len(actions) - number):
                ACTIONS[name](session)
        session.backlog.action = ""
        session.nominations.finish()
        set_phases(session)
        _annotate_binds(session)
        _note_gated(session)
        _note_unfilled(session)
        _note_unplaceable(session)
        note_early_ends(session)
        _note_waiting(session)
        _complete(session)
        return session
    finally:
        session.close()


def _helped(session: Session) -> Set[str]:
    """Return the skipped jobs that this cycle may help: by evictions, or by room that it no longer keeps for a task."""
    decisions = session.decisions
    placed = {**decisions.pipelined, **decisions.memory.held, **{bind.task: bind.node for bind in decisions.binds}}
    return session.backlog.helped_by((evict.task for evict in decisions.evictions), placed, session.plugins.excess)


def _annotate_binds(session: Session) -> None:
    """Add to each bind the annotations that plugins return for the task."""
    annotations, binds = session.hooks.bind_annotations, session.decisions.binds
    for position, bind in enumerate(binds if annotations.functions else ()):
        if more := annotations(session.cluster.tasks[bind.task]):
            binds[position] = msgspec.structs.replace(bind, annotations=more)


def _note_gated(session: Session) -> None:
    """Record for each job how many of its tasks wait for scheduling gates to be removed."""
    for job in session.selection.undecided:
        if job.gated and (gated := sum(task.gated for task in job.by_status.get(TaskStatus.PENDING, {}).values())):
            session.refuse(job, [Gated(gated)])


def _note_unfilled(session: Session) -> None:
    """Record why tasks without requests wait, if the policy has no action that places them."""
    if BACKFILL in session.policy.actions:
        return
    for job in session.selection.undecided:
        waiting = [task for task in job.by_status.get(TaskStatus.PENDING, {}).values() if task.best_effort]
        if waiting and not session.is_pending(job):
            session.refuse(job, [NotBackfilled(len(waiting))])


def _note_unplaceable(session: Session) -> None:
    """Record for each job without a node whether the nodes could hold it at all."""
    refusals, empty = session.decisions.refusals, None
    for job in session.selection.undecided:
        refusal = refusals.get(job.key)
        if refusal is None or NoNode not in map(type, refusal.items):
            continue
        empty = empty or session.shared(EmptyNodes)
        if (why := empty.why_never(job)) is not None:
            refusals[job.key] = refusal.also(why)


def _note_waiting(session: Session) -> None:
    """Record which tasks wait for capacity being freed, in the order of their keys."""
    waiting = {task.key: task.node for task, *_ in session.changes.entries if task.status is TaskStatus.PIPELINED}
    session.decisions.pipelined = dict(sorted(waiting.items()))


def _complete(session: Session) -> None:
    """Add to the decisions the cost of the cycle, and the state for the next cycle."""
    decisions, work = session.decisions, session.work
    decisions.steps, decisions.cut = work.spent, work.cut
    bound = {bind.task for bind in decisions.binds}
    outcome = CycleOutcome(
        undecided=session.selection.undecided,
        refusals=decisions.refusals,
        moved={*(bind.job for bind in decisions.binds), *decisions.phases},
        bound=bound,
        held={
            task.key: task.node
            for task, *_ in session.changes.entries
            if task.status is TaskStatus.ALLOCATED and task.key not in bound
        },
        cut=work.cut,
        full_budget=work.budget.full or work.budget.cycle,
        retry_after=work.budget.retry_after,
        evicted_for=session.nominations.evicted_for,
        quota_bounds=session.plugins.quota_bounds,
        shares_follow_requests=session.plugins.shares_follow_requests,
        nodes=session.nodes,
        placement=session.placement,
        reservations=session.selection.reservations,
    )
    end = CycleEnd(session.backlog, outcome)
    decisions.memory = end.memory()
    decisions.wake_at = end.wake_at(decisions.wake_at)
