"""Monitor: no bind exceeds the capacity of a node."""

from __future__ import annotations

from . import amounts
from .ledger import Monitor
from .lives import Pod


class NodeMonitor(Monitor):
    """Compares the pods on a node after each bind with the node's allocatable amounts."""

    NAME = "node"

    def on_bound(self, pod: Pod) -> None:
        """Judge a bind. A node has none of a requested resource that it does not list."""
        has = self.ledger.has.get(pod.node)
        if has is None:
            return
        limits = {**{name: amounts.NONE for name in pod.requests if name != "pods"}, **has}
        if over := amounts.above(self.ledger.on_node[pod.node], limits, pod.requests):
            self.find(f"bound to {pod.node}, which then holds {', '.join(over)}", pod)
