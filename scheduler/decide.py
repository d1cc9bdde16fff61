"""The whole scheduler: the state and the policy in, the decisions out.

The one rule: pure. No I/O, no clock, no randomness; equal input gives equal output, and the state is left as it was
found.
"""

from __future__ import annotations

from dataclasses import dataclass

from .actions import ACTIONS
from .actions.podgroup_phases import set_phases
from .framework.decisions import Decisions
from .framework.session import Session
from .framework.tracing import Step, no_trace
from .framework.work import UNLIMITED, Budget
from .model.cluster import Cluster
from .model.task import TaskStatus
from .plugins import PLUGINS
from .policy.model import Policy
from .reasons import Gated, NotBackfilled

BACKFILL = "backfill"


@dataclass(frozen=True, slots=True)
class LastCycle:
    """What was decided last on a state, and what of."""

    version: int
    policy: Policy
    now: float
    decisions: Decisions

    def covers(self, version: int, policy: Policy, now: float) -> bool:
        """Whether deciding again would come to the same. A cycle that was cut goes on instead."""
        if self.decisions.cut:
            return False
        wake_at = self.decisions.wake_at
        early = now == self.now or (self.now < now and (wake_at is None or now < wake_at))
        return early and version == self.version and (policy is self.policy or policy == self.policy)


def decide(
    cluster: Cluster, policy: Policy, now: float, step: Step = no_trace, *, budget: Budget = UNLIMITED
) -> Decisions:
    """One cycle. ``now`` is seconds since the epoch; ``step`` is told of each plugin, action and attempt; ``budget``
    says after how much work jobs are left for the next cycle.

    Where nothing has changed since the last cycle on this state, nor has the time come that it named (``wake_at``),
    its decisions stand, and are not made again. Jobs that an earlier cycle refused, as the state remembers it, are
    passed over until something changes that could help them.

    >>> decide(Cluster(), Policy(actions=(), tiers=()), now=0.0).binds
    []
    """
    last = cluster.last_cycle
    if isinstance(last, LastCycle) and last.covers(cluster.version, policy, now) and not cluster.backlog.has_due(now):
        return last.decisions
    session = Session(cluster, policy, now, PLUGINS, step, budget=budget)
    try:
        session.nominations.claim()
        for number, name in enumerate(policy.actions):
            session.backlog.action = name
            with step("action", name), session.work.action(name, len(policy.actions) - number):
                ACTIONS[name](session)
        session.backlog.action = ""
        session.nominations.give_up()
        set_phases(session)
        _note_gated(session)
        _note_unfilled(session)
        _note_waiting(session)
        session.backlog.leave(session)
        cluster.last_cycle = LastCycle(cluster.version, policy, now, session.decisions)
        return session.decisions
    finally:
        session.close()


def _note_gated(session: Session) -> None:
    """Say of jobs how many of their tasks scheduling gates hold back."""
    for job in session.undecided:
        if job.gated and (held := sum(task.gated for task in job.by_status.get(TaskStatus.PENDING, {}).values())):
            session.refuse(job, [Gated(held)])


def _note_unfilled(session: Session) -> None:
    """Say of tasks that request nothing why they wait where no action is there for them."""
    if BACKFILL in session.policy.actions:
        return
    for job in session.undecided:
        waiting = [task for task in job.by_status.get(TaskStatus.PENDING, {}).values() if task.best_effort]
        if waiting and not session.is_pending(job):
            session.refuse(job, [NotBackfilled(len(waiting))])


def _note_waiting(session: Session) -> None:
    """Which tasks wait for room being freed, in the order of their keys."""
    waiting = {task.key: task.node for task, *_ in session.changes.entries if task.status is TaskStatus.PIPELINED}
    session.decisions.pipelined = dict(sorted(waiting.items()))
