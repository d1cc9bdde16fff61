"""Pods."""

from __future__ import annotations

from typing import Any

import msgspec

from .meta import Condition, LabelSelector, NodeSelector, NodeSelectorTerm, Object, ObjectMeta, Quantities


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
    restart_policy_rules: list[dict[str, Any]] | None = None


class Toleration(Object):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class PreferredNodeTerm(Object):
    weight: int = 1
    preference: NodeSelectorTerm = msgspec.field(default_factory=NodeSelectorTerm)


class NodeAffinity(Object):
    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[PreferredNodeTerm] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


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
    """Also used for `podAntiAffinity`."""

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
    """A volume that restricts where its pod can run. Disks in the pod's own spec are read only to be rejected."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: dict[str, Any] | None = None
    aws_elastic_block_store: dict[str, Any] | None = None
    azure_disk: dict[str, Any] | None = None
    cinder: dict[str, Any] | None = None
    gce_persistent_disk: dict[str, Any] | None = None
    iscsi: dict[str, Any] | None = None
    portworx_volume: dict[str, Any] | None = None
    rbd: dict[str, Any] | None = None
    vsphere_volume: dict[str, Any] | None = None

    @property
    def disk(self) -> str:
        """The field in which the pod's own spec names a disk; empty if it names none."""
        return next((name for name, attribute in _DISKS.items() if getattr(self, attribute) is not None), "")


_DISKS = {
    "awsElasticBlockStore": "aws_elastic_block_store",
    "azureDisk": "azure_disk",
    "cinder": "cinder",
    "gcePersistentDisk": "gce_persistent_disk",
    "iscsi": "iscsi",
    "portworxVolume": "portworx_volume",
    "rbd": "rbd",
    "vsphereVolume": "vsphere_volume",
}


class PodOS(Object):
    name: str = ""


class SchedulingGroup(Object):
    """The PodGroup of `scheduling.k8s.io` that a pod belongs to."""

    pod_group_name: str = ""


class PodSpec(Object):
    containers: list[Container] = msgspec.field(default_factory=list)
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
    host_users: bool | None = None
    os: PodOS | None = None
    volumes: list[Volume] | None = None
    resource_claims: list[Any] | None = None
    workload_ref: dict[str, Any] | None = None
    scheduling_group: SchedulingGroup | None = None
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None


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
