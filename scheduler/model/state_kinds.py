"""The kinds of objects in the scheduler's state. Register a new kind here, and in `kube.resource.WATCHED` to watch it.

The order is that of a checkpoint: an object comes after the objects to which it refers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from . import objects
from .cluster import Cluster


class StateKind(NamedTuple):
    """How `Cluster` keeps the objects of one kind."""

    struct: type[Any]
    set: Callable[[Cluster, Any], None]
    delete: Callable[[Cluster, str], None]
    objects: Callable[[Cluster], Mapping[str, Any]]
    """Returns the objects by key."""


def _nodes(cluster: Cluster) -> dict[str, objects.Node]:
    return {name: info.object for name, info in cluster.nodes.by_name.items()}


def _queues(cluster: Cluster) -> dict[str, objects.Queue]:
    return {name: queue.object for name, queue in cluster.queues.items()}


def _podgroups(cluster: Cluster) -> dict[str, objects.PodGroup]:
    return {key: job.group for key, job in cluster.jobs.items() if job.group is not None}


def _pods(cluster: Cluster) -> dict[str, objects.Pod]:
    return {key: task.pod for key, task in cluster.tasks.items()}


STATE_KINDS = {
    kind.struct.__name__: kind
    for kind in (
        StateKind(
            objects.PriorityClass,
            Cluster.set_priority_class,
            Cluster.delete_priority_class,
            attrgetter("priority_classes"),
        ),
        StateKind(objects.Namespace, Cluster.set_namespace, Cluster.delete_namespace, attrgetter("namespaces")),
        StateKind(objects.CSINode, Cluster.set_csi_node, Cluster.delete_csi_node, attrgetter("csi_nodes")),
        StateKind(objects.PersistentVolume, Cluster.set_volume, Cluster.delete_volume, attrgetter("volumes")),
        StateKind(objects.PersistentVolumeClaim, Cluster.set_claim, Cluster.delete_claim, attrgetter("claims")),
        StateKind(objects.PodDisruptionBudget, Cluster.set_budget, Cluster.delete_budget, attrgetter("budgets")),
        StateKind(objects.HyperNode, Cluster.set_hyper_node, Cluster.delete_hyper_node, attrgetter("hyper_nodes")),
        StateKind(objects.ResourceQuota, Cluster.set_quota, Cluster.delete_quota, attrgetter("quotas")),
        StateKind(objects.Node, Cluster.set_node, Cluster.delete_node, _nodes),
        StateKind(objects.Queue, Cluster.set_queue, Cluster.delete_queue, _queues),
        StateKind(objects.PodGroup, Cluster.set_podgroup, Cluster.delete_podgroup, _podgroups),
        StateKind(objects.Pod, Cluster.set_pod, Cluster.delete_pod, _pods),
    )
}
"""Name of the kind in the API → the kind."""
