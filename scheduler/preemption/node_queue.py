"""Priority queue of nodes by eviction cost.

A node's price is a lower bound of the cost of evictions there, without the plugins' votes; only the cheapest node is
examined in full. The nodes whose best protected victim is of one scheduling queue share a heap: the order among
scheduling queues changes with the state, the order of nodes within a heap does not.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from ..framework.session import Session
from ..model.task import Task

Cost = tuple[Any, ...]


class Prices(Protocol):
    """Compute eviction costs of nodes."""

    def bounds(self, task: Task, rows: Sequence[int]) -> Iterable[Cost | None]: ...


class NodeCostQueue:
    """The prices of all nodes for tasks of one shape."""

    def __init__(self, session: Session, task: Task, rows: set[int]) -> None:
        self._changes, self._touched = session.changes, session.nodes.touched
        is_feasible = session.placement.static(task)
        self._task = task
        self._rows = {row for row in rows if is_feasible[row]}
        self._version = [0] * len(session.nodes.rows)
        self._heaps: dict[Any, list[tuple[Cost, int, int, int]]] = {}
        self._unseen = set(self._rows)
        self._dropped: set[int] = set()
        self._seen = len(self._touched)

    def refresh(self, prices: Prices, *, again: bool) -> None:
        """Compute the prices of nodes that have changed; with `again`, also of the nodes that were dropped."""
        changed = self._unseen | (self._rows & set(self._touched[self._seen :]))
        if again:
            changed |= self._dropped
            self._dropped.clear()
        self._unseen = set()
        self.mark_current()
        rows = sorted(changed)
        for row, price in zip(rows, prices.bounds(self._task, rows), strict=True):
            self._version[row] += 1
            if price is not None:
                self.push(price, row, exact=False)

    def drop(self, row: int) -> None:
        """Drop a node that cannot make room for this request until something changes on it."""
        self._dropped.add(row)

    def mark_current(self) -> None:
        """Mark the queue as up to date: changes since the last refresh were rolled back."""
        self._seen = len(self._touched)

    def push(self, price: Cost, row: int, *, exact: bool) -> None:
        """Add a node. `exact`: the price was computed with votes, and was higher than its lower bound."""
        heap = self._heaps.setdefault(id(price[1][0][2]) if price else None, [])
        heapq.heappush(heap, (price, row, self._version[row], len(self._changes) if exact else -1))

    def pop(self) -> tuple[int, bool] | None:
        """Remove the node with the lowest price; return its row and whether the price is exact, or None if empty."""
        heads = self._heads()
        if not heads:
            return None
        heap = min(heads, key=lambda heap: heap[0][:2])
        _, row, _, state = heapq.heappop(heap)
        return row, state == len(self._changes)

    def is_any_below(self, price: Cost) -> bool:
        """Whether any node in the queue has a lower price."""
        return any(heap[0][0] < price for heap in self._heads())

    def _heads(self) -> list[list[tuple[Cost, int, int, int]]]:
        """Return the heaps that are not empty, after outdated entries are removed from their tops."""
        for heap in self._heaps.values():
            while heap and heap[0][2] != self._version[heap[0][1]]:
                heapq.heappop(heap)
        return [heap for heap in self._heaps.values() if heap]
