"""Queues and PodGroups (`scheduling.volcano.sh`)."""

from __future__ import annotations

import msgspec

from .meta import Condition, Object, ObjectMeta, Quantities
from .topology import NetworkTopology, SubGroupPolicy


class Guarantee(Object):
    resource: Quantities | None = None


class GroupTerms(Object):
    """Names of node groups, required and preferred."""

    required: list[str] | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[str] | None = msgspec.field(default=None, name="preferredDuringSchedulingIgnoredDuringExecution")


class QueueAffinity(Object):
    """The node groups that a queue uses and avoids (plugin nodegroup)."""

    node_group_affinity: GroupTerms | None = None
    node_group_anti_affinity: GroupTerms | None = None


class QueueSpec(Object):
    weight: int = 1
    priority: int = 0
    reclaimable: bool | None = None
    parent: str = ""
    capability: Quantities | None = None
    deserved: Quantities | None = None
    guarantee: Guarantee | None = None
    affinity: QueueAffinity | None = None


class QueueStatus(Object):
    state: str = ""
    allocated: Quantities | None = None
    conditions: list[Condition] | None = None


class Queue(Object):
    metadata: ObjectMeta
    spec: QueueSpec = msgspec.field(default_factory=QueueSpec)
    status: QueueStatus = msgspec.field(default_factory=QueueStatus)


class PodGroupSpec(Object):
    min_member: int = 0
    min_task_member: dict[str, int] | None = None
    queue: str = "default"
    priority_class_name: str = ""
    min_resources: Quantities | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: list[SubGroupPolicy] | None = None


class PodGroupStatus(Object):
    phase: str = ""
    conditions: list[Condition] | None = None
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class PodGroup(Object):
    metadata: ObjectMeta
    spec: PodGroupSpec = msgspec.field(default_factory=PodGroupSpec)
    status: PodGroupStatus = msgspec.field(default_factory=PodGroupStatus)
