"""Respect the location of bound volumes.

Semantics: kube-scheduler's `volumebinding` and `volumezone`, for bound claims.

The scheduler reads bindings and creates none. A claim that is bound only after its pod is placed keeps the pod pending,
with the claim's name as the reason.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..model.cluster import Cluster
from ..model.names import reference
from ..model.nodes import Mask, Nodes
from ..model.objects import PersistentVolume, Volume
from ..model.task import Task
from .node_index import NodeIndex, steps_of

ZONE_LABELS = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)

ONE_POD = "ReadWriteOncePod"
REACH = 30
"""The steps to match one volume with the nodes, without its affinity."""
VOLUME, FIELD = 4, "spec.volumes"
"""The steps to look up the claim and volume of one entry of the field."""


def claims_of(task: Task) -> Iterator[tuple[int, str]]:
    """Iterate over the claims that a pod mounts, as `(index of the volume, namespace/name)`."""
    for index, volume in enumerate(task.pod.spec.volumes or ()):
        if name := _claim_name(task, volume):
            yield index, f"{task.namespace}/{name}"


def _claim_name(task: Task, volume: Volume) -> str:
    if volume.persistent_volume_claim is not None:
        return reference(volume.persistent_volume_claim.claim_name)
    return f"{task.name}-{volume.name}" if volume.ephemeral is not None else ""


def unbound_claim(cluster: Cluster, task: Task) -> str:
    """Return the field, claim and problem of the first claim that keeps the pod pending; empty if there is none."""
    for index, key in claims_of(task):
        if problem := _problem(cluster, task, index, key):
            return f"spec.volumes[{index}] ({problem})"
    return ""


def _problem(cluster: Cluster, task: Task, index: int, key: str) -> str:
    claim = cluster.claims.get(key)
    if claim is None:
        return f"claim {key} does not exist"
    volume, bound = (task.pod.spec.volumes or [])[index], claim.spec.volume_name
    if claim.metadata.deletion_timestamp is not None:
        return f"claim {key} is being deleted"
    if volume.ephemeral is not None and all(o.uid != task.uid for o in claim.metadata.owner_references or ()):
        return f"claim {key} was not made for this pod"
    if bound not in cluster.volumes:
        problem = (
            f"bound to volume {bound}, which does not exist" if bound else "not bound; volume binding on placement"
        )
        return f"claim {key} is {problem}"
    return f"access mode {ONE_POD} of claim {key}" if ONE_POD in (claim.spec.access_modes or ()) else ""


def volumes_of(cluster: Cluster, task: Task) -> list[PersistentVolume]:
    """Return the known volumes to which the pod's claims are bound, each once."""
    found = (cluster.claims.get(key) for key in dict.fromkeys(key for _, key in claims_of(task)))
    bound = (cluster.volumes.get(claim.spec.volume_name) for claim in found if claim is not None)
    return [volume for volume in bound if volume is not None]


def steps_of_reach(volume: PersistentVolume, nodes: Nodes) -> int:
    """Return how many steps it takes to find the nodes that reach a volume."""
    affinity = volume.spec.node_affinity
    return REACH + (steps_of(affinity.required, nodes) if affinity is not None else 0)


def within_affinity(volume: PersistentVolume, index: NodeIndex) -> Mask:
    """Return the nodes that the volume's own node affinity allows."""
    affinity = volume.spec.node_affinity
    return index.selected(affinity.required if affinity is not None else None)


def within_zone(volume: PersistentVolume, index: NodeIndex) -> Mask:
    """Return the nodes in the zone and region with which the volume is labelled, if it is."""
    labels = volume.metadata.labels or {}
    wanted = {label: labels[label].split("__") for label in ZONE_LABELS if label in labels}
    return index.with_any(wanted)
