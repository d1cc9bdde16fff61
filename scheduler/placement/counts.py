"""Count pods per node, updated within a cycle.

All nodes are counted once; after that, only nodes that have changed are counted again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..model.nodes import Nodes
from ..model.task import COMPLETED, Task, TaskStatus
from .node_index import NodeIndex

Counts = NDArray[np.float64]
Domains = NDArray[np.int64]


class Tallies:
    """Counts of pods per node as (present, releasing, pipelined), and the sums that constraints use."""

    def _refresh(self) -> Counts:
        raise NotImplementedError

    def present(self, *, future: bool) -> Counts:
        """Count the pods that can satisfy a required affinity.

        With `future`, releasing tasks count as deleted and pipelined tasks as running.
        """
        present, releasing, pipelined = self._refresh()
        result: Counts = present + pipelined if future else present + releasing
        return result

    def possible(self, *, future: bool) -> Counts:
        """Count the pods that can violate an anti-affinity; without `future`, releasing and pipelined pods both can."""
        present, releasing, pipelined = self._refresh()
        result: Counts = present + pipelined if future else present + releasing + pipelined
        return result

    def remaining(self) -> Counts:
        """Count the pods that remain: present or pipelined."""
        present, _, pipelined = self._refresh()
        result: Counts = present + pipelined
        return result


class PodCounts(Tallies):
    """Pods for which `matches` returns True, per node row: present, releasing and pipelined."""

    def __init__(self, nodes: Nodes, matches: Callable[[Task], bool]) -> None:
        self._nodes = nodes
        self._matches = matches
        self._counts = np.zeros((3, len(nodes.rows)))
        self._seen = len(nodes.touched)
        for row in range(len(nodes.rows)):
            self._count(row)

    def _count(self, row: int) -> None:
        present, releasing, pipelined = 0, 0, 0
        for task in self._nodes.rows[row].tasks.values():
            if task.status & COMPLETED or not self._matches(task):
                continue
            if task.status is TaskStatus.PIPELINED:
                pipelined += 1
            elif task.status is TaskStatus.RELEASING:
                releasing += 1
            else:
                present += 1
        self._counts[:, row] = present, releasing, pipelined

    def _refresh(self) -> Counts:
        touched = self._nodes.touched
        if self._seen < len(touched):
            for row in set(touched[self._seen :]):
                self._count(row)
            self._seen = len(touched)
        return self._counts


def domains_of(nodes: Nodes, topology_key: str) -> Domains:
    """Return the number of each node's topology domain; -1 for a node without the label.

    All labels that no node has share one cache entry, because pods may name any number of labels.
    """
    if not NodeIndex.of(nodes).has_label(topology_key):
        topology_key = ""

    def numbered() -> Domains:
        numbers: dict[str, int] = {}
        return np.array(
            [
                -1 if value is None else numbers.setdefault(value, len(numbers))
                for value in (node.labels.get(topology_key) for node in nodes.rows)
            ],
            dtype=np.int64,
        )

    return nodes.kept.once(("domain", topology_key), numbered)


def per_domain(domains: Domains, counts: Counts) -> Counts:
    """Return for each node the sum of `counts` over its domain; 0 for nodes without a domain."""
    inside = domains >= 0
    if not inside.any():
        return np.zeros(len(domains))
    sums = np.bincount(domains[inside], weights=counts[inside])
    result: Counts = np.where(inside, sums[np.maximum(domains, 0)], 0.0)
    return result
