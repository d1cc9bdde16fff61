"""Exclude nodes on which a host port of the task is in use (semantics: kube-scheduler's `nodeports`).

Two pods are compared as sets of ports, so that the cost depends on the pod with fewer ports.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial

from ..model.demand import HostPort
from ..model.nodes import Mask, NodeInfo, Nodes
from ..model.task import COMPLETED, Task, TaskStatus
from .counts import PodCounts
from .pod_index import Spend

FIELD = "spec.containers[].ports"
FEW = 64
"""Up to this number of ports, pods with equal ports share a count."""
LOOKUPS = 32
"""Number of port look-ups that cost one step of the cycle's budget."""


class HostPorts:
    """Find the nodes on which host ports are free; for one cycle."""

    def __init__(self, nodes: Nodes, spend: Spend) -> None:
        self._nodes = nodes
        self._spend = spend
        self._counts: dict[Hashable, PodCounts] = {}

    def mask(self, task: Task, *, future: bool) -> Mask | None:
        """Return the nodes on which all host ports of the task are free; None if it has none."""
        if not task.host_ports:
            return None
        key = task.host_ports if len(task.host_ports) <= FEW else task.shape
        counts = self._counts.get(key)
        if counts is None:
            counts = self._counts[key] = PodCounts(self._nodes, partial(_clash, self._spend, task))
        mask: Mask = counts.possible(future=future) == 0
        return mask

    def taken(self, task: Task, node: NodeInfo) -> str:
        """Return the first host port of the task that is in use on the node; empty if all are free."""
        first: HostPort | None = None
        for other in node.tasks.values() if task.host_ports else ():
            if not other.status & (COMPLETED | TaskStatus.RELEASING) and _clash(self._spend, task, other):
                self._spend(len(task.host_ports) // LOOKUPS, FIELD)
                found = next(filter(other.port_numbers.uses, task.host_ports))
                first = found if first is None else min(first, found)
        return "" if first is None else f"{first[2]}/{first[0]}"


def _clash(spend: Spend, task: Task, other: Task) -> bool:
    """Whether both pods request the same port on overlapping addresses."""
    if not other.host_ports:
        return False
    spend(min(len(task.host_ports), len(other.host_ports)) // LOOKUPS, FIELD)
    return task.port_numbers.clash(other.port_numbers)
