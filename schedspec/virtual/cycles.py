"""Run the scheduler in virtual time: keep the state, decide, apply the decisions as assumptions.

This module does what `scheduler.live` does between watches and writes. The state changes through `apply_input` only, so
that a recording of the inputs replays the run.
"""

from __future__ import annotations

from collections.abc import Callable, Set

from ..scheduler.core import Core
from ..scheduler.framework.decisions import Decisions
from ..scheduler.framework.work import Budget
from ..scheduler.inputs import Assumed, Decided, Input, Nominated, ObjectSeen, apply_input
from ..scheduler.model.cluster import Cluster
from ..scheduler.model.job import PodGroupPhase
from ..scheduler.policy.model import Policy
from .disruptions import DisruptionController

NEVER = 1e9
"""Seconds; more than twice the length of any run."""
WHEN_CHANGED = Budget(retry_after=NEVER)
"""A budget that never cuts a cycle short and never retries a job by time. A waiting job is retried after a change that
the hints of its refusal name. Hints name every change that could help, so a retry by time would find nothing.
"""


class Cycles:
    """The scheduler's state and its cycles. `on_input` receives each input that was applied (a recording)."""

    def __init__(
        self,
        cluster: Cluster,
        policy: Policy,
        *,
        budget: Budget = WHEN_CHANGED,
        on_input: Callable[[Input], None] | None = None,
    ) -> None:
        self.core = Core(cluster)
        self.cluster, self.policy, self.budget = cluster, policy, budget
        self.number = 0
        """The number of cycles."""
        self.considered: Set[str] = frozenset()
        """The jobs whose refusal may differ from their refusal in the previous cycle."""
        self._on_input = on_input
        self._disruptions = DisruptionController()
        self._version = -1
        self._continues = False
        self._wake_at: float | None = None

    def apply(self, given: Input) -> None:
        """Apply one input. Raises ValueError if an object does not fit its kind; the state is then unchanged."""
        apply_input(self.core, given)
        self._disruptions.observe(given, self.cluster.tasks)
        if self._on_input is not None:
            self._on_input(given)

    def use(self, policy: Policy) -> None:
        """Put a policy into force from the next cycle on."""
        self.policy = policy
        self._continues = True

    @property
    def wake_at(self) -> float | None:
        """The time at which decisions may change although no input arrives; None if there is no such time."""
        return self._wake_at

    def is_wanted(self, now: float) -> bool:
        """Whether another cycle could make a decision that the last cycle did not make."""
        if self._continues or self.cluster.version != self._version:
            return True
        return self._wake_at is not None and self._wake_at <= now

    def run(self, now: float) -> Decisions:
        """Decide, and apply the decisions as assumptions."""
        self.number += 1
        for budget in self._disruptions.changed():
            self.apply(ObjectSeen("PodDisruptionBudget", budget))
        decisions = self.core.decide(self.policy, now, budget=self.budget)
        self.apply(Decided(self.number, now, decisions, self.budget))
        self.considered = self.core.last.considered if self.core.last is not None else frozenset()
        self._version, wake_at = self.cluster.version, decisions.wake_at
        self._wake_at = None if wake_at is None or wake_at - now > NEVER / 2 else wake_at
        for bind in decisions.binds:
            self.apply(Assumed(bind.task, bind.uid, bind.node, bind.annotations))
        for eviction in decisions.evictions:
            self.apply(Assumed(eviction.task, eviction.uid))
        for nomination in decisions.nominations:
            self.apply(Nominated(nomination.task, nomination.uid, nomination.node))
        self._continues = bool(decisions.cut) or self._admitted_late(decisions)
        return decisions

    def _admitted_late(self, decisions: Decisions) -> bool:
        """Whether this cycle admitted jobs too late for its other actions: only the next cycle can place these jobs."""
        actions = self.policy.actions
        admits = "enqueue" if "enqueue" in actions else "allocate"  # allocate, where a policy has no enqueue
        return admits in actions[1:] and PodGroupPhase.INQUEUE in decisions.phases.values()

    def confirm(self, now: float) -> None:
        """Mark the state as decided: only the cycle itself changed it. Another cycle is needed only if a job is due."""
        self._version = self.cluster.version
        self._continues = self._continues or self.core.has_due(now)
