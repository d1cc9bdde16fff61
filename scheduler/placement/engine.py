"""Where a task may go, and where best.

The one rule: what is asked of a shape once holds for all tasks of that shape, until something on the nodes changes;
for a task that minds who runs where it holds for one placement only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from ..model.cluster import Cluster
from ..model.nodes import Amounts, Mask, NodeInfo, Rows, Vector
from ..model.task import Task
from ..policy.tiers import Hooks
from ..reasons import NodeUnfit, NoNode, Unsupported
from . import unsupported
from .explain import no_node, unfit
from .free_capacity import ALL, amounts, times, within, without
from .pod_index import PodIndex
from .ranking import NOWHERE, Ranking

EXPLAIN = 8
"""Steps in which the rule is found that excludes a node."""
Spend = Callable[[int], None]


def _for_free(_steps: int) -> None:
    """Where nobody counts."""


class Placement:
    """Feasibility, room and scores of tasks on the nodes of one cycle.

    ``future`` asks about the time when everything releasing has left and everything pipelined has come; otherwise it is
    about now. ``pods`` are the pods on the nodes as selectors see them.
    """

    def __init__(self, cluster: Cluster, hooks: Hooks, spend: Spend = _for_free) -> None:
        self._cluster = cluster
        self._nodes = cluster.nodes
        self._hooks = hooks
        self.spend = spend
        self.pods = PodIndex(cluster, spend)
        self._static: dict[bytes, Mask] = {}
        self._static_score: dict[bytes, Vector] = {}
        self._slot_counts: dict[bytes, tuple[int, Rows]] = {}
        self._refusals: dict[bytes, tuple[int, NoNode | Unsupported]] = {}
        self._rankings: dict[tuple[bytes, bool], Ranking] = {}
        self._minding: dict[bytes, bool] = {}

    # ---------------------------------------------------------------------------------------------------- feasibility

    def static(self, task: Task) -> Mask:
        """Nodes that the task may go to as far as labels, taints and the like decide; room and neighbours not asked."""
        mask = self._static.get(task.shape)
        if mask is None:
            self.spend(100 + len(self._nodes.rows) // 4)
            mask = self._nodes.ready.copy()
            if unsupported.of_task(self._cluster, task):
                mask[:] = False
            for entry in self._hooks.feasible.entries:
                mask &= entry.fn(task)
            self._static[task.shape] = mask
        return mask

    def neighbours(self, task: Task, *, future: bool = False) -> Mask | None:
        """Nodes whose pods do not stand in the task's way (ports, pod affinity, spread); None if it does not mind
        any.
        """
        mask: Mask | None = None
        for entry in self._hooks.predicate.entries:
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
        return within(self._nodes.needed(task), available)

    def admits(self, task: Task, node: NodeInfo, *, future: bool = False) -> bool:
        """Whether the task may go to this node, room not asked."""
        return bool(self.feasible(task, future=future)[node.row])

    def fits(self, task: Task, node: NodeInfo, *, future: bool = False) -> bool:
        """Whether the task may go to this node and finds room there."""
        available, _ = amounts(self._nodes, node.row, future=future)
        needed = self._nodes.needed(task)
        has_room = bool(((needed <= available) | (needed == 0)).all())
        return has_room and self.admits(task, node, future=future)

    def has_idle_room(self, task: Task, node: NodeInfo) -> bool:
        """Whether the node has room enough now, whoever else may be waiting for it. Without it nothing fits now."""
        needed = self._nodes.needed(task)
        return bool(((needed <= self._nodes.idle[node.row]) | (needed == 0)).all())

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
            self.spend(50 + len(self._nodes.rows) // 4)
            feasible = self.static(task)
            total = np.zeros(len(self._nodes.rows))
            for entry in self._hooks.score.entries:
                score = entry.fn(task, feasible)
                if score is not None:
                    total += score
            self._static_score[task.shape] = total
        return total

    def usage_score(self, task: Task, used: Amounts, allocatable: Amounts) -> Vector:
        """The part of the score that follows from what is used; arrays are [..., dimensions], ``used`` includes the
        task.
        """
        total = np.zeros(used.shape[:-1])
        for entry in self._hooks.usage_score.entries:
            total += entry.fn(task, used, allocatable)
        return total

    def _pod_score(self, task: Task) -> Vector | None:
        """The part of the score that follows from who runs where; None if the task does not mind."""
        total: Vector | None = None
        for entry in self._hooks.pod_score.entries:
            score = entry.fn(task, self.static(task))
            if score is not None:
                total = score if total is None else total + score
        return total

    def explain(self, task: Task) -> NoNode | Unsupported:
        """Why no node takes the task (or another, once as many like it as fit are placed), now or later in this
        cycle.
        """
        known = self._refusals.get(task.shape)
        if known is None or known[0] != len(self._nodes.touched) or self.has_inter_pod_constraints(task):
            self.spend(50)
            field = unsupported.of_task(self._cluster, task)
            why: NoNode | Unsupported
            if field:
                why = Unsupported(task.key, field)
            else:
                admitted = self.feasible(task, future=True)
                self.spend(EXPLAIN * int(np.count_nonzero(~admitted)))
                why = no_node(self._nodes, self._hooks, task, admitted, self._slots(task))
            known = self._refusals[task.shape] = (len(self._nodes.touched), why)
        return msgspec.structs.replace(known[1], task=task.key)

    def explain_node(self, task: Task, node: NodeInfo) -> NodeUnfit:
        """Why this node does not take the task, now or later in this cycle."""
        return unfit(self._nodes, self._hooks, task, node, self.admits(task, node, future=True))

    def slots(self, task: Task, wanted: int) -> int:
        """How many tasks like this one find room, now or once the releasing have left: at least ``wanted``, or the
        exact number.

        Not for tasks with constraints between pods.
        """
        takers = self._ranking(task, future=False).takers
        return takers if takers >= wanted else int(self._slots(task).sum())

    def slots_now(self, waiting: Sequence[Task]) -> int:
        """How many tasks like these, which are alike and pipelined, would find room now if they gave up what they wait
        for: no fewer than that, as neighbours are not asked.
        """
        found = times(self._nodes, waiting[0], without(self._nodes, waiting))
        return int(found[self.static(waiting[0])].sum())

    def _slots(self, task: Task) -> Rows:
        known = self._slot_counts.get(task.shape)
        if known is None or known[0] != len(self._nodes.touched):
            available, _ = amounts(self._nodes, ALL, future=True)
            counts = np.where(self.static(task), times(self._nodes, task, available), 0)
            known = self._slot_counts[task.shape] = (len(self._nodes.touched), counts)
        return known[1]

    # --------------------------------------------------------------------------------------------------------- choice

    def has_inter_pod_constraints(self, task: Task) -> bool:
        """Whether it matters to the task who runs where, so that each placement changes the next.

        As long as nobody on a node minds who comes, that is the same for all of a shape.
        """
        if self._nodes.minding:
            return self._asks_for_company(task)
        minds = self._minding.get(task.shape)
        if minds is None:
            minds = self._minding[task.shape] = self._asks_for_company(task)
        return minds

    def _asks_for_company(self, task: Task) -> bool:
        return self.neighbours(task) is not None or self._pod_score(task) is not None

    def best(self, task: Task, *, future: bool = False) -> NodeInfo | None:
        """The best node with room for the task, or None."""
        self.spend(100)
        minds = bool(self._nodes.minding) or self.has_inter_pod_constraints(task)
        neighbours = self.neighbours(task, future=future) if minds else None
        liked = self._pod_score(task) if minds else None
        if neighbours is None and liked is None:
            value = self._ranking(task, future=future).value
        else:
            mask = self.static(task) & self.room(task, future=future)
            if neighbours is not None:
                mask = mask & neighbours
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
        if count == 1 or self.has_inter_pod_constraints(task):
            node = self.best(task, future=future)
            return [] if node is None else [node]
        rows = self._ranking(task, future=future).rows_for(count)
        return [self._nodes.rows[row] for row in rows]

    def _ranking(self, task: Task, *, future: bool) -> Ranking:
        key = (task.shape, future)
        ranking = self._rankings.get(key)
        if ranking is None:
            self.spend(100 + len(self._nodes.rows) // 4)
            ranking = self._rankings[key] = Ranking(self, self._nodes, task, future=future)
        ranking.refresh()
        return ranking
