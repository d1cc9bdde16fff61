"""The smaller objects that placing and eviction look at."""

from __future__ import annotations

import msgspec

from scheduler.model.objects.meta import Object, ObjectMeta
from scheduler.model.objects.selectors import LabelSelector, NodeSelector


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
