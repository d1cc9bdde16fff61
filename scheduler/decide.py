"""The whole scheduler: the state and the policy in, the decisions out.

The one rule: pure. No I/O, no clock, no randomness; equal input gives equal output, and the state is left as it was found.
"""

from __future__ import annotations

from scheduler.actions import ACTIONS
from scheduler.decisions import Decisions
from scheduler.model.cluster import Cluster
from scheduler.model.task import TaskStatus
from scheduler.phases import settle_phases
from scheduler.plugins import PLUGINS
from scheduler.policy import Policy
from scheduler.session import Session


def decide(cluster: Cluster, policy: Policy, now: float) -> Decisions:
    """One cycle. ``now`` is seconds since the epoch.

    >>> decide(Cluster(), Policy(actions=(), tiers=()), now=0.0).binds
    []
    """
    session = Session(cluster, policy, now, PLUGINS)
    try:
        session.reservations.claim()
        for name in policy.actions:
            ACTIONS[name](session)
        session.reservations.give_up()
        settle_phases(session)
        _note_waiting(session)
        return session.decisions
    finally:
        session.close()


def _note_waiting(session: Session) -> None:
    """Which tasks wait for room being freed, in the order of their keys."""
    waiting = {task.key: task.node for task, *_ in session.log if task.status is TaskStatus.PIPELINED}
    session.decisions.pipelined = dict(sorted(waiting.items()))
