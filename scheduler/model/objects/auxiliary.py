"""The smaller objects that placing and eviction look at."""

from __future__ import annotations

from typing import Any

import msgspec

from .meta import Object, ObjectMeta
from .selectors import LabelSelector, NodeSelector


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


class CSIVolume(Object):
    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(Object):
    """``csi`` and the disks of before CSI are what is attached to nodes, which take only so many."""

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
    """What the storage drivers of a node say of it; it is named like the node."""

    metadata: ObjectMeta
    spec: CSINodeSpec = msgspec.field(default_factory=CSINodeSpec)


class Namespace(Object):
    metadata: ObjectMeta
