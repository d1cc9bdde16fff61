"""Find the companions to apply: objects that a scheduler needs beside those of a scenario.

Volcano needs HyperNodes for the racks of the nodes, Kueue needs its ClusterQueues. A scheduler's adapter makes them
from the scenario's queues and nodes and the policy in force; this module finds those that are new or changed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence

from ..api.client import Object
from ..api.kinds import SERVED, Kind, Ref, kind_of
from ..clusters.protocol import SCENARIO
from ..observe.history import History, View
from . import nodes

MakesCompanions = Callable[[Sequence[Object], Sequence[Object], str], Sequence[Object]]
"""Return the companions for queues, nodes and the text of a policy."""


class Companions:
    """The companions of one scenario, as last applied."""

    def __init__(self, make: MakesCompanions, history: History, labels: Mapping[str, str]) -> None:
        self._make, self._history, self._labels = make, history, labels
        self._applied: dict[Ref, Object] = {}

    def changed(self, view: View, policy: str, without_node: str) -> list[tuple[Ref, Object]]:
        """Return the companions to apply, with the scenario's labels. From now on they count as applied.

        Args:
            view: What the watches show.
            policy: The text of the policy in force.
            without_node: The name of a node that is about to disappear, or an empty text.
        """
        queues = [queue for queue in view.mine(Kind.QUEUE) if SCENARIO in (queue["metadata"].get("labels") or {})]
        own_nodes = [node for node in view.mine(Kind.NODE) if nodes.WORLD in (node["metadata"].get("labels") or {})]
        left = [node for node in own_nodes if node["metadata"]["name"] != without_node]
        return [found for obj in self._make(queues, left, policy) if (found := self._if_changed(obj))]

    def namespaced(self) -> list[tuple[Ref, Object]]:
        """Return the companions that are in a namespace, as last applied: another namespace needs them, too."""
        found = ((ref, copy.deepcopy(obj)) for ref, obj in self._applied.items() if SERVED[ref.kind].namespaced)
        return [(ref, self._labelled(obj)) for ref, obj in found]

    def _if_changed(self, obj: Object) -> tuple[Ref, Object] | None:
        kind = kind_of(obj)
        assert kind is not None, obj["kind"]
        ref = self._history.ref(kind, obj["metadata"]["name"])
        if self._applied.get(ref) == obj:
            return None
        self._applied[ref] = copy.deepcopy(obj)
        return ref, self._labelled(obj)

    def _labelled(self, obj: Object) -> Object:
        obj["metadata"]["labels"] = dict(self._labels)
        return obj
