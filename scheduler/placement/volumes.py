"""Volumes that are bound to a place (semantics: kube-scheduler's ``volumebinding`` and ``volumezone``, for bound
claims).

The one rule: we follow bindings and make none. A claim that still waits for its pod to be placed keeps the pod
pending, by name.
"""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.model.cluster import Cluster
from scheduler.model.nodes import NodeInfo
from scheduler.model.objects import PersistentVolume, Volume
from scheduler.model.task import Task
from scheduler.placement.selectors import node_selector_matches

ZONE_LABELS = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)


def claims_of(task: Task) -> Iterator[tuple[int, str]]:
    """The claims that a pod mounts, as ``(index of the volume, namespace/name)``."""
    for index, volume in enumerate(task.pod.spec.volumes or ()):
        if name := _claim_name(task, volume):
            yield index, f"{task.namespace}/{name}"


def _claim_name(task: Task, volume: Volume) -> str:
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{task.name}-{volume.name}" if volume.ephemeral is not None else ""


def unbound_claim(cluster: Cluster, task: Task) -> str:
    """The field and claim that keep the pod waiting because nobody has bound or made the claim yet; empty if none."""
    for index, key in claims_of(task):
        claim = cluster.claims.get(key)
        field = f"spec.volumes[{index}]"
        if claim is None:
            return f"{field} (claim {key} does not exist)"
        if not claim.spec.volume_name:
            return f"{field} (claim {key} is not bound; binding volumes on placement)"
        if "ReadWriteOncePod" in (claim.spec.access_modes or ()):
            return f"{field} (access mode ReadWriteOncePod of claim {key})"
    return ""


def volumes_of(cluster: Cluster, task: Task) -> list[PersistentVolume]:
    """The known volumes that the pod's claims are bound to."""
    found = (cluster.claims.get(key) for _, key in claims_of(task))
    bound = (cluster.volumes.get(claim.spec.volume_name) for claim in found if claim is not None)
    return [volume for volume in bound if volume is not None]


def out_of_reach(volumes: list[PersistentVolume], node: NodeInfo) -> str:
    """The name of the first volume that the node does not reach; empty if it reaches all."""
    for volume in volumes:
        affinity = volume.spec.node_affinity
        if affinity is not None and not node_selector_matches(affinity.required, node):
            return volume.metadata.name
        labels = volume.metadata.labels or {}
        for label in ZONE_LABELS:
            if label in labels and node.labels.get(label) not in labels[label].split("__"):
                return volume.metadata.name
    return ""
