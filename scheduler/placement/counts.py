"""How many pods of some kind are on each node, kept up to date within a cycle.

The one rule: counting everything is done once; after that only nodes on which something changed are counted again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..model.nodes import Nodes
from ..model.task import COMPLETED, Task, TaskStatus

Counts = NDArray[np.float64]
Domains = NDArray[np.int64]


class Tallies:
    """Counts of pods on every node as (there, leaving, coming), and the questions that are asked of them."""

    def _refresh(self) -> Counts:
        raise NotImplementedError

    def present(self, *, future: bool) -> Counts:
        """Pods that a required affinity may count on: now, or once the leaving have left and the coming have come."""
        there, leaving, coming = self._refresh()
        result: Counts = there + coming if future else there + leaving
        return result

    def possible(self, *, future: bool) -> Counts:
        """Pods that an anti-affinity has to reckon with."""
        there, leaving, coming = self._refresh()
        result: Counts = there + coming if future else there + leaving + coming
        return result

    def staying(self) -> Counts:
        """Pods that are there to stay, or on their way in."""
        there, _, coming = self._refresh()
        result: Counts = there + coming
        return result


class PodCounts(Tallies):
    """Pods that ``matches`` says yes to, per node row: those that are there, those on their way out, those still to
    come.
    """

    def __init__(self, nodes: Nodes, matches: Callable[[Task], bool]) -> None:
        self._nodes = nodes
        self._matches = matches
        self._counts = np.zeros((3, len(nodes.rows)))
        self._seen = len(nodes.touched)
        for row in range(len(nodes.rows)):
            self._count(row)

    def _count(self, row: int) -> None:
        there, leaving, coming = 0, 0, 0
        for task in self._nodes.rows[row].tasks.values():
            if task.status & COMPLETED or not self._matches(task):
                continue
            if task.status is TaskStatus.PIPELINED:
                coming += 1
            elif task.status is TaskStatus.RELEASING:
                leaving += 1
            else:
                there += 1
        self._counts[:, row] = there, leaving, coming

    def _refresh(self) -> Counts:
        touched = self._nodes.touched
        if self._seen < len(touched):
            for row in set(touched[self._seen :]):
                self._count(row)
            self._seen = len(touched)
        return self._counts


def domains_of(nodes: Nodes, topology_key: str) -> Domains:
    """The number of each node's topology domain, -1 where it has no such label."""
    known: Domains | None = nodes.kept.get(("domain", topology_key))
    if known is None:
        numbers: dict[str, int] = {}
        known = np.array(
            [
                -1 if value is None else numbers.setdefault(value, len(numbers))
                for value in (node.labels.get(topology_key) for node in nodes.rows)
            ],
            dtype=np.int64,
        )
        nodes.kept["domain", topology_key] = known
    return known


def per_domain(domains: Domains, counts: Counts) -> Counts:
    """For each node the sum over its domain; 0 for nodes of none."""
    inside = domains >= 0
    if not inside.any():
        return np.zeros(len(domains))
    sums = np.bincount(domains[inside], weights=counts[inside])
    result: Counts = np.where(inside, sums[np.maximum(domains, 0)], 0.0)
    return result
