"""What a policy file may say: actions, plugins, switches and arguments, as tables.

The one rule: this is data. The names are Volcano's, its odd spellings included: its parser compares byte by byte, so
that ``enableAllocatable`` for ``enabledAllocatable`` is silently nothing there, and an error here. Who adds a plugin
adds one line to :data:`PLUGINS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

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
    """One plugin: ``hooks`` are the switches that mean something for it, ``arguments`` what its arguments may be."""

    hooks: frozenset[str]
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    prefixes: Mapping[str, Argument] = field(default_factory=dict)
    """Arguments whose name ends in a name of the user's (``binpack.resources.nvidia.com/gpu``)."""

    def argument(self, name: str) -> Argument | None:
        """The rule of an argument, or None where there is no such argument."""
        if (known := self.arguments.get(name)) is not None:
            return known
        return next(
            (rule for prefix, rule in self.prefixes.items() if name.startswith(prefix) and name != prefix), None
        )


SWITCHES = frozenset(
    (
        *("enableJobOrder", "enableHierarchy", "enableJobReady", "enableJobPipelined", "enableTaskOrder"),
        *("enablePreemptable", "enableReclaimable", "enablePreemptive", "enableQueueOrder", "EnabledClusterOrder"),
        *("enablePredicate", "enableBestNode", "enableNodeOrder", "enableTargetJob", "enableReservedNodes"),
        *("enableJobEnqueued", "enabledVictim", "enableJobStarving", "enabledOverused", "enabledAllocatable"),
        *(
            "enabledHyperNodeOrder",
            "enabledSubJobReady",
            "enabledSubJobPipelined",
            "enabledSubJobOrder",
            "enabledHyperNodeGradient",
        ),
    )
)
"""Every switch that a plugin may carry, as Volcano spells it."""

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
    "shuffle": "take it out: running pods are never moved here",
    "gangpreempt": "write preempt: it takes gangs as a whole",
    "gangreclaim": "write reclaim: it takes gangs as a whole",
    "elect": "take it out: Volcano has removed it",
    "reserve": "take it out: Volcano has removed it; freed room is kept for whom it was freed anyway",
}
"""Actions that Volcano has, or had, and we have not: what to do instead."""


def _hooks(*names: str) -> frozenset[str]:
    assert set(names) <= SWITCHES, names
    return frozenset(names)


_QUEUE = ("enableQueueOrder", "enableJobEnqueued", "enabledAllocatable", "enablePreemptive", "enableReclaimable")
_WEIGHT = Argument(INT, 0)
_CLAIMS = "pods with resource claims wait here"

PLUGINS: Mapping[str, PluginRule] = {
    "priority": PluginRule(_hooks("enableJobOrder", "enableTaskOrder", "enablePreemptable", "enableJobStarving")),
    "gang": PluginRule(
        _hooks(
            *("enableJobOrder", "enableJobReady", "enableJobPipelined"),
            *("enableJobStarving", "enablePreemptable", "enableReclaimable"),
        )
    ),
    "conformance": PluginRule(_hooks("enablePreemptable", "enableReclaimable")),
    "drf": PluginRule(_hooks("enableJobOrder", "enablePreemptable", "enableHierarchy")),
    "predicates": PluginRule(
        _hooks("enablePredicate"),
        {
            **{
                f"predicate.{name}Enable": Argument(BOOL)
                for name in (
                    *("NodeAffinity", "NodePorts", "TaintToleration", "PodAffinity", "PodTopologySpread"),
                    *("VolumeBinding", "VolumeZone", "NodeVolumeLimits"),
                )
            },
            "predicate.DynamicResourceAllocationEnable": Argument(BOOL, ignored=_CLAIMS),
            "predicate.CacheEnable": Argument(BOOL, ignored="what a node's labels decide is always remembered"),
        },
    ),
    "proportion": PluginRule(_hooks(*_QUEUE, "enabledOverused")),
    "capacity": PluginRule(
        _hooks(*_QUEUE, "enableHierarchy"),
        {
            "ancestorReclaimLevel": Argument(INT, 0),
            "DynamicResourceAllocation": Argument(BOOL, ignored=_CLAIMS),
        },
    ),
    "capacity-card": PluginRule(
        _hooks(*_QUEUE, "enablePredicate", "enableNodeOrder"),
        {
            "cardUnlimitedCpuMemory": Argument(BOOL),
            "nodeOrderWeight": Argument(FLOAT, 0.0, exclusive=True),
            "overCommitFactor": Argument(FLOAT, 0.0, exclusive=True),
            "podOwnerReferenceToServiceType": Argument(MAPPING, values=("inference", "training")),
            "allowServiceTypeByPodOwnerReferences": Argument(BOOL),
        },
    ),
    "nodeorder": PluginRule(
        _hooks("enableNodeOrder"),
        {
            f"{name}.weight": _WEIGHT
            for name in (
                *("nodeaffinity", "podaffinity", "leastrequested", "mostrequested", "balancedresource"),
                *("tainttoleration", "imagelocality", "podtopologyspread"),
            )
        }
        | {
            f"{name}.weight": Argument(INT, 0, ignored="Volcano has dropped this score")
            for name in ("selectorspread", "volumebinding")
        },
    ),
    "binpack": PluginRule(
        _hooks("enableNodeOrder"),
        {
            "binpack.weight": _WEIGHT,
            "binpack.cpu": _WEIGHT,
            "binpack.memory": _WEIGHT,
            "binpack.resources": Argument(TEXT),
        },
        {"binpack.resources.": _WEIGHT},
    ),
    "overcommit": PluginRule(_hooks("enableJobEnqueued"), {"overcommit-factor": Argument(FLOAT, 1.0)}),
    "sla": PluginRule(
        _hooks("enableJobOrder", "enableJobPipelined", "enableJobEnqueued"), {"sla-waiting-time": Argument(DURATION)}
    ),
    "pdb": PluginRule(_hooks("enablePreemptable", "enableReclaimable")),
}

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
