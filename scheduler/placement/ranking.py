"""Rank all nodes for one shape.

The result equals placing the tasks one by one, each on the best node; among equal nodes, the first by name.

A shape costs one pass over all nodes in a cycle; after that, only changed rows are evaluated again. A run of equal
tasks is placed from one matrix of scores (node x number of tasks of the run already on it).
"""

from __future__ import annotations

import heapq
from typing import Protocol

import numpy as np

from ..model.nodes import ALL, Amounts, Mask, Nodes, Rows, Vector
from ..model.task import Task
from .free_capacity import amounts, least, times, within

NOWHERE = -np.inf


class Scores(Protocol):
    """The part of `scheduler.placement.engine.Placement` that a ranking uses."""

    def amounts(self, *, future: bool) -> tuple[Amounts, Amounts]: ...

    def static(self, task: Task) -> Mask: ...

    def static_score(self, task: Task) -> Vector: ...

    def usage_score(self, task: Task, used: Amounts, allocatable: Amounts) -> Vector: ...


class Ranking:
    """The value of every node for one shape: its score, or minus infinity if the task does not fit."""

    def __init__(self, placement: Scores, nodes: Nodes, task: Task, *, future: bool) -> None:
        self._placement, self._nodes, self._task, self._future = placement, nodes, task, future
        self._least, self._held = least(nodes.needed(task)), nodes.held(task)
        self._is_feasible, self._static = placement.static(task), placement.static_score(task)
        self._rows = np.flatnonzero(self._is_feasible)
        self.value = np.full(len(nodes.rows), NOWHERE)
        self._fitting_nodes: int | None = None
        self._seen = len(nodes.touched)
        self._evaluate_all()

    @property
    def fitting_nodes(self) -> int:
        """Return how many nodes fit one task of the shape."""
        if self._fitting_nodes is None:
            self._fitting_nodes = int(np.count_nonzero(self.value > NOWHERE))
        return self._fitting_nodes

    def refresh(self) -> None:
        """Evaluate the rows that have changed since the last call."""
        touched = self._nodes.touched
        if self._seen == len(touched):
            return
        changed = set(touched[self._seen :])
        self._seen = len(touched)
        if len(changed) == 1:  # usual after one placement: a view costs half of a selection of rows
            (row,) = changed
            if self._is_feasible[row]:
                self._evaluate(slice(row, row + 1))
        elif len(changed) * 2 > len(self._rows):
            self._evaluate_all()
        else:
            rows = np.fromiter(changed, dtype=np.int64, count=len(changed))
            self._evaluate(rows[self._is_feasible[rows]])

    def rows_for(self, count: int) -> list[int]:
        """Return rows for `count` equal tasks, placed one after the other; fewer if there is not enough room."""
        # Rows outside of the best `count` are never used: each of the best rows gets a task before them.
        rows = np.argsort(-self.value, kind="stable")[:count]
        rows = rows[self.value[rows] > NOWHERE]
        if not len(rows):
            return []
        values, taken = self._ladder(rows, count), [0] * len(rows)
        found: list[int] = []
        heap = [(-values[i, 0], int(row), i) for i, row in enumerate(rows)]
        heapq.heapify(heap)
        while heap and len(found) < count:
            _, row, i = heap[0]
            found.append(row)
            taken[i] += 1
            following = values[i, taken[i]] if taken[i] < values.shape[1] else NOWHERE
            if following > NOWHERE:
                heapq.heapreplace(heap, (-following, row, i))
            else:
                heapq.heappop(heap)
        return found

    def _ladder(self, rows: Rows, count: int) -> Vector:
        """Return scores [rows x steps]: for each row the score of the first, second, … equal task.

        Beyond the row's room the score is `NOWHERE`.
        """
        nodes = self._nodes
        held = self._held
        available, used_now = amounts(nodes, rows, future=self._future)
        fits = np.minimum(times(nodes, self._task, available), count)
        steps = np.arange(1, int(fits.max()) + 1)
        used = used_now[:, None, :] + steps[None, :, None] * held
        values = self._static[rows][:, None] + self._placement.usage_score(
            self._task, used, nodes.allocatable[rows][:, None, :]
        )
        values[steps[None, :] > fits[:, None]] = NOWHERE
        return values

    def _evaluate_all(self) -> None:
        available, used = self._placement.amounts(future=self._future)
        if len(self._rows) == len(available):
            self._set_values(ALL, available, used)
        else:
            self._set_values(self._rows, available[self._rows], used[self._rows])

    def _evaluate(self, rows: Rows | slice) -> None:
        self._set_values(rows, *amounts(self._nodes, rows, future=self._future))

    def _set_values(self, rows: Rows | slice, available: Amounts, used: Amounts) -> None:
        fits = within(self._least, available)
        if fits.any():
            usage = self._placement.usage_score(self._task, used + self._held, self._nodes.allocatable[rows])
            self.value[rows] = np.where(fits, self._static[rows] + usage, NOWHERE)
        else:  # on a full cluster, no score is needed
            self.value[rows] = NOWHERE
        self._fitting_nodes = None
