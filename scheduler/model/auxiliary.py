"""The auxiliary objects that placement and eviction use, by key.

Each object is stored as received.

A change of an object could alter a decision if and only if it changes a field that a decision reads. Other fields
(heartbeats, statuses that controllers write, conditions) must not start a cycle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from . import objects, resources
from .changes import BUDGETS, QUOTAS, VOLUMES, ChangeListener
from .resources import PODS
from .task import Task, TaskStatus


def same_node(a: objects.Node, b: objects.Node) -> bool:
    return (
        a.spec == b.spec
        and a.metadata.labels == b.metadata.labels
        and a.metadata.annotations == b.metadata.annotations
        and a.status.allocatable == b.status.allocatable
        and [(c.type, c.status) for c in a.status.conditions or ()]
        == [(c.type, c.status) for c in b.status.conditions or ()]
        and a.status.images == b.status.images
    )


def same_group(a: objects.PodGroup, b: objects.PodGroup) -> bool:
    return a.spec == b.spec and a.status.phase == b.status.phase and _same_meta(a.metadata, b.metadata)


def same_queue(a: objects.Queue, b: objects.Queue) -> bool:
    return a.spec == b.spec and a.status.state == b.status.state and _same_meta(a.metadata, b.metadata)


def same_small(a: Any, b: Any) -> bool:
    """Compare two versions of a namespace, volume, claim, budget or another auxiliary object.

    Spec, metadata, the decoded part of the status, and whether the object is being deleted count.
    """
    parts = ("spec", "status")
    return (
        _same_meta(a.metadata, b.metadata)
        and a.metadata.owner_references == b.metadata.owner_references
        and (a.metadata.deletion_timestamp is None) == (b.metadata.deletion_timestamp is None)
        and all(getattr(a, p, None) == getattr(b, p, None) for p in parts)
    )


def same_task(a: Task, b: Task) -> bool:
    return (
        a.status is b.status
        and a.node == b.node
        and a.assumed == b.assumed
        and a.job == b.job
        and a.shape == b.shape
        and a.gated == b.gated
        and a.nominated == b.nominated
        and a.is_disruption_target == b.is_disruption_target
        and a.never_preempts == b.never_preempts
        and a.priority == b.priority
        and a.started == b.started
        and a.pod.metadata.owner_references == b.pod.metadata.owner_references
        and a.pod.metadata.labels == b.pod.metadata.labels
        and a.pod.metadata.annotations == b.pod.metadata.annotations
    )


def runs_ahead(old: Task, seen: Task) -> bool:
    """Whether our assumption about a task is still ahead of what the API shows."""
    if old.status is TaskStatus.BINDING:
        return seen.status is TaskStatus.PENDING
    if old.status is TaskStatus.UNKNOWN:  # its termination is overdue
        return seen.status is TaskStatus.RELEASING
    waiting = TaskStatus.PENDING | TaskStatus.BOUND | TaskStatus.RUNNING
    return old.status is TaskStatus.RELEASING and bool(seen.status & waiting)


def _same_meta(a: objects.ObjectMeta, b: objects.ObjectMeta) -> bool:
    return (
        a.uid == b.uid
        and a.labels == b.labels
        and a.annotations == b.annotations
        and a.creation_timestamp == b.creation_timestamp
    )


Small = TypeVar(
    "Small",
    objects.CSINode,
    objects.HyperNode,
    objects.Namespace,
    objects.PersistentVolume,
    objects.PersistentVolumeClaim,
    objects.PodDisruptionBudget,
    objects.ResourceQuota,
)


class AuxiliaryObjects:
    """HyperNodes, budgets, quotas of namespaces, volumes, claims, the storage drivers of nodes, and namespaces.

    `version` grows with every change that could alter a decision; `listener` receives the change's topic.
    """

    def __init__(self) -> None:
        self.version = 0
        self.listener = ChangeListener()
        self.budgets: dict[str, objects.PodDisruptionBudget] = {}
        self.hyper_nodes: dict[str, objects.HyperNode] = {}
        self.hyper_nodes_version = 0
        """Grows with every change of a HyperNode."""
        self.quotas: dict[str, objects.ResourceQuota] = {}
        self.volumes: dict[str, objects.PersistentVolume] = {}
        self.claims: dict[str, objects.PersistentVolumeClaim] = {}
        self.csi_nodes: dict[str, objects.CSINode] = {}
        self.namespaces: dict[str, objects.Namespace] = {}

    def set_budget(self, budget: objects.PodDisruptionBudget) -> None:
        self._keep(self.budgets, budget, BUDGETS)

    def delete_budget(self, key: str) -> None:
        self._drop(self.budgets, key, BUDGETS)

    def set_quota(self, quota: objects.ResourceQuota) -> None:
        """Add or update a quota. Raises QuantityError if an amount is not a quantity."""
        for name, value in (*(quota.status.hard or {}).items(), *(quota.status.used or {}).items()):
            if not name.startswith("count/") or name == f"count/{PODS}":
                resources.parse({name.removeprefix("count/"): value})
        self._keep(self.quotas, quota, QUOTAS)

    def delete_quota(self, key: str) -> None:
        self._drop(self.quotas, key, QUOTAS)

    def set_hyper_node(self, hyper_node: objects.HyperNode) -> None:
        before = self.version
        self._keep(self.hyper_nodes, hyper_node)
        self.hyper_nodes_version += self.version != before

    def delete_hyper_node(self, name: str) -> None:
        self._drop(self.hyper_nodes, name)
        self.hyper_nodes_version += 1

    def set_volume(self, volume: objects.PersistentVolume) -> None:
        self._keep(self.volumes, volume, VOLUMES)

    def delete_volume(self, key: str) -> None:
        self._drop(self.volumes, key, VOLUMES)

    def set_claim(self, claim: objects.PersistentVolumeClaim) -> None:
        self._keep(self.claims, claim, VOLUMES)

    def delete_claim(self, key: str) -> None:
        self._drop(self.claims, key, VOLUMES)

    def set_csi_node(self, node: objects.CSINode) -> None:
        self._keep(self.csi_nodes, node, VOLUMES)

    def delete_csi_node(self, name: str) -> None:
        self._drop(self.csi_nodes, name, VOLUMES)

    def set_namespace(self, namespace: objects.Namespace) -> None:
        self._keep(self.namespaces, namespace)

    def delete_namespace(self, name: str) -> None:
        self._drop(self.namespaces, name)

    def _keep(self, items: dict[str, Small], item: Small, topic: str = "") -> None:
        known = items.get(item.metadata.key)
        items[item.metadata.key] = item
        if known is None or not same_small(known, item):
            self._changed(topic)

    def _drop(self, items: dict[str, Small], key: str, topic: str = "") -> None:
        if items.pop(key, None) is not None:
            self._changed(topic)

    def _changed(self, topic: str = "") -> None:
        """Record a change of this topic; without a topic, the change could alter any decision."""
        self.version += 1
        if topic:
            self.listener.report(topic)
        else:
            self.listener.report_all()


def priority_of(name: str, classes: Mapping[str, objects.PriorityClass]) -> int:
    """Return the value of a priority class; if it is unknown, that of the global default class, or 0."""
    if (named := classes.get(name)) is not None:
        return named.value
    return next((found.value for _, found in sorted(classes.items()) if found.global_default), 0)
