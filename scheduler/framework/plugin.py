"""Base class of plugins. An instance lives as long as its policy is in force; each cycle opens it anew.

The class declares its name, hooks, switches and arguments; importing its module registers it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from ..backlog.entries import HoldingsBound
from ..backlog.lines import LineRule
from ..model.cluster import Cluster
from ..model.job import Job
from ..policy import schema
from ..policy.hooks import Hook, hooks_of
from ..policy.model import PluginOption, Policy
from ..policy.schema import Argument, PluginRule
from ..policy.tiers import Hooks
from ..reasons import UnschedulableReason

if TYPE_CHECKING:
    from .session import Session

PLUGINS: dict[str, type[Plugin]] = {}
"""The registered plugins, by their names in policies."""


class Plugin:
    """Base class of all plugins; a class that sets `name` is registered.

    Attributes:
        arguments: Arguments in a policy file, with their defaults.
        families: Arguments whose names consist of a fixed prefix and a name that the user chooses.
        switches: Switches that the plugin reads itself, in addition to those of its hooks.
        refused: Switches that a file must not set, with problem and remedy.
    """

    name: ClassVar[str] = ""
    hooks: ClassVar[tuple[Hook, ...]] = ()
    switches: ClassVar[frozenset[str]] = frozenset()
    arguments: ClassVar[Mapping[str, Argument]] = {}
    families: ClassVar[Mapping[str, Argument]] = {}
    refused: ClassVar[Mapping[str, tuple[str, str]]] = {}
    exclusive: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Pairs of arguments of which only one may be true."""
    decides_queues: ClassVar[bool] = False
    """Whether the plugin decides the shares of queues. A policy may name only one such plugin."""
    judges_equals_alike: ClassVar[bool] = False
    """Whether the plugin refuses a waiting job whenever it refuses an equal job that was created earlier.

    If all plugins of a policy do so, only the first of a line of equal jobs is tried (`scheduler.backlog.lines`).
    """
    judges_priorities_alike: ClassVar[bool] = False
    """Whether the plugin refuses a waiting job whenever it refuses an equal job of higher priority, of whatever age.

    If all plugins of a policy do so, and no eviction depends on the priority of the waiting job, jobs of all priorities
    share a line.
    """
    reclaims_by_priority: ClassVar[bool] = False
    """Whether the plugin compares the priorities of a reclaiming job and of its victims, as preempt always does."""
    lasting: tuple[type, ...] = ()
    """Types of the plugin's protections that hold, while nothing changes, against all preemptors of a queue that
    request resources of the same names, whatever the amounts and priorities are.
    """
    queue_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields of queues that the plugin reads under any option."""
    serves_by_priority: ClassVar[bool] = False
    """Whether the plugin orders jobs by priority."""
    orders_by_job_alone: ClassVar[bool] = False
    """Whether `job_order` returns the same for a job until the job itself changes."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.hooks = hooks_of(cls)
        if "name" in vars(cls):
            PLUGINS[cls.name] = cls
            schema.PLUGINS[cls.name] = PluginRule(
                hooks=frozenset(hook.name for hook in cls.hooks),
                switches=cls.switches.union(hook.switch for hook in cls.hooks if hook.switch is not None),
                arguments=cls.arguments,
                families=cls.families,
                refused=cls.refused,
                exclusive=cls.exclusive,
                decides_queues=cls.decides_queues,
            )

    @classmethod
    def fields_read(cls, option: PluginOption) -> frozenset[str]:
        """Return the fields of queues that influence the plugin's decisions; a setting that nothing reads is reported.

        Args:
            option: The plugin's switches and arguments in a policy.
        """
        tree = "enableHierarchy" in cls.switches and option.enabled("enableHierarchy")
        return cls.queue_fields | ({"parent"} if tree else frozenset())

    def __init__(self, option: PluginOption) -> None:
        self.option = option

    def argument(self, name: str) -> Any:
        """Return the value of an argument in the policy, or its default."""
        rule = schema.PLUGINS[self.name].argument(name)
        return self.option.arguments.get(name, None if rule is None else rule.default)

    def quota_bounds(self, job: Job, why: UnschedulableReason) -> tuple[HoldingsBound, ...]:  # noqa: ARG002
        """Return bounds of which at least one must hold before a refusal by this plugin can end.

        Empty if `why` is no refusal by a quota of this plugin, or if the limit depends on more than queues and nodes.
        """
        return ()

    def excess(self, queue: str, dimension: str) -> float:  # noqa: ARG002
        """Return what a queue held beyond its deserved amount when the cycle began, for bounds `of_deserved`."""
        return math.inf

    def may_hold(self, bound: HoldingsBound) -> bool:  # noqa: ARG002
        """Whether a bound that the plugin returned may hold at this point of the cycle."""
        return False

    def open(self, session: Session) -> None:
        """Compute the data on which the plugin's hooks depend; called once a cycle.

        Data kept from an earlier cycle must equal what this cycle would compute.
        """


class OpenedPlugins:
    """The plugins of a policy, by name, and their hooks: created once, and kept with the state for later cycles."""

    def __init__(self, policy: Policy, classes: Mapping[str, type[Plugin]]) -> None:
        self.policy, self.classes = policy, classes
        self.hooks = Hooks()
        self.by_name: dict[str, Plugin] = {}
        for number, tier in enumerate(policy.tiers):
            for option in tier:
                plugin = self.by_name[option.name] = classes[option.name](option)
                self.hooks.add(number, option, plugin, plugin.hooks)
        self.queue_plugin = next((plugin for plugin in self.by_name.values() if plugin.decides_queues), None)
        """The plugin that decides the shares of queues, and returns the bounds of quotas."""
        self.lines = self._line_rule()
        orders = (self.by_name[entry.plugin] for entry in self.hooks.job_order.entries)
        self.orders_by_job_alone = all(plugin.orders_by_job_alone for plugin in orders)

    def _line_rule(self) -> LineRule:
        """Return which waiting jobs share a line under the policy."""
        plugins = self.by_name.values()
        if not all(plugin.judges_equals_alike for plugin in plugins):
            return LineRule.NONE
        actions = self.policy.actions
        compares = "reclaim" in actions and any(plugin.reclaims_by_priority for plugin in plugins)
        if compares or "preempt" in actions or not all(plugin.judges_priorities_alike for plugin in plugins):
            return LineRule.ONE_PRIORITY
        is_ranked = any(self.by_name[entry.plugin].serves_by_priority for entry in self.hooks.job_order.entries)
        return LineRule.BY_PRIORITY if is_ranked else LineRule.BY_CREATION

    @classmethod
    def of(cls, cluster: Cluster, policy: Policy, classes: Mapping[str, type[Plugin]]) -> OpenedPlugins:
        """Return the plugins that the last cycle on this state opened, or new ones if that cycle had another policy."""
        known = cluster.plugins
        if isinstance(known, cls) and known.classes is classes and (known.policy is policy or known.policy == policy):
            return known
        cluster.plugins = opened = cls(policy, classes)
        return opened
