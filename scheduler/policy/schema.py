"""What a policy file may say: actions, plugins, switches and arguments.

The one rule: this is data. The names are Volcano's, its odd spellings included: its parser compares byte by byte, so
that ``enableAllocatable`` for ``enabledAllocatable`` is silently nothing there, and an error here. What may be said of
a plugin is declared by its class (:mod:`scheduler.framework.plugin`) and known once :mod:`scheduler.plugins` is
imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["whole number", "number", "true or false", "text", "duration", "mapping"]

INT: Kind = "whole number"
FLOAT: Kind = "number"
BOOL: Kind = "true or false"
TEXT: Kind = "text"
DURATION: Kind = "duration"
MAPPING: Kind = "mapping"


@dataclass(frozen=True, slots=True)
class Argument:
    """The type of one argument, the smallest value it may have, and whether what it asks for is ours to do."""

    kind: Kind
    minimum: float | None = None
    exclusive: bool = False
    """The minimum itself is too small."""
    ignored: str = ""
    """Why it has no effect here; empty where it has one."""
    values: tuple[str, ...] = ()
    """What a mapping may map to; empty where anything will do."""
    default: Any = None
    means: str = ""
    """What it is for, as docs/policies.md says it."""

    @property
    def wording(self) -> str:
        """The type and its bounds in words."""
        article = "" if self.kind == "true or false" else "a "
        if self.values:
            return f"{article}{self.kind} to {' or '.join(self.values)}"
        if self.minimum is None:
            return f"{article}{self.kind}"
        return f"{article}{self.kind} {'above' if self.exclusive else 'of at least'} {self.minimum:g}"


@dataclass(frozen=True, slots=True)
class PluginRule:
    """What a file may say of one plugin, as its class declares it; ``hooks`` are those that it implements,
    ``switches`` those that mean something to it.
    """

    hooks: frozenset[str]
    switches: frozenset[str]
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    families: Mapping[str, Argument] = field(default_factory=dict)
    """Arguments whose name ends in a name of the user's (``binpack.resources.nvidia.com/gpu``), by their prefix."""
    refused: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Switches that a file must not set, with what is wrong with that and what to do instead."""
    decides_queues: bool = False
    """Whether it decides what queues may have, which only one plugin can."""

    def argument(self, name: str) -> Argument | None:
        """The rule of an argument, or None where there is no such argument."""
        if (known := self.arguments.get(name)) is not None:
            return known
        families = self.families.items()
        return next((rule for prefix, rule in families if name.startswith(prefix) and name != prefix), None)


PLUGINS: dict[str, PluginRule] = {}
"""What may be said of each plugin: filled as the modules of plugins are imported."""

SWITCHES: Mapping[str, str] = {
    "enableJobOrder": "which job of a queue is next",
    "enableTaskOrder": "which task of a job is next",
    "enableQueueOrder": "which queue is next",
    "enableJobReady": "whether a job has enough to start",
    "enableJobPipelined": "whether a job has enough to wait for",
    "enableJobStarving": "whether a job may evict others",
    "enableJobEnqueued": "whether a job is admitted",
    "enabledOverused": "whether a queue is passed over in this cycle",
    "enabledAllocatable": "whether a queue may hold one more task",
    "enablePreemptive": "whether a queue may reclaim for a task",
    "enableReclaimable": "whether a pod may be reclaimed",
    "enablePreemptable": "whether a pod may be preempted",
    "enablePredicate": "whether a node is suitable",
    "enableNodeOrder": "how good a node is",
    "enableHierarchy": "whether queues form a tree",
    **dict.fromkeys(
        (
            *("EnabledClusterOrder", "enableBestNode", "enableTargetJob", "enableReservedNodes", "enabledVictim"),
            *("enabledSubJobReady", "enabledSubJobPipelined", "enabledSubJobOrder"),
            *("enabledHyperNodeOrder", "enabledHyperNodeGradient"),
        ),
        "",
    ),
}
"""Every switch that a plugin may carry, as Volcano spells it, and what it decides; empty where no plugin of ours
implements it.
"""

RETIRED_SWITCHES = frozenset({"enableNamespaceOrder"})
"""Switches of earlier Volcano versions; accepted, without effect, as Volcano does."""

_CACHED = {
    "predicateErrorCacheEnable": Argument(BOOL, ignored="refusals are remembered until what they rest on changes")
}
_PARALLEL = "nodes are judged all at once, not by workers on a sample"

ACTIONS: Mapping[str, Mapping[str, Argument]] = {
    "enqueue": {"overcommit-factor": Argument(FLOAT, 1.0, ignored="it is an argument of the plugin overcommit now")},
    "allocate": _CACHED,
    "backfill": _CACHED,
    "reclaim": _CACHED,
    "preempt": {
        **_CACHED,
        "enableTopologyAwarePreemption": Argument(BOOL),
        "topologyAwarePreemptWorkerNum": Argument(INT, 1, ignored=_PARALLEL),
        "minCandidateNodesPercentage": Argument(INT, 0, ignored=_PARALLEL),
        "minCandidateNodesAbsolute": Argument(INT, 0, ignored=_PARALLEL),
        "maxCandidateNodesAbsolute": Argument(INT, 0, ignored=_PARALLEL),
    },
}

MISSING_ACTIONS: Mapping[str, str] = {
    "shuffle": "remove it: running pods are never moved",
    "gangpreempt": "write preempt: it takes gangs as a whole",
    "gangreclaim": "write reclaim: it takes gangs as a whole",
    "elect": "remove it: Volcano has removed it",
    "reserve": "remove it: Volcano has removed it; freed room is kept for whom it was freed anyway",
}
"""Actions that Volcano has, or had, and we have not: what to do instead."""

SCORING_ONLY = frozenset({"task-topology", "resource-strategy-fit"})
"""Plugins of Volcano's that we have not and that only rank: a policy with them is accepted, and they rank nothing."""

MISSING_PLUGINS: Mapping[str, str] = {
    "tdm": "time windows for nodes",
    "cdp": "cooldown after a start",
    "numa-aware": "NUMA placement",
    "network-topology-aware": "network topology domains",
    "deviceshare": "shared devices",
    "usage": "limits by measured load",
    "extender": "decisions by webhook",
    "resourcequota": "namespace quotas at admission",
    "nodegroup": "node groups of queues",
    "rescheduling": "moving running pods",
    "huaweinpu": "Ascend placement",
}
"""Plugins of Volcano's that we have not and that decide more than rank: what would be lost without a word."""
