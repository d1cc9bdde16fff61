"""The owner of everything that one cycle leaves to the next.

Within a process, only this object changes between two cycles: `scheduler.inputs.apply_input` changes the state, and
`Core.decide` keeps the last cycle and the opened plugins. Both save work only: without them, `scheduler.decide.decide`
opens the plugins anew, and returns equal binds and evictions.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from .backlog.backlog import Backlog
from .backlog.helped import has_due
from .decide import run_cycle
from .framework.decisions import Decisions
from .framework.plugin import OpenedPlugins
from .framework.tracing import Step, no_trace
from .framework.work import UNLIMITED, Budget
from .model.cluster import Cluster
from .plugins import PLUGINS
from .policy.model import Policy


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


class Core:
    """The state of a scheduler and its last cycle.

    Attributes:
        cluster: The objects of the API, and the writes in flight.
        backlog: The waiting jobs. The backlog listens to every change of the cluster.
        last: The last cycle; None before the first one.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.backlog = cluster.listener = Backlog.of(cluster)
        self.last: LastCycle | None = None
        self._plugins: OpenedPlugins | None = None

    def decide(self, policy: Policy, now: float, step: Step = no_trace, *, budget: Budget = UNLIMITED) -> Decisions:
        """Run one cycle on the state, and return its decisions. See `scheduler.decide.decide`.

        If nothing has changed since the last cycle, and the time `wake_at` of that cycle has not come, its decisions
        are returned again.
        """
        last = self.last
        if last is not None and last.covers(self.cluster.version, policy, now) and not self.has_due(now):
            return last.decisions
        plugins = self._plugins
        if plugins is None or not plugins.are_of(policy, PLUGINS):
            plugins = self._plugins = OpenedPlugins(policy, PLUGINS)
        session = run_cycle(self.cluster, plugins, now, step, budget=budget, backlog=self.backlog)
        self.last = LastCycle(self.cluster.version, policy, now, session.decisions, session.selection.considered)
        return session.decisions

    def forget_last_cycle(self) -> None:
        """Decide the next cycle even if nothing has changed since the last one."""
        self.last = None

    def has_due(self, now: float) -> bool:
        """Whether a waiting job must be tried again at once, even if the state has not changed since the last cycle."""
        return has_due(self.cluster, self.backlog, now)
