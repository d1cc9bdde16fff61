"""Decide which objects belong to a run: all on a cluster made for the run, the labelled ones on a shared cluster.

Does no I/O. Also adapts new objects, so that pods of scenarios and foreign pods use separate nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from ..api.client import Object
from ..api.kinds import SERVED, Kind
from ..clusters.protocol import SCENARIO
from . import nodes

TAINT: Final = {"key": SCENARIO, "effect": "NoSchedule"}
"""Taint of every node of a scenario on a shared cluster. Other schedulers place no pod there."""
_TOLERATION: Final = {"key": SCENARIO, "operator": "Exists", "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True)
class Ownership:
    """The ownership of a cluster's objects."""

    shared: bool = False
    """True if the cluster has other users: foreign objects are neither observed nor changed."""
    namespace_prefix: str = "spec-"
    """Prefix of the scenarios' namespaces; on a shared cluster unique to the run."""
    adoptable: tuple[str, ...] = ()
    """Nodes of a shared cluster that scenarios may use."""

    def may_adopt(self, node: str) -> bool:
        """Whether scenarios may use a node with a kubelet."""
        return not self.shared or node in self.adoptable

    def covers(self, kind: Kind, obj: Object) -> bool:
        """Whether an object belongs to the history of a scenario."""
        if not self.shared or kind == Kind.PRIORITYCLASS:
            return True
        meta = obj["metadata"]
        labels = meta.get("labels") or {}
        if kind == Kind.NODE:
            return meta["name"] in self.adoptable or (SCENARIO in labels and nodes.WORLD in labels)
        if SCENARIO in labels or not SERVED[kind].namespaced:
            return SCENARIO in labels
        on_ours = kind == Kind.POD and obj["spec"].get("nodeName") in self.adoptable  # the pod occupies capacity there
        return on_ours or str(meta["namespace"]).startswith(self.namespace_prefix)

    def keep_apart(self, obj: Object) -> None:
        """Change a new object so that foreign pods avoid our nodes and our pods tolerate their taint."""
        if not self.shared:
            return
        if obj["kind"] == "Node":
            node = obj.setdefault("spec", {})
            node["taints"] = [*(node.get("taints") or ()), TAINT]
        for pod in _pod_specs(obj):
            pod["tolerations"] = [*(pod.get("tolerations") or ()), _TOLERATION]


def _pod_specs(value: Any) -> Iterator[Object]:
    """Yield every PodSpec in an object, at any depth."""
    if isinstance(value, dict):
        if isinstance(value.get("containers"), list):
            yield value
        for part in value.values():
            yield from _pod_specs(part)
    elif isinstance(value, list):
        for part in value:
            yield from _pod_specs(part)
