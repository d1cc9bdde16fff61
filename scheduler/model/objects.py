"""The API objects that the scheduler reads, reduced to the fields it uses.

The one rule: a struct names a field only if something reads it; msgspec skips the rest of the JSON without building it,
which is what makes a watch event cost microseconds. A field that constrains placement is named here even where we do
not honour it, so that the pod can be kept pending by name instead of being placed against its wish.
"""

from __future__ import annotations

from typing import Any

import msgspec

Quantity = str | int | float
Quantities = dict[str, Quantity]


class Object(msgspec.Struct, rename="camel"):
    """Base of all: camelCase names, unknown fields skipped."""


class OwnerReference(Object):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Object):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None

    @property
    def key(self) -> str:
        """``namespace/name``, or the bare name of what has no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Condition(Object):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    transition_id: str | None = msgspec.field(default=None, name="transitionID")


# ---------------------------------------------------------------------------------------------------------------- pods


class Resources(Object):
    requests: Quantities | None = None
    limits: Quantities | None = None
    claims: list[Any] | None = None


class ContainerPort(Object):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class Container(Object):
    name: str = ""
    image: str = ""
    resources: Resources | None = None
    ports: list[ContainerPort] | None = None
    restart_policy: str | None = None


class Toleration(Object):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class SelectorRequirement(Object):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class NodeSelectorTerm(Object):
    match_expressions: list[SelectorRequirement] | None = None
    match_fields: list[SelectorRequirement] | None = None


class NodeSelector(Object):
    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredNodeTerm(Object):
    weight: int = 1
    preference: NodeSelectorTerm = msgspec.field(default_factory=NodeSelectorTerm)


class NodeAffinity(Object):
    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[PreferredNodeTerm] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class LabelSelector(Object):
    match_labels: dict[str, str] | None = None
    match_expressions: list[SelectorRequirement] | None = None


class PodAffinityTerm(Object):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class WeightedPodAffinityTerm(Object):
    weight: int = 1
    pod_affinity_term: PodAffinityTerm = msgspec.field(default_factory=PodAffinityTerm)


class PodAffinity(Object):
    """Also the shape of ``podAntiAffinity``."""

    required: list[PodAffinityTerm] | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[WeightedPodAffinityTerm] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Object):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Object):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class SchedulingGate(Object):
    name: str = ""


class ClaimSource(Object):
    claim_name: str = ""


class Volume(Object):
    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: dict[str, Any] | None = None
    csi: dict[str, Any] | None = None


class PodSpec(Object):
    containers: list[Container] = []
    init_containers: list[Container] | None = None
    resources: Resources | None = None
    overhead: Quantities | None = None
    node_name: str = ""
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    host_network: bool = False
    volumes: list[Volume] | None = None
    resource_claims: list[Any] | None = None
    workload_ref: dict[str, Any] | None = None
    scheduling_group: dict[str, Any] | None = None
    termination_grace_period_seconds: int | None = None


class ContainerStateTerminated(Object):
    exit_code: int = 0


class ContainerState(Object):
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Object):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState | None = None


class PodStatus(Object):
    phase: str = "Pending"
    conditions: list[Condition] | None = None
    nominated_node_name: str = ""
    start_time: str | None = None
    container_statuses: list[ContainerStatus] | None = None


class Pod(Object):
    metadata: ObjectMeta
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)


# --------------------------------------------------------------------------------------------------------------- nodes


class Taint(Object):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Object):
    unschedulable: bool = False
    taints: list[Taint] | None = None


class ContainerImage(Object):
    names: list[str] | None = None
    size_bytes: int = 0


class NodeStatus(Object):
    allocatable: Quantities | None = None
    capacity: Quantities | None = None
    conditions: list[Condition] | None = None
    images: list[ContainerImage] | None = None


class Node(Object):
    metadata: ObjectMeta
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


# -------------------------------------------------------------------------------------------- scheduling.volcano.sh


class Guarantee(Object):
    resource: Quantities | None = None


class QueueSpec(Object):
    weight: int = 1
    priority: int = 0
    reclaimable: bool | None = None
    parent: str = ""
    capability: Quantities | None = None
    deserved: Quantities | None = None
    guarantee: Guarantee | None = None


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
    network_topology: dict[str, Any] | None = None
    sub_group_policy: list[Any] | None = None


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


# --------------------------------------------------------------------------------------------------------------- others


class PriorityClass(Object):
    metadata: ObjectMeta
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None


class PodDisruptionBudgetSpec(Object):
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Object):
    disruptions_allowed: int = 0


class PodDisruptionBudget(Object):
    metadata: ObjectMeta
    spec: PodDisruptionBudgetSpec = msgspec.field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = msgspec.field(default_factory=PodDisruptionBudgetStatus)


class VolumeNodeAffinity(Object):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Object):
    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolume(Object):
    metadata: ObjectMeta
    spec: PersistentVolumeSpec = msgspec.field(default_factory=PersistentVolumeSpec)


class PersistentVolumeClaimSpec(Object):
    volume_name: str = ""
    access_modes: list[str] | None = None


class PersistentVolumeClaim(Object):
    metadata: ObjectMeta
    spec: PersistentVolumeClaimSpec = msgspec.field(default_factory=PersistentVolumeClaimSpec)


class Namespace(Object):
    metadata: ObjectMeta
