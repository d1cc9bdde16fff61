"""The nodes in the order of what room for a task would cost there.

The one rule: a price is what the candidates on a node cost at least, votes not asked; only the node that comes first
is looked at closely. Nodes are kept apart by the queue of their best protected victim, because the order among queues
follows the state, and the order among nodes of one queue does not.
"""

from __future__ import annotations

import heapq
from typing import Any, Protocol

from ..framework.session import Session
from ..model.task import Task

Cost = tuple[Any, ...]


class Prices(Protocol):
    """Who knows what a node costs."""

    def bound(self, task: Task, row: int) -> Cost | None: ...


class NodeCostQueue:
    """The prices of all nodes for one shape."""

    def __init__(self, session: Session, task: Task, rows: set[int]) -> None:
        self._log, self._touched = session.changes, session.nodes.touched
        is_feasible = session.placement.static(task)
        self._task = task
        self._rows = {row for row in rows if is_feasible[row]}
        self._version = [0] * len(session.nodes.rows)
        self._heaps: dict[Any, list[tuple[Cost, int, int, int]]] = {}
        self._unseen = set(self._rows)
        self._dropped: set[int] = set()
        self._seen = len(self._touched)

    def refresh(self, prices: Prices, *, again: bool) -> None:
        """Look again at the nodes on which something has changed, and with ``again`` at those that were dropped."""
        changed = self._unseen | (self._rows & set(self._touched[self._seen :]))
        if again:
            changed |= self._dropped
            self._dropped.clear()
        self._unseen = set()
        self.in_step()
        for row in sorted(changed):
            self._version[row] += 1
            price = prices.bound(self._task, row)
            if price is not None:
                self.push(price, row, exact=False)

    def drop(self, row: int) -> None:
        """A node that cannot be had, by this request and as long as nothing changes on it."""
        self._dropped.add(row)

    def in_step(self) -> None:
        """What has changed meanwhile was taken back."""
        self._seen = len(self._touched)

    def push(self, price: Cost, row: int, *, exact: bool) -> None:
        """``exact``: this price is asked as things stand, and was too high when another node may be cheaper."""
        heap = self._heaps.setdefault(id(price[1][0][2]) if price else None, [])
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
