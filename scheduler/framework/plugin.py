"""Base class of plugins. An instance lives as long as its policy is in force; each cycle opens it anew.

The class declares its name, hooks, switches and arguments; importing its module registers it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, ClassVar

from ..backlog.entries import HoldingsBound
from ..backlog.lines import LineRule
from ..model.job import Job
from ..policy import schema
from ..policy.hooks import Hook, hooks_of
from ..policy.model import PluginOption, Policy
from ..policy.schema import Argument, PluginRule
from ..policy.tiers import Hooks
from ..reasons import UnschedulableReason

if TYPE_CHECKING:
    from .session import Session


class OrderedBy(Enum):
    """The input on which the `job_order` of a plugin depends. `ANYTHING` is safe."""

    ANYTHING = "anything"
    JOB = "job"
    """The job alone: the key stays the same until the job changes."""
    PRIORITY = "priority"
    """The job's priority alone."""


class Covers(IntEnum):
    """Which equal waiting jobs a refusal of one job covers, so that they need no attempt of their own.

    If a policy has several plugins, the smallest answer counts (`scheduler.backlog.lines`). `THE_JOB` is safe.
    """

    THE_JOB = 0
    LATER_JOBS = 1
    """Also the jobs that were created later."""
    LOWER_PRIORITIES = 2
    """Also the jobs of lower priority, whenever they were created, and whatever preempt may evict for them."""


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
    queue_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields of queues that the plugin reads under any option."""
    job_order_depends_on: ClassVar[OrderedBy] = OrderedBy.ANYTHING
    refusal_covers: ClassVar[Covers] = Covers.THE_JOB
    """Which waiting jobs the plugin refuses, too, whenever it refuses a job. A plugin that refuses none covers all."""
    reclaims_by_priority: ClassVar[bool] = False
    """Whether the plugin compares the priorities of a reclaiming job and of its victims, as preempt always does."""
    lasting: tuple[type, ...] = ()
    """Types of the plugin's protections that hold, while nothing changes, against all preemptors of other queues that
    request resources of the same names, whatever the queues, the amounts and the priorities are.
    """

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
                decides_queues=issubclass(cls, QuotaPlugin),
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

    def open(self, session: Session) -> None:
        """Compute the data on which the plugin's hooks depend; called once a cycle.

        Data kept from an earlier cycle must equal what this cycle would compute.
        """


class QuotaPlugin(Plugin):
    """A plugin that decides the shares of queues. A policy may name only one such plugin."""

    shares_follow_requests: ClassVar[bool] = False
    """Whether a queue deserves less as soon as another queue requests more, so that its pods may then be reclaimed."""

    def quota_bounds(self, job: Job, why: UnschedulableReason) -> tuple[HoldingsBound, ...]:  # noqa: ARG002
        """Return bounds of which at least one must hold before a refusal by this plugin can end.

        Empty if `why` is no refusal by a quota of this plugin, or if the limit depends on more than queues and nodes.
        """
        return ()

    def excess(self, queue: str, dimension: str) -> float:  # noqa: ARG002
        """Return what a queue held beyond its deserved amount when the cycle began, for bounds `of_deserved`."""
        return math.inf


class OpenedPlugins:
    """The plugins of a policy, by name, and their hooks: created once, and kept for later cycles."""

    def __init__(self, policy: Policy, classes: Mapping[str, type[Plugin]]) -> None:
        self.policy, self.fingerprint = policy, fingerprint(policy)
        self._classes = classes
        self.hooks = Hooks()
        self.by_name: dict[str, Plugin] = {}
        for number, tier in enumerate(policy.tiers):
            for option in tier:
                plugin = self.by_name[option.name] = classes[option.name](option)
                self.hooks.add(number, option, plugin, plugin.hooks)
        self.queue_plugin = next((one for one in self.by_name.values() if isinstance(one, QuotaPlugin)), None)
        """The plugin that decides the shares of queues, and returns the bounds of quotas."""
        self.lines = self._line_rule()
        self.orders_by_job_alone = OrderedBy.ANYTHING not in self._job_orders()
        """Whether the order of jobs stays the same until one of these jobs changes."""

    def _line_rule(self) -> LineRule:
        """Return which waiting jobs share a line under the policy."""
        refusing = (plugin for plugin in self.by_name.values() if any(hook.may_refuse for hook in plugin.hooks))
        covered = min((plugin.refusal_covers for plugin in refusing), default=Covers.LOWER_PRIORITIES)
        if covered is Covers.THE_JOB:
            return LineRule.NONE
        actions = self.policy.actions
        by_priority = OrderedBy.PRIORITY in self._job_orders()
        reclaims = "reclaim" in actions and any(plugin.reclaims_by_priority for plugin in self.by_name.values())
        compares = reclaims or ("preempt" in actions and not by_priority)
        if covered is Covers.LATER_JOBS or compares:
            return LineRule.ONE_PRIORITY
        return LineRule.BY_PRIORITY if by_priority else LineRule.BY_CREATION

    def _job_orders(self) -> set[OrderedBy]:
        return {self.by_name[entry.plugin].job_order_depends_on for entry in self.hooks.job_order.entries}

    def excess(self, queue: str, dimension: str) -> float:
        """Return what a queue held beyond what it deserves when the cycle began; infinity if no plugin computes it."""
        return math.inf if self.queue_plugin is None else self.queue_plugin.excess(queue, dimension)

    def quota_bounds(self, job: Job, why: UnschedulableReason) -> tuple[HoldingsBound, ...]:
        """See `Plugin.quota_bounds`."""
        return () if self.queue_plugin is None else self.queue_plugin.quota_bounds(job, why)

    @property
    def shares_follow_requests(self) -> bool:
        """See `QuotaPlugin.shares_follow_requests`."""
        return self.queue_plugin is not None and self.queue_plugin.shares_follow_requests

    def are_of(self, policy: Policy, classes: Mapping[str, type[Plugin]]) -> bool:
        """Whether these are the plugins of a policy, made of these classes."""
        return self._classes is classes and (policy is self.policy or fingerprint(policy) == self.fingerprint)


def fingerprint(policy: Policy) -> str:
    """Return the fingerprint that distinguishes policies in a record."""
    return hashlib.sha256(repr(policy).encode()).hexdigest()[:16]
