"""What of a cluster is a run's own. One that was made for the run is, all of it; of another only what bears its label.

Pure: it judges objects, and says how ours are kept apart from those of others.
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
"""On a shared cluster every node of a scenario has it: other schedulers place nothing there."""
_TOLERATION: Final = {"key": SCENARIO, "operator": "Exists", "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True)
class Ownership:
    """Whose the cluster is."""

    shared: bool = False
    """Others use it: what is not ours is neither seen nor changed."""
    namespace_prefix: str = "spec-"
    """How the names of the scenarios' namespaces begin; on a shared cluster like those of no other run."""
    adoptable: tuple[str, ...] = ()
    """Of a shared cluster's own nodes those that scenarios may use."""

    def may_adopt(self, node: str) -> bool:
        """Whether a node with a kubelet may be used by scenarios."""
        return not self.shared or node in self.adoptable

    def covers(self, kind: Kind, obj: Object) -> bool:
        """Whether an object belongs into the history of a scenario."""
        if not self.shared or kind == Kind.PRIORITYCLASS:
            return True
        meta = obj["metadata"]
        labels = meta.get("labels") or {}
        if kind == Kind.NODE:
            return meta["name"] in self.adoptable or (SCENARIO in labels and nodes.WORLD in labels)
        if SCENARIO in labels or not SERVED[kind].namespaced:
            return SCENARIO in labels
        on_ours = kind == Kind.POD and obj["spec"].get("nodeName") in self.adoptable  # it takes room there
        return on_ours or str(meta["namespace"]).startswith(self.namespace_prefix)

    def keep_apart(self, obj: Object) -> None:
        """Change an object that is about to be made so that nobody else's pods come to our nodes, and ours do."""
        if not self.shared:
            return
        if obj["kind"] == "Node":
            node = obj.setdefault("spec", {})
            node["taints"] = [*(node.get("taints") or ()), TAINT]
        for pod in _pod_specs(obj):
            pod["tolerations"] = [*(pod.get("tolerations") or ()), _TOLERATION]


def _pod_specs(value: Any) -> Iterator[Object]:
    """Every PodSpec in an object, however deep."""
    if isinstance(value, dict):
        if isinstance(value.get("containers"), list):
            yield value
        for part in value.values():
            yield from _pod_specs(part)
    elif isinstance(value, list):
        for part in value:
            yield from _pod_specs(part)
