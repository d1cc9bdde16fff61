"""The smaller objects that placement and evictions look at, by key.

The one rule: each is kept as it came; what counts as a change of one is said by :mod:`scheduler.model.equality`.
"""

from __future__ import annotations

from typing import TypeVar

from . import objects
from .backlog import BUDGETS, VOLUMES, Backlog
from .equality import same_small

Small = TypeVar(
    "Small",
    objects.CSINode,
    objects.Namespace,
    objects.PersistentVolume,
    objects.PersistentVolumeClaim,
    objects.PodDisruptionBudget,
)


class Others:
    """Budgets, volumes, claims, what the storage drivers of nodes say, namespaces.

    ``version`` grows with every change that could alter a decision; ``backlog`` is told which kind of change it was.
    """

    def __init__(self) -> None:
        self.version = 0
        self.backlog = Backlog()
        self.budgets: dict[str, objects.PodDisruptionBudget] = {}
        self.volumes: dict[str, objects.PersistentVolume] = {}
        self.claims: dict[str, objects.PersistentVolumeClaim] = {}
        self.csi_nodes: dict[str, objects.CSINode] = {}
        self.namespaces: dict[str, objects.Namespace] = {}

    def set_budget(self, budget: objects.PodDisruptionBudget) -> None:
        self._keep(self.budgets, budget, BUDGETS)

    def delete_budget(self, key: str) -> None:
        self._drop(self.budgets, key, BUDGETS)

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

    def _keep(self, place: dict[str, Small], item: Small, topic: str = "") -> None:
        known = place.get(item.metadata.key)
        place[item.metadata.key] = item
        if known is None or not same_small(known, item):
            self._changed(topic)

    def _drop(self, place: dict[str, Small], key: str, topic: str = "") -> None:
        if place.pop(key, None) is not None:
            self._changed(topic)

    def _changed(self, topic: str = "") -> None:
        """Something changed that could alter a decision; without a topic, any."""
        self.version += 1
        if topic:
            self.backlog.tell(topic)
        else:
            self.backlog.tell_all()
