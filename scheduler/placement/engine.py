"""Where a task may go, and where best.

The one rule: tasks of one shape are ranked together. A shape costs one pass over all nodes in a cycle; after that only
the rows that changed since are looked at again, and a run of equal tasks is placed from one matrix of scores (node x
how many of the run it has already taken). The outcome is that of placing the tasks one by one, each on the best node,
the smallest name among equals.
"""

from __future__ import annotations

import heapq
from typing import Any

import msgspec
import numpy as np

from scheduler.hooks import Hooks
from scheduler.model.cluster import Cluster
from scheduler.model.nodes import Mask, NodeInfo, Nodes, Rows, Vector
from scheduler.model.resources import EPSILON
from scheduler.model.task import Task
from scheduler.placement import unsupported
from scheduler.placement.explain import no_node
from scheduler.reasons import NoNode, Unsupported

NOWHERE = -np.inf
MANY = 2**31
ALL = slice(None)


class Placement:
    """Feasibility, room and scores of tasks on the nodes of one cycle.

    ``future`` asks about the time when everything releasing has left and everything pipelined has come; otherwise it is
    about now.
    """

    def __init__(self, cluster: Cluster, hooks: Hooks) -> None:
        self._cluster = cluster
        self._nodes = cluster.nodes
        self._hooks = hooks
        self._static: dict[bytes, Mask] = {}
        self._static_score: dict[bytes, Vector] = {}
        self._slot_counts: dict[bytes, tuple[int, Rows]] = {}
        self._refusals: dict[bytes, tuple[int, NoNode | Unsupported]] = {}
        self._rankings: dict[tuple[bytes, bool], _Ranking] = {}

    # ---------------------------------------------------------------------------------------------------- feasibility

    def static(self, task: Task) -> Mask:
        """Nodes that the task may go to as far as labels, taints and the like decide; room and neighbours not asked."""
        mask = self._static.get(task.shape)
        if mask is None:
            mask = self._nodes.ready.copy()
            if unsupported.of_task(self._cluster, task):
                mask[:] = False
            for entry in self._hooks.of("feasible"):
                mask &= entry.fn(task)
            self._static[task.shape] = mask
        return mask

    def neighbours(self, task: Task, *, future: bool = False) -> Mask | None:
        """Nodes whose pods do not stand in the task's way (ports, pod affinity, spread); None if it does not mind
        any.
        """
        mask: Mask | None = None
        for entry in self._hooks.of("predicate"):
            allowed = entry.fn(task, future)
            if allowed is not None:
                mask = allowed if mask is None else mask & allowed
        return mask

    def feasible(self, task: Task, *, future: bool = False) -> Mask:
        """Nodes that the task may go to, room not asked."""
        mask, neighbours = self.static(task), self.neighbours(task, future=future)
        return mask if neighbours is None else mask & neighbours

    def room(self, task: Task, *, future: bool = False) -> Mask:
        """Nodes with room enough for the task."""
        available, _ = amounts(self._nodes, ALL, future=future)
        return _within(self._nodes.needed(task), available)

    def admits(self, task: Task, node: NodeInfo, *, future: bool = False) -> bool:
        """Whether the task may go to this node, room not asked."""
        return bool(self.feasible(task, future=future)[node.row])

    def fits(self, task: Task, node: NodeInfo, *, future: bool = False) -> bool:
        """Whether the task may go to this node and finds room there."""
        available, _ = amounts(self._nodes, node.row, future=future)
        needed = self._nodes.needed(task)
        has_room = bool(((needed <= available + EPSILON) | (needed == 0)).all())
        return has_room and self.admits(task, node, future=future)

    # --------------------------------------------------------------------------------------------------------- scores

    def scores(self, task: Task, *, future: bool = False) -> Vector:
        """How good each node is for the task, by all plugins; higher is better. Says nothing about feasibility."""
        _, used = amounts(self._nodes, ALL, future=future)
        total = self.static_score(task) + self.usage_score(task, used + self._nodes.held(task), self._nodes.allocatable)
        liked = self._pod_score(task)
        return total if liked is None else total + liked

    def static_score(self, task: Task) -> Vector:
        """The part of the score that nothing in a cycle changes."""
        total = self._static_score.get(task.shape)
        if total is None:
            feasible = self.static(task)
            total = np.zeros(len(self._nodes.rows))
            for entry in self._hooks.of("score"):
                score = entry.fn(task, feasible)
                if score is not None:
                    total += score
            self._static_score[task.shape] = total
        return total

    def usage_score(self, task: Task, used: Vector, allocatable: Vector) -> Vector:
        """The part of the score that follows from what is used; arrays are [..., dimensions], ``used`` includes the
        task.
        """
        total = np.zeros(used.shape[:-1])
        for entry in self._hooks.of("usage_score"):
            total += entry.fn(task, used, allocatable)
        return total

    def _minds_pods(self, task: Task) -> bool:
        return self.neighbours(task) is not None or any(
            entry.fn(task, self.static(task)) is not None for entry in self._hooks.of("pod_score")
        )

    def _pod_score(self, task: Task) -> Vector | None:
        """The part of the score that follows from who runs where; None if the task does not mind."""
        total: Vector | None = None
        for entry in self._hooks.of("pod_score"):
            score = entry.fn(task, self.static(task))
            if score is not None:
                total = score if total is None else total + score
        return total

    def explain(self, task: Task) -> NoNode | Unsupported:
        """Why no node takes the task (or another, once as many like it as fit are placed), now or later in this
        cycle.
        """
        known = self._refusals.get(task.shape)
        if known is None or known[0] != len(self._nodes.touched) or self.minds_company(task):
            field = unsupported.of_task(self._cluster, task)
            why = (
                Unsupported(task.key, field)
                if field
                else no_node(self._nodes, self._hooks, task, self.feasible(task, future=True), self._slots(task))
            )
            known = self._refusals[task.shape] = (len(self._nodes.touched), why)
        return msgspec.structs.replace(known[1], task=task.key)

    def slots(self, task: Task, wanted: int) -> int:
        """How many tasks like this one find room, now or once the releasing have left: at least ``wanted``, or the
        exact number.

        Not for tasks that mind company.
        """
        takers = int(np.count_nonzero(self._ranking(task, future=False).value > NOWHERE))
        return takers if takers >= wanted else int(self._slots(task).sum())

    def _slots(self, task: Task) -> Rows:
        known = self._slot_counts.get(task.shape)
        if known is None or known[0] != len(self._nodes.touched):
            available, _ = amounts(self._nodes, ALL, future=True)
            counts = np.where(self.static(task), _times(self._nodes, task, available), 0)
            known = self._slot_counts[task.shape] = (len(self._nodes.touched), counts)
        return known[1]

    # --------------------------------------------------------------------------------------------------------- choice

    def minds_company(self, task: Task) -> bool:
        """Whether it matters to the task who runs where, so that each placement changes the next."""
        return self.neighbours(task) is not None or self._pod_score(task) is not None

    def best(self, task: Task, *, future: bool = False, among: Mask | None = None) -> NodeInfo | None:
        """The best node with room for the task, or None; ``among`` narrows the choice."""
        neighbours = self.neighbours(task, future=future)
        liked = self._pod_score(task)
        if neighbours is None and liked is None:
            value = self._ranking(task, future=future).value
            if among is not None:
                value = np.where(among, value, NOWHERE)
        else:
            mask = self.static(task) & self.room(task, future=future)
            for narrower in (neighbours, among):
                if narrower is not None:
                    mask = mask & narrower
            if not mask.any():
                return None
            value = np.where(mask, self.scores(task, future=future), NOWHERE)
        if not len(value):
            return None
        row = int(value.argmax())
        return self._nodes.rows[row] if value[row] > NOWHERE else None

    def plan(self, task: Task, count: int, *, future: bool = False) -> list[NodeInfo]:
        """Nodes for ``count`` tasks like this one, placed one after the other; fewer if there is no room for all.

        For a task that minds who runs where the plan ends after the first: the rest has to be asked again.
        """
        if count == 1 or self.minds_company(task):
            node = self.best(task, future=future)
            return [] if node is None else [node]
        value = self._ranking(task, future=future).value
        rows = np.argsort(-value, kind="stable")[:count]
        rows = rows[value[rows] > NOWHERE]
        if not len(rows):
            return []
        values, taken = self._ladder(task, rows, count, future=future), [0] * len(rows)
        found: list[NodeInfo] = []
        heap = [(-values[i, 0], int(row), i) for i, row in enumerate(rows)]
        heapq.heapify(heap)
        while heap and len(found) < count:
            _, row, i = heap[0]
            found.append(self._nodes.rows[row])
            taken[i] += 1
            following = values[i, taken[i]] if taken[i] < values.shape[1] else NOWHERE
            if following > NOWHERE:
                heapq.heapreplace(heap, (-following, row, i))
            else:
                heapq.heappop(heap)
        return found

    def _ladder(self, task: Task, rows: Rows, count: int, *, future: bool) -> Vector:
        """Scores [rows x steps]: of each row for the first, second, … task like this one; nowhere beyond its room."""
        nodes = self._nodes
        held = nodes.held(task)
        available, used_now = amounts(nodes, rows, future=future)
        fits = np.minimum(_times(nodes, task, available), count)
        steps = np.arange(1, int(fits.max()) + 1)
        used = used_now[:, None, :] + steps[None, :, None] * held
        values = self.static_score(task)[rows][:, None] + self.usage_score(
            task, used, nodes.allocatable[rows][:, None, :]
        )
        values[steps[None, :] > fits[:, None]] = NOWHERE
        return values

    def _ranking(self, task: Task, *, future: bool) -> _Ranking:
        key = (task.shape, future)
        ranking = self._rankings.get(key)
        if ranking is None:
            ranking = self._rankings[key] = _Ranking(self, self._nodes, task, future=future)
        ranking.refresh()
        return ranking


class _Ranking:
    """The value of every node for one shape: its score, or nowhere."""

    def __init__(self, placement: Placement, nodes: Nodes, task: Task, *, future: bool) -> None:
        self._placement, self._nodes, self._task, self._future = placement, nodes, task, future
        self._needed, self._held = nodes.needed(task), nodes.held(task)
        self._rows = np.flatnonzero(placement.static(task))
        self._is_feasible = placement.static(task)
        self.value = np.full(len(nodes.rows), NOWHERE)
        self._seen = len(nodes.touched)
        self._evaluate(self._rows)

    def refresh(self) -> None:
        """Look again at the rows that changed since the last time."""
        touched = self._nodes.touched
        if self._seen == len(touched):
            return
        changed = set(touched[self._seen :])
        self._seen = len(touched)
        if len(changed) * 2 > len(self._rows):
            self._evaluate(self._rows)
        else:
            rows = np.fromiter(changed, dtype=np.int64, count=len(changed))
            self._evaluate(rows[self._is_feasible[rows]])

    def _evaluate(self, rows: Rows) -> None:
        nodes, placement = self._nodes, self._placement
        available, used = amounts(nodes, rows, future=self._future)
        score = placement.static_score(self._task)[rows] + placement.usage_score(
            self._task, used + self._held, nodes.allocatable[rows]
        )
        self.value[rows] = np.where(_within(self._needed, available), score, NOWHERE)


def amounts(nodes: Nodes, rows: Any, *, future: bool) -> tuple[Vector, Vector]:
    """What is available and what is used on some rows: now, or once the releasing have left and the pipelined have
    come.

    Idle room that somebody pipelined is going to need is not available now.
    """
    idle = nodes.idle[rows]
    used = nodes.allocatable[rows] - idle
    coming = nodes.pipelined[rows] - nodes.releasing[rows]
    if future:
        return idle - coming, used + coming
    return np.minimum(idle, idle - coming), used


def _times(nodes: Nodes, task: Task, available: Vector) -> Rows:
    """How many tasks like this one fit into each row of ``available``, one after the other."""
    needed, held = nodes.needed(task), nodes.held(task)
    asked = needed > 0
    with np.errstate(divide="ignore"):
        spare = (available[:, asked] + EPSILON - needed[asked]) / held[asked]
    times: Rows = np.maximum(np.floor(spare.min(axis=1, initial=MANY)) + 1, 0).astype(np.int64)
    return times


def _within(needed: Vector, available: Vector) -> Mask:
    """Rows of ``available`` with at least ``needed`` of all that is asked."""
    asked = needed > 0
    mask: Mask = np.logical_and.reduce(available[:, asked] + EPSILON >= needed[asked], axis=1)
    return mask
