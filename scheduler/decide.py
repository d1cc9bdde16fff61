"""The core of the scheduler: compute the decisions of one cycle from the state and the policy.

The one rule: `decide` is pure. It uses no I/O, no clock and no randomness; equal input leads to equal output; the input
state is unchanged.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

import msgspec

from .actions import ACTIONS
from .actions.podgroup_phases import set_phases
from .backlog.helped import has_due
from .framework.decisions import Decisions
from .framework.session import Session
from .framework.tracing import Step, no_trace
from .framework.work import UNLIMITED, Budget
from .model.cluster import Cluster
from .model.task import TaskStatus
from .placement.empty_nodes import EmptyNodes
from .plugins import PLUGINS
from .policy.model import Policy
from .preemption.early_ends import note_early_ends
from .reasons import Gated, NoNode, NotBackfilled

BACKFILL = "backfill"


@dataclass(frozen=True, slots=True)
class LastCycle:
    """The decisions of the last cycle on a state, with their input."""

    version: int
    policy: Policy
    now: float
    decisions: Decisions
    considered: Set[str]
    """Jobs whose refusal may differ from that of the cycle before; other refusals are the same objects, or gone."""

    def covers(self, version: int, policy: Policy, now: float) -> bool:
        """Whether a new cycle would return the same decisions; never after a cycle that was cut."""
        if self.decisions.cut:
            return False
        wake_at = self.decisions.wake_at
        early = now == self.now or (self.now < now and (wake_at is None or now < wake_at))
        return early and version == self.version and (policy is self.policy or policy == self.policy)


def decide(
    cluster: Cluster, policy: Policy, now: float, step: Step = no_trace, *, budget: Budget = UNLIMITED
) -> Decisions:
    """Run one cycle and return its decisions.

    If nothing has changed since the last cycle on this state, and the time `wake_at` of that cycle has not come, its
    decisions are returned again. Jobs that an earlier cycle refused, as recorded in the state, are skipped until a
    change could help them. If the results of this cycle could help skipped jobs, the cycle is decided anew with these
    jobs, so that each is tried in its place in the order of service.

    Args:
        cluster: the state. It is unchanged after the cycle.
        policy: actions, plugins and their configuration.
        now: seconds since 1970.
        step: called for each plugin, action and attempt.
        budget: the amount of work after which the remaining jobs are left for the next cycle.

    >>> decide(Cluster(), Policy(actions=(), tiers=()), now=0.0).binds
    []
    """
    last = cluster.last_cycle
    if isinstance(last, LastCycle) and last.covers(cluster.version, policy, now) and not has_due(cluster, now):
        return last.decisions
    session = _run(Session(cluster, policy, now, PLUGINS, step, budget=budget))
    decisions, woken = session.decisions, set[str]()
    while not decisions.cut and (helped := _helped(session)):
        woken |= helped
        more = _run(Session(cluster, policy, now, PLUGINS, step, budget=budget, woken=woken, spent=decisions.steps))
        if more.decisions.cut:  # the deletion of the victims wakes these jobs for a later cycle
            decisions.steps = more.decisions.steps
            break
        session, decisions = more, more.decisions
    cluster.last_cycle = LastCycle(cluster.version, policy, now, decisions, session.considered)
    return decisions


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
        session.complete_decisions()
        return session
    finally:
        session.close()


def _helped(session: Session) -> Set[str]:
    """Return the skipped jobs that this cycle may help: by evictions, or by room that it no longer keeps for a task."""
    decisions = session.decisions
    placed = {**decisions.pipelined, **decisions.memory.held, **{bind.task: bind.node for bind in decisions.binds}}
    return session.backlog.helped_by((evict.task for evict in decisions.evictions), placed, session.excess)


def _annotate_binds(session: Session) -> None:
    """Add to each bind the annotations that plugins return for the task."""
    annotations, binds = session.hooks.bind_annotations, session.decisions.binds
    for position, bind in enumerate(binds if annotations.functions else ()):
        if more := annotations(session.cluster.tasks[bind.task]):
            binds[position] = msgspec.structs.replace(bind, annotations=more)


def _note_gated(session: Session) -> None:
    """Record for each job how many of its tasks wait for scheduling gates to be removed."""
    for job in session.undecided:
        if job.gated and (gated := sum(task.gated for task in job.by_status.get(TaskStatus.PENDING, {}).values())):
            session.refuse(job, [Gated(gated)])


def _note_unfilled(session: Session) -> None:
    """Record why tasks without requests wait, if the policy has no action that places them."""
    if BACKFILL in session.policy.actions:
        return
    for job in session.undecided:
        waiting = [task for task in job.by_status.get(TaskStatus.PENDING, {}).values() if task.best_effort]
        if waiting and not session.is_pending(job):
            session.refuse(job, [NotBackfilled(len(waiting))])


def _note_unplaceable(session: Session) -> None:
    """Record for each job without a node whether the nodes could hold it at all."""
    refusals, empty = session.decisions.refusals, session.shared(EmptyNodes)
    for job in session.undecided:
        refusal = refusals.get(job.key)
        if refusal is None or NoNode not in map(type, refusal.items):
            continue
        if (why := empty.why_never(job)) is not None:
            refusals[job.key] = refusal.also(why)


def _note_waiting(session: Session) -> None:
    """Record which tasks wait for capacity being freed, in the order of their keys."""
    waiting = {task.key: task.node for task, *_ in session.changes.entries if task.status is TaskStatus.PIPELINED}
    session.decisions.pipelined = dict(sorted(waiting.items()))
