"""The nodes in the order of what room for a task would cost there.

The one rule: a price is what the candidates on a node cost at least, votes not asked; only the node that comes first
is looked at closely. Nodes are kept apart by the queue of their best protected victim, because the order among queues
follows the state, and the order among nodes of one queue does not.
"""

from __future__ import annotations

import heapq
from typing import Any, Protocol

import numpy as np

from scheduler.model.task import Task
from scheduler.session import Session

Cost = tuple[Any, ...]


class Prices(Protocol):
    """Who knows what a node costs."""

    def bound(self, task: Task, row: int) -> Cost | None: ...


class Front:
    """The prices of all nodes for one shape."""

    def __init__(self, session: Session, prices: Prices, task: Task) -> None:
        self._prices = prices
        self._task = task
        self._log, self._touched = session.log, session.nodes.touched
        self._is_feasible = session.placement.static(task)
        self._version = [0] * len(session.nodes.rows)
        self._heaps: dict[Any, list[tuple[Cost, int, int, int]]] = {}
        self._seen = len(self._touched)
        for row in np.flatnonzero(self._is_feasible):
            self._look(int(row))

    def _look(self, row: int) -> None:
        self._version[row] += 1
        price = self._prices.bound(self._task, row)
        if price is not None:
            self.push(price, row, exact=False)

    def refresh(self) -> None:
        """Look again at the nodes on which something has changed."""
        changed = set(self._touched[self._seen :])
        self.in_step()
        for row in sorted(changed):
            if self._is_feasible[row]:
                self._look(row)

    def in_step(self) -> None:
        """What has changed meanwhile was taken back."""
        self._seen = len(self._touched)

    def push(self, price: Cost, row: int, *, exact: bool) -> None:
        """``exact``: this price is asked as things stand, and was too high when another node may be cheaper."""
        heap = self._heaps.setdefault(id(price[0][0][2]) if price else None, [])
        heapq.heappush(heap, (price, row, self._version[row], len(self._log) if exact else -1))

    def pop(self) -> tuple[int, bool] | None:
        """The node with the lowest price and whether it is exact; None if none is left."""
        heads = self._heads()
        if not heads:
            return None
        heap = min(heads, key=lambda heap: heap[0][:2])
        _, row, _, state = heapq.heappop(heap)
        return row, state == len(self._log)

    def offers_less_than(self, price: Cost) -> bool:
        return any(heap[0][0] < price for heap in self._heads())

    def _heads(self) -> list[list[tuple[Cost, int, int, int]]]:
        """The heaps with something in them, entries that a later look has replaced removed from their tops."""
        for heap in self._heaps.values():
            while heap and heap[0][2] != self._version[heap[0][1]]:
                heapq.heappop(heap)
        return [heap for heap in self._heaps.values() if heap]
