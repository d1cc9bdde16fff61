"""Host ports: two pods that want the same one cannot share a node (semantics: kube-scheduler's ``nodeports``)."""

from __future__ import annotations

from ..model.demand import HostPort
from ..model.nodes import Mask, NodeInfo, Nodes
from ..model.task import COMPLETED, Task, TaskStatus
from .counts import PodCounts

ANY = ("", "0.0.0.0", "::")  # noqa: S104 (compared with, not bound to)


class HostPorts:
    """Who uses which port on which node; for one cycle."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._counts: dict[tuple[HostPort, ...], PodCounts] = {}

    def mask(self, task: Task, *, future: bool) -> Mask | None:
        """Nodes on which all ports of the task are free; None if it wants none."""
        if not task.host_ports:
            return None
        counts = self._counts.get(task.host_ports)
        if counts is None:
            counts = self._counts[task.host_ports] = PodCounts(
                self._nodes, lambda other: any(clash(mine, other) for mine in task.host_ports)
            )
        mask: Mask = counts.possible(future=future) == 0
        return mask

    def taken(self, task: Task, node: NodeInfo) -> str:
        """The first port of the task that is taken on the node; empty if none is."""
        for mine in task.host_ports:
            for other in node.tasks.values():
                if not other.status & (COMPLETED | TaskStatus.RELEASING) and clash(mine, other):
                    return f"{mine[2]}/{mine[0]}"
        return ""


def clash(mine: HostPort, other: Task) -> bool:
    """Whether a pod uses the port on an address that overlaps."""
    protocol, address, port = mine
    return any(
        protocol == theirs and port == number and (address == at or address in ANY or at in ANY)
        for theirs, at, number in other.host_ports
    )
