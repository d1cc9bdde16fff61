"""The smaller objects that placement and evictions look at, by key.

The one rule: each is kept as it came; what counts as a change of one is said by :mod:`scheduler.model.equality`.
"""

from __future__ import annotations

from typing import TypeVar

from . import objects
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

    ``version`` grows with every change that could alter a decision.
    """

    def __init__(self) -> None:
        self.version = 0
        self.budgets: dict[str, objects.PodDisruptionBudget] = {}
        self.volumes: dict[str, objects.PersistentVolume] = {}
        self.claims: dict[str, objects.PersistentVolumeClaim] = {}
        self.csi_nodes: dict[str, objects.CSINode] = {}
        self.namespaces: dict[str, objects.Namespace] = {}

    def set_budget(self, budget: objects.PodDisruptionBudget) -> None:
        self._keep(self.budgets, budget)

    def delete_budget(self, key: str) -> None:
        self.version += self.budgets.pop(key, None) is not None

    def set_volume(self, volume: objects.PersistentVolume) -> None:
        self._keep(self.volumes, volume)

    def delete_volume(self, key: str) -> None:
        self.version += self.volumes.pop(key, None) is not None

    def set_claim(self, claim: objects.PersistentVolumeClaim) -> None:
        self._keep(self.claims, claim)

    def delete_claim(self, key: str) -> None:
        self.version += self.claims.pop(key, None) is not None

    def set_csi_node(self, node: objects.CSINode) -> None:
        self._keep(self.csi_nodes, node)

    def delete_csi_node(self, name: str) -> None:
        self.version += self.csi_nodes.pop(name, None) is not None

    def set_namespace(self, namespace: objects.Namespace) -> None:
        self._keep(self.namespaces, namespace)

    def delete_namespace(self, name: str) -> None:
        self.version += self.namespaces.pop(name, None) is not None

    def _keep(self, place: dict[str, Small], item: Small) -> None:
        known = place.get(item.metadata.key)
        place[item.metadata.key] = item
        self.version += known is None or not same_small(known, item)
