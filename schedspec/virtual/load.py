"""The input of a simulation: work and changes of the cluster, each with its time.

A load is an iterable of `Arrival`s in the order of their times. It may be a generator: the simulation reads one
arrival ahead and keeps none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ..scheduler.inputs import ObjectGone, ObjectSeen
from ..scheduler.model import objects, resources
from ..scheduler.model.errors import BadInputError
from ..scheduler.policy.model import Policy
from .agenda import SimulationError


class OnEviction(StrEnum):
    """Reaction of the owner of a workload when an eviction leaves its gang below the minimum."""

    RESTART = "restart"
    """Create all pods again; all work is lost. (A Job's policy PodEvicted → RestartJob.)"""
    CHECKPOINT = "checkpoint"
    """Create all pods again; the work since the last checkpoint is lost."""
    ABORT = "abort"
    """Delete the remaining pods and give up. (PodEvicted → AbortJob.)"""
    REPLACE = "replace"
    """Create the evicted pod again; the other pods keep running. All work is lost. (A Job without a policy.)"""
    VANISH = "vanish"
    """Do nothing: the pod has no owner. The other pods keep running; all work is lost."""

    @property
    def deletes_remaining_pods(self) -> bool:
        """Whether the owner deletes the remaining pods of a gang that has too few pods to run."""
        return self not in (OnEviction.REPLACE, OnEviction.VANISH)


class InvalidLoadError(SimulationError, BadInputError):
    """An invalid workload. The text names the workload, the field and the value."""

    def __init__(self, name: str, field_name: str, value: object, remedy: str) -> None:
        super().__init__(f"workload {name}: {field_name} is {value!r}; {remedy}")
        self.name, self.field, self.value = name, field_name, value


@dataclass(frozen=True, slots=True)
class Workload:
    """A gang of equal pods that runs for a time.

    Names are unique among the workloads that exist at a time. Jobs of equal priority that were submitted in the same
    second are served in the order of namespace and name, as in a cluster: number the names, with leading zeros.
    """

    name: str
    run_time: float
    """Seconds for which the gang has to run in all; infinity: until the end of the simulation."""
    requests: Mapping[str, str]
    """Requests of each pod, as quantities: `{"nvidia.com/gpu": "1"}`."""
    pods: int = 1
    min_member: int | None = None
    """Number of pods that have to run at the same time; all of them if None."""
    queue: str = "default"
    namespace: str = "load"
    priority_class: str = ""
    priority: int | None = None
    """The pods' priority if no priority class is set."""
    on_eviction: OnEviction = OnEviction.RESTART
    checkpoint_every: float = 0.0
    """Seconds of work between two checkpoints, for `OnEviction.CHECKPOINT`."""
    preemptable: bool = True
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Additional annotations of the PodGroup."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    user: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidLoadError(self.name, "name", self.name, "set a name")
        if math.isnan(self.run_time) or self.run_time <= 0:
            raise InvalidLoadError(self.name, "run_time", self.run_time, "set seconds above 0, or infinity")
        if self.pods < 1:
            raise InvalidLoadError(self.name, "pods", self.pods, "set at least 1")
        if not 1 <= self.minimum <= self.pods:
            raise InvalidLoadError(self.name, "min_member", self.min_member, f"set 1 to {self.pods}")
        if self.on_eviction is OnEviction.CHECKPOINT and not self.checkpoint_every > 0:
            raise InvalidLoadError(self.name, "checkpoint_every", self.checkpoint_every, "set seconds above 0")
        try:
            resources.parse(dict(self.requests))
        except ValueError as error:
            raise InvalidLoadError(self.name, "requests", dict(self.requests), str(error)) from None

    @property
    def key(self) -> str:
        """The key of its PodGroup, `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def minimum(self) -> int:
        """The number of pods that have to run at the same time."""
        return self.pods if self.min_member is None else self.min_member


@dataclass(frozen=True, slots=True)
class Adopted:
    """Work that existed before the simulation began, as the cluster showed it (`schedspec.virtual.adopted`)."""

    group: objects.PodGroup
    pods: tuple[objects.Pod, ...]
    run_time: float
    """Seconds for which the gang has to run in all, `done` included."""
    done: float = 0.0
    """Seconds for which it has run."""
    requests: Mapping[str, str] = field(default_factory=dict)
    """Requests of a pod, for the records; the mean if the pods differ."""
    on_eviction: OnEviction = OnEviction.REPLACE
    checkpoint_every: float = 0.0

    @property
    def key(self) -> str:
        """The key of its PodGroup, `namespace/name`."""
        return self.group.metadata.key


@dataclass(frozen=True, slots=True)
class DrainNode:
    """Cordon the node and delete its pods, each with the grace period."""

    name: str


@dataclass(frozen=True, slots=True)
class FailNode:
    """Stop a node: it is not Ready, and its work stops at once.

    Unless the node recovers before, its pods are deleted after `Settings.node_eviction`.
    """

    name: str


@dataclass(frozen=True, slots=True)
class RecoverNode:
    """Let a node that failed or was drained accept pods again."""

    name: str


@dataclass(frozen=True, slots=True)
class RemoveNode:
    """Delete a node together with its pods."""

    name: str


@dataclass(frozen=True, slots=True)
class EndWork:
    """Complete the workload of this key (`namespace/name`) now, whatever its run time; ignored if it is over."""

    key: str


@dataclass(frozen=True, slots=True)
class FailPod:
    """Let a pod of a workload fail if it runs: it frees its capacity, and its owner does not create it again."""

    job: str
    """The key of the workload."""
    pod: str
    """The key of the pod."""


@dataclass(frozen=True, slots=True)
class UsePolicy:
    """Put another policy into force."""

    policy: Policy


@dataclass(frozen=True, slots=True)
class Arrival:
    """One input and its time (seconds since the epoch).

    `ObjectSeen` and `ObjectGone` are for nodes, queues, priority classes and the like; workloads create pods and
    PodGroups.
    """

    at: float
    item: (
        Workload
        | Adopted
        | EndWork
        | FailPod
        | DrainNode
        | FailNode
        | RecoverNode
        | RemoveNode
        | UsePolicy
        | ObjectSeen
        | ObjectGone
    )


def node(name: str, allocatable: Mapping[str, str], labels: Mapping[str, str] | None = None) -> objects.Node:
    """Return a Ready node with these quantities; the number of pods is 110 by default."""
    amounts: objects.meta.Quantities = {"pods": "110", **allocatable}
    return objects.Node(
        objects.ObjectMeta(name=name, labels={"kubernetes.io/hostname": name, **(labels or {})}),
        status=objects.NodeStatus(allocatable=amounts, conditions=[objects.Condition("Ready", "True")]),
    )
