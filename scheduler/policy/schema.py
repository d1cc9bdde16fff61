"""The valid contents of a policy file: actions, plugins, switches and arguments, as data.

The names are Volcano's, with its odd spellings. Volcano's parser expects `enabledAllocatable` and silently ignores
`enableAllocatable`; here such a name is an error. Each plugin's class declares its own arguments
(`scheduler.framework.plugin`); importing `scheduler.plugins` registers them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["whole number", "number", "true or false", "text", "duration", "mapping", "list of mappings"]

INT: Kind = "whole number"
FLOAT: Kind = "number"
BOOL: Kind = "true or false"
TEXT: Kind = "text"
DURATION: Kind = "duration"
MAPPING: Kind = "mapping"
RULES: Kind = "list of mappings"
"""The mappings are from texts to texts."""


EVICTING = {"reclaim": "enableReclaimable", "preempt": "enablePreemptable"}
"""The actions that evict → the switch for votes on their victims."""


@dataclass(frozen=True, slots=True)
class Argument:
    """The type of one argument, its smallest value, and whether it has an effect here."""

    kind: Kind
    minimum: float | None = None
    exclusive: bool = False
    """True if the minimum itself is not allowed."""
    ignored: str = ""
    """Why the argument has no effect here; empty if it has one."""
    values: tuple[str, ...] = ()
    """Allowed values of a mapping; empty for any."""
    choices: tuple[str, ...] = ()
    """Allowed texts; empty for any."""
    default: Any = None
    means: str = ""
    """Purpose of the argument, for docs/policies.md."""

    @property
    def wording(self) -> str:
        """Describe the type and its bounds."""
        article = "" if self.kind in {"true or false", "text"} else "a "
        if self.choices:
            return " or ".join(self.choices)
        if self.values:
            return f"{article}{self.kind} to {' or '.join(self.values)}"
        if self.minimum is None:
            return f"{article}{self.kind}"
        return f"{article}{self.kind} {'above' if self.exclusive else 'of at least'} {self.minimum:g}"


@dataclass(frozen=True, slots=True)
class PluginRule:
    """What a file may contain about one plugin, as its class declares it.

    Attributes:
        hooks: The hooks that the plugin implements.
        switches: The switches that have an effect on the plugin.
    """

    hooks: frozenset[str]
    switches: frozenset[str]
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    families: Mapping[str, Argument] = field(default_factory=dict)
    """Arguments whose names end in a name of the user's choice (`binpack.resources.nvidia.com/gpu`), by prefix."""
    refused: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Switches that a file must not set, with the problem and the remedy."""
    exclusive: tuple[tuple[str, str], ...] = ()
    """Pairs of arguments of which only one may be true."""
    decides_queues: bool = False
    """Whether the plugin decides the shares of queues; a policy may have only one such plugin."""

    def argument(self, name: str) -> Argument | None:
        """Return the rule of an argument, or None if the plugin has no such argument."""
        if (known := self.arguments.get(name)) is not None:
            return known
        families = self.families.items()
        return next((rule for prefix, rule in families if name.startswith(prefix) and name != prefix), None)


PLUGINS: dict[str, PluginRule] = {}
"""The rule of each plugin, registered when the plugins' modules are imported."""

SWITCHES: Mapping[str, str] = {
    "enableJobOrder": "which job of a queue is next",
    "enableTaskOrder": "which task of a job is next",
    "enableQueueOrder": "which queue is next",
    "enableJobReady": "whether a job has enough to start",
    "enableJobPipelined": "whether a job can start once the resources that it waits for are free",
    "enableJobStarving": "whether a job may evict pods of other jobs",
    "enableJobEnqueued": "whether a job is admitted",
    "enabledOverused": "whether a queue is skipped in this cycle",
    "enabledAllocatable": "whether a queue may hold one more task",
    "enablePreemptive": "whether a queue may reclaim for a task",
    "enableReclaimable": "whether a pod may be reclaimed",
    "enablePreemptable": "whether a pod may be preempted",
    "enablePredicate": "whether a node is suitable",
    "enableNodeOrder": "how good a node is",
    "enableHierarchy": "whether queues form a tree",
    "enabledHyperNodeGradient": "how close the pods of a gang have to be",
    "enabledHyperNodeOrder": "which domain is best for a gang",
    **dict.fromkeys(
        (
            *("EnabledClusterOrder", "enableBestNode", "enableTargetJob", "enableReservedNodes", "enabledVictim"),
            *("enabledSubJobReady", "enabledSubJobPipelined", "enabledSubJobOrder"),
        ),
        "",
    ),
}
"""Every switch of plugins in Volcano's spelling, with its effect; empty if no plugin of ours implements it."""

RETIRED_SWITCHES = frozenset({"enableNamespaceOrder"})
"""Switches of earlier Volcano versions: accepted without effect, as in Volcano."""

_CACHED = {"predicateErrorCacheEnable": Argument(BOOL, ignored="refusals are remembered until their causes change")}
_PARALLEL = "all nodes are evaluated at once, without workers or a sample"

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
    "gangpreempt": "write preempt: it evicts gangs as a whole",
    "gangreclaim": "write reclaim: it evicts gangs as a whole",
    "elect": "remove it: Volcano has removed it",
    "reserve": "remove it: Volcano has removed it; freed capacity is kept for the preemptor anyway",
}
"""Actions of current or earlier Volcano versions that this scheduler lacks → the remedy."""

SCORING_ONLY = frozenset({"task-topology", "resource-strategy-fit"})
"""Volcano's plugins that only rank and that this scheduler lacks. A policy may name them; they have no effect here."""

MISSING_PLUGINS: Mapping[str, tuple[str, str]] = {
    "usage": (
        "it reads measured load from a metrics system, and a decision here follows from the cluster's objects alone",
        "remove it; spread by requests with nodeorder and leastrequested.weight",
    ),
    "tdm": (
        "it evicts by the time of day, and a decision here follows from the cluster's objects alone",
        "remove it; taint the nodes at the times when they must be empty",
    ),
    "extender": (
        "it calls a webhook within the cycle, and a recorded cycle could not be decided again",
        "remove it; write the rule as a plugin (docs/plugins.md)",
    ),
    "numa-aware": (
        "it reads Numatopology objects, which are not watched here",
        "remove it; set topologyManagerPolicy of the nodes' kubelets",
    ),
    "rescheduling": (
        "it moves running pods, and only preempt and reclaim evict here",
        "remove it; run the descheduler of Kubernetes beside this scheduler",
    ),
    "huaweinpu": (
        "it places parts of Ascend cards, and only NVIDIA's cards are shared here",
        "remove it; pods can request whole cards by the resource's name",
    ),
}
"""Volcano's plugins that this scheduler lacks and that do more than rank → why they are lacking, and the remedy."""

_KEPT_FOR_CARDS = (
    "no cpu and memory of a node are kept for its cards here",
    "remove it and predicate.resources; taint the nodes with cards, or limit queues there with nodegroup",
)
MISSING_ARGUMENTS: Mapping[str, tuple[str, str]] = {
    "predicate.GPUSharingEnable": ("Volcano has moved it", "write deviceshare.GPUSharingEnable, of deviceshare"),
    "predicate.GPUNumberEnable": ("Volcano has moved it", "write deviceshare.GPUNumberEnable, of deviceshare"),
    "predicate.ProportionalEnable": _KEPT_FOR_CARDS,
    "predicate.resources": _KEPT_FOR_CARDS,
}
"""Arguments of current or earlier Volcano versions that this scheduler lacks → why, and the remedy."""
