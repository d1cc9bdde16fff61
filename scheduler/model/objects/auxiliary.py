"""The auxiliary objects on which placement and eviction depend."""

from __future__ import annotations

from typing import Any

import msgspec

from .meta import LabelSelector, NodeSelector, Object, ObjectMeta, Quantities


class PriorityClass(Object):
    metadata: ObjectMeta
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None


class PodDisruptionBudgetSpec(Object):
    """Number or percentage of pods; in virtual time the status follows from it."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class PodDisruptionBudgetStatus(Object):
    disruptions_allowed: int = 0


class PodDisruptionBudget(Object):
    metadata: ObjectMeta
    spec: PodDisruptionBudgetSpec = msgspec.field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = msgspec.field(default_factory=PodDisruptionBudgetStatus)


class ScopeRequirement(Object):
    scope_name: str = ""
    operator: str = ""
    values: list[str] | None = None


class ScopeSelector(Object):
    match_expressions: list[ScopeRequirement] | None = None


class ResourceQuotaSpec(Object):
    scopes: list[str] | None = None
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Object):
    hard: Quantities | None = None
    used: Quantities | None = None


class ResourceQuota(Object):
    metadata: ObjectMeta
    spec: ResourceQuotaSpec = msgspec.field(default_factory=ResourceQuotaSpec)
    status: ResourceQuotaStatus = msgspec.field(default_factory=ResourceQuotaStatus)


class VolumeNodeAffinity(Object):
    required: NodeSelector | None = None


class CSIVolume(Object):
    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(Object):
    """Volumes by `csi` and by the older disk types are attached to nodes, and each node limits its attachments."""

    node_affinity: VolumeNodeAffinity | None = None
    csi: CSIVolume | None = None
    aws_elastic_block_store: dict[str, Any] | None = None
    azure_disk: dict[str, Any] | None = None
    cinder: dict[str, Any] | None = None
    gce_persistent_disk: dict[str, Any] | None = None
    portworx_volume: dict[str, Any] | None = None
    vsphere_volume: dict[str, Any] | None = None


class PersistentVolume(Object):
    metadata: ObjectMeta
    spec: PersistentVolumeSpec = msgspec.field(default_factory=PersistentVolumeSpec)


class PersistentVolumeClaimSpec(Object):
    volume_name: str = ""
    access_modes: list[str] | None = None


class PersistentVolumeClaim(Object):
    metadata: ObjectMeta
    spec: PersistentVolumeClaimSpec = msgspec.field(default_factory=PersistentVolumeClaimSpec)


class VolumeNodeResources(Object):
    count: int | None = None


class CSINodeDriver(Object):
    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Object):
    drivers: list[CSINodeDriver] | None = None


class CSINode(Object):
    """The storage drivers of a node; the object has the node's name."""

    metadata: ObjectMeta
    spec: CSINodeSpec = msgspec.field(default_factory=CSINodeSpec)


class Namespace(Object):
    metadata: ObjectMeta
