"""Decide which objects belong to a run: all on a cluster made for the run, the labelled ones on a shared cluster.

Does no I/O. Also adapts new objects, so that pods of scenarios and foreign pods use separate nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from ..api.client import Api, Object
from ..api.errors import ForeignObjectError
from ..api.kinds import BUILT_IN_QUEUES, SERVED, Kind, Ref
from ..clusters.protocol import SCENARIO
from ..observe.history import History
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


class Foreign:
    """The foreign objects of one scenario.

    Args:
        api: The cluster.
        history: What the watches show.
        ownership: Which objects belong to the run.
        rename: Assigns an object a unique real name; returns False if the object must keep its name.
    """

    def __init__(self, api: Api, history: History, ownership: Ownership, rename: Callable[[Ref], bool]) -> None:
        self._api, self._history, self._ownership, self._rename = api, history, ownership, rename
        self.adopted: set[str] = set()
        """The cluster's own nodes that this scenario uses."""

    def changeable(self, ref: Ref, *, used: bool = False, made: bool = False) -> Object | None:
        """Return a foreign object that may be changed, or None if no foreign object has this name.

        Two kinds may be changed: on a cluster of ours, a queue that always exists; if it is only to be `used`, an
        adopted node. On a shared cluster, an object that is to be `made` gets a real name of its own.

        Raises:
            ForeignObjectError: any other foreign object.
        """
        if ref.namespace:
            return None  # any object in our namespace is ours
        before = self._history.now().get(ref.kind, ref.name) or self._unseen(ref)
        if before is None or (before["metadata"].get("labels") or {}).get(SCENARIO) == self._history.namespace:
            return None
        built_in = ref.kind == Kind.QUEUE and ref.name in BUILT_IN_QUEUES and not self._ownership.shared
        if built_in or (used and ref.kind == Kind.NODE and ref.name in self.adopted):
            return before
        adoptable = ref.kind == Kind.NODE and self._ownership.may_adopt(ref.name)
        if made and not adoptable and self._rename(ref):
            return None
        raise self._refusal(ref)

    def _refusal(self, ref: Ref) -> ForeignObjectError:
        if ref.kind == Kind.NODE and self._ownership.shared:
            todo = f"rename the node in the scenario, or use the existing one (--adopt-nodes {ref.name})"
        else:
            todo = f"rename the {ref.kind} in the scenario"
        return ForeignObjectError(
            f"{ref} exists and is not the scenario's ({SCENARIO} is not {self._history.namespace}): "
            f"it stays unchanged\n  do next: {todo}"
        )

    def _unseen(self, ref: Ref) -> Object | None:
        """Return a foreign object that the history does not cover."""
        if not self._ownership.shared:
            return None
        answer = self._api.raw("GET", ref.path())
        found: Object | None = self._api.decode(answer.data) if answer.status == 200 else None
        return found
