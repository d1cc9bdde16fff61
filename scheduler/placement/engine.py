"""Decide on which nodes a task may run, and which of them is best.

A result is valid for all tasks of one shape and scope (`node_scope`) until something changes on the nodes; for a task
with inter-pod constraints it is valid for one placement only.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager

import msgspec
import numpy as np

from ..model.cluster import Cluster
from ..model.nodes import ALL, Amounts, Mask, NodeInfo, Rows, Vector
from ..model.task import Task
from ..policy.tiers import Hooks
from ..reasons import NodeRule, NodeUnfit, NoNode, Unsupported
from ..topology.domains import Domain
from . import unsupported
from .explain import no_node, unfit
from .free_capacity import amounts, least, times, within, without
from .pod_affinity import ForOthers, PodAffinities
from .pod_index import PodIndex, Spend
from .ranking import NOWHERE, Ranking
from .volumes import FIELD, VOLUME

MISSING = "missing"
"""The rule that is reported for a task that requests a resource which no node has."""
EXPLAIN = 16
"""The cost, in steps, of finding the rule that excludes one node."""


class Placement:
    """Feasibility, room and scores of tasks on the nodes of one cycle.

    With `future`, a method computes for the time when all releasing tasks have left and all pipelined tasks run;
    without it, for the present. `pods` indexes the pods on nodes for selectors.
    """

    def __init__(self, cluster: Cluster, hooks: Hooks, spend: Spend, for_others: ForOthers) -> None:
        self._cluster = cluster
        self._nodes = cluster.nodes
        self._hooks = hooks
        self.spend = spend
        self.pods = PodIndex(cluster, spend)
        self.affinities = PodAffinities(cluster, self.pods, for_others)
        self._static: dict[Hashable, Mask] = {}
        self._static_score: dict[Hashable, Vector] = {}
        self._large_enough: dict[tuple[Hashable, bool], bool] = {}
        """Kind, and whether no static mask was known → `is_any_large_enough`."""
        self._amounts: dict[bool, tuple[int, tuple[Amounts, Amounts]]] = {}
        """`future` → the number of changes on nodes before the computation, and its result (`amounts`)."""
        self._slot_counts: dict[Hashable, tuple[int, Rows]] = {}
        self._refusals: dict[Hashable, tuple[int, NoNode | Unsupported]] = {}
        self._rankings: dict[tuple[Hashable, bool], Ranking] = {}
        self._are_constrained: dict[Hashable, bool] = {}
        self.domain: Domain | None = None
        """The domain to which placement is limited now; None for all nodes. Set it with `inside`."""

    def close(self) -> None:
        """Break reference cycles, so that this object is freed with its cycle without the garbage collector."""
        self._rankings.clear()
        self.pods.close()

    @contextmanager
    def inside(self, domain: Domain | None) -> Iterator[None]:
        """Limit placement to a domain; None stands for all nodes."""
        before, self.domain = self.domain, domain
        try:
            yield
        finally:
            self.domain = before

    def _kind_in_domain(self, task: Task) -> Hashable:
        """Return the key of the tasks that share a result in the present domain."""
        kind = self.kind(task)
        return kind if self.domain is None else (kind, self.domain)

    def kind(self, task: Task) -> Hashable:
        """Return the key of the tasks that share a result: the shape, and the scopes that plugins add to it."""
        scopes = self._hooks.node_scope.functions
        return (task.shape, *[scope(task) for scope in scopes]) if scopes else task.shape

    # ---------------------------------------------------------------------------------------------------- feasibility

    def static(self, task: Task) -> Mask:
        """Return the nodes that labels, taints and other static constraints allow; room and pods are not checked."""
        kind = self._kind_in_domain(task)
        mask = self._static.get(kind)
        if mask is None:
            if self.domain is not None:
                self.spend(10)
                domain = self.domain
                with self.inside(None):
                    mask = self.static(task) & domain.mask
            else:
                mask = self._everywhere(task)
            self._static[kind] = mask
        return mask

    @contextmanager
    def static_aside(self, task: Task) -> Iterator[Mask]:
        """Provide the static mask of a task without remembering it: a later caller of this cycle pays for it."""
        kind = self._kind_in_domain(task)
        is_known = kind in self._static
        yield self.static(task)
        if not is_known:
            del self._static[kind]

    def _everywhere(self, task: Task) -> Mask:
        self.spend(100 + len(self._nodes.rows) // 4)
        mask = self._nodes.ready.copy()
        if task.missing or self._unsupported(task):
            mask[:] = False
        for entry in self._hooks.feasible.entries:
            mask &= entry.fn(task)
        return mask

    def _unsupported(self, task: Task) -> str:
        """Return the first unsupported field of the pod; empty if there is none."""
        spec = task.pod.spec
        self.spend(VOLUME * len(spec.volumes or ()), FIELD)
        self.spend(len(spec.containers) + len(spec.init_containers or ()), "spec.containers")
        return unsupported.of_task(self._cluster, task)

    def is_any_large_enough(self, task: Task) -> bool:
        """Whether some node, if it were empty, would have room for the task. A known static mask is respected."""
        kind = self.kind(task)
        mask = self._static.get(kind)
        key = (kind, mask is None)
        if key not in self._large_enough:
            allocatable = self._nodes.allocatable if mask is None else self._nodes.allocatable[mask]
            self._large_enough[key] = bool((allocatable >= self._nodes.needed(task)).all(axis=1).any())
        return self._large_enough[key]

    def neighbours(self, task: Task, *, future: bool = False) -> Mask | None:
        """Return the nodes whose pods do not exclude the task (ports, pod affinity, spread).

        None if the task has no such constraint.
        """
        mask: Mask | None = None
        for entry in self._hooks.predicate.entries:
            allowed = entry.fn(task, future)
            if allowed is not None:
                mask = allowed if mask is None else mask & allowed
        return mask

    def feasible(self, task: Task, *, future: bool = False) -> Mask:
        """Return the nodes on which the task may run; room is not checked."""
        mask, neighbours = self.static(task), self.neighbours(task, future=future)
        return mask if neighbours is None else mask & neighbours

    def amounts(self, *, future: bool) -> tuple[Amounts, Amounts]:
        """Return what is available and what is used on all nodes (`free_capacity.amounts`)."""
        known, now = self._amounts.get(future), len(self._nodes.touched)
        if known is None or known[0] != now:
            known = self._amounts[future] = (now, amounts(self._nodes, ALL, future=future))
        return known[1]

    def room(self, task: Task, *, future: bool = False) -> Mask:
        """Return the nodes with enough room for the task."""
        available, _ = self.amounts(future=future)
        return within(least(self._nodes.needed(task)), available)

    def admits(self, task: Task, node: NodeInfo, *, future: bool = False) -> bool:
        """Whether the task may run on this node; room is not checked."""
        return bool(self.feasible(task, future=future)[node.row])

    def fits(self, task: Task, node: NodeInfo, *, future: bool = False) -> bool:
        """Whether the task may run on this node and finds room there."""
        available, _ = amounts(self._nodes, node.row, future=future)
        needed = self._nodes.needed(task)
        has_room = bool(((needed <= available) | (needed == 0)).all())
        return has_room and self.admits(task, node, future=future)

    def has_idle_room(self, task: Task, node: NodeInfo) -> bool:
        """Whether the node's idle room suffices if pipelined tasks are ignored. If not, the task does not fit now."""
        needed = self._nodes.needed(task)
        return bool(((needed <= self._nodes.idle[node.row]) | (needed == 0)).all())

    # --------------------------------------------------------------------------------------------------------- scores

    def scores(self, task: Task, *, future: bool = False) -> Vector:
        """Return the score of each node for the task, summed over all plugins; higher is better.

        Feasibility is not checked.
        """
        _, used = self.amounts(future=future)
        total = self.static_score(task) + self.usage_score(task, used + self._nodes.held(task), self._nodes.allocatable)
        pod_score = self._pod_score(task)
        return total if pod_score is None else total + pod_score

    def static_score(self, task: Task) -> Vector:
        """Return the part of the score that no change within a cycle affects."""
        kind = self.kind(task)
        total = self._static_score.get(kind)
        if total is None:
            self.spend(50 + len(self._nodes.rows) // 4)
            with self.inside(None):
                feasible = self.static(task)
            total = np.zeros(len(self._nodes.rows))
            for entry in self._hooks.score.entries:
                score = entry.fn(task, feasible)
                if score is not None:
                    total += score
            self._static_score[kind] = total
        return total

    def usage_score(self, task: Task, used: Amounts, allocatable: Amounts) -> Vector:
        """Return the part of the score that follows from usage.

        Args:
            task: the task to be placed.
            used: what is used on the nodes, the task included; [..., dimensions].
            allocatable: what the nodes have; [..., dimensions].
        """
        total: Vector | None = None
        for score in self._hooks.usage_score.functions:
            part = score(task, used, allocatable)
            total = part if total is None else total + part
        return np.zeros(used.shape[:-1]) if total is None else total

    def _pod_score(self, task: Task) -> Vector | None:
        """Return the part of the score that follows from pods on the nodes; None if the task has no such preference."""
        total: Vector | None = None
        for entry in self._hooks.pod_score.entries:
            score = entry.fn(task, self.static(task))
            if score is not None:
                total = score if total is None else total + score
        return total

    def explain(self, task: Task) -> NoNode | Unsupported:
        """Return why no node fits the task, now or later in this cycle.

        As many equal tasks as fit are counted as placed: the reason is that of the next task.
        """
        is_own = self.has_inter_pod_constraints(task)  # pods on nodes may exclude this task but not others of its shape
        kind = self._kind_in_domain(task)
        known = None if is_own else self._refusals.get(kind)
        if known is None or known[0] != len(self._nodes.touched):
            self.spend(50)
            field = self._unsupported(task)
            why: NoNode | Unsupported
            if field:
                why = Unsupported(task.key, field)
            elif task.missing:
                why = NoNode(task.key, number := len(self._nodes.rows), (NodeRule(number, MISSING, task.missing),))
            else:
                admitted = self.feasible(task, future=True)
                self.spend(EXPLAIN * int(np.count_nonzero(~admitted)))
                inside = None if self.domain is None else self.domain.mask
                left = self.amounts(future=True)[0] - self._slots(task)[:, None] * self._nodes.held(task)
                why = no_node(self._nodes, self._hooks, task, admitted, left, inside=inside)
            known = (len(self._nodes.touched), why)
            if not is_own:
                self._refusals[kind] = known
        return msgspec.structs.replace(known[1], task=task.key)

    def explain_node(self, task: Task, node: NodeInfo) -> NodeUnfit:
        """Return why this node does not fit the task, now or later in this cycle."""
        if task.missing:
            return NodeUnfit(node.name, MISSING, task.missing)
        return unfit(self._nodes, self._hooks, task, node, self.admits(task, node, future=True))

    def slots(self, task: Task, wanted: int) -> int:
        """Return how many equal tasks find room, now or after releasing tasks have left.

        A result below `wanted` is exact; otherwise more may fit. Not valid for tasks with inter-pod constraints.
        """
        fitting = self._ranking(task, future=False).fitting_nodes
        if fitting >= wanted:
            return fitting
        slots = self._slots(task)
        return int(slots.sum() if self.domain is None else slots[self.domain.rows].sum())

    def slots_by_row(self, task: Task, *, future: bool) -> Rows:
        """Return how many equal tasks find room on each node, in any domain; inter-pod constraints are not checked."""
        return self._slots(task) if future else self.slots_in(task, self.amounts(future=False)[0])

    def slots_in(self, task: Task, available: Amounts) -> Rows:
        """Return how many equal tasks find room on each node if `available` is free; see `slots_by_row`."""
        with self.inside(None):
            static = self.static(task)
        return np.where(static, times(self._nodes, task, available), 0)

    def slots_now(self, waiting: Sequence[Task]) -> int:
        """Return how many of these tasks would find room now if they were not pipelined.

        The tasks are pipelined and of one shape. The result is an upper bound: neighbours are not checked.
        """
        found = times(self._nodes, waiting[0], without(self._nodes, waiting))
        return int(found[self.static(waiting[0])].sum())

    def _slots(self, task: Task) -> Rows:
        kind = self.kind(task)
        known = self._slot_counts.get(kind)
        if known is None or known[0] != len(self._nodes.touched):
            counts = self.slots_in(task, self.amounts(future=True)[0])
            known = self._slot_counts[kind] = (len(self._nodes.touched), counts)
        return known[1]

    # --------------------------------------------------------------------------------------------------------- choice

    def has_inter_pod_constraints(self, task: Task) -> bool:
        """Whether each placement of such a task changes the result for the next one.

        All tasks of a shape have the same answer while no pod on a node has anti-affinity or preferences.
        """
        if self._nodes.with_pod_terms:
            return self._is_constrained_by_pods(task)
        kind = self.kind(task)
        constrained = self._are_constrained.get(kind)
        if constrained is None:
            constrained = self._are_constrained[kind] = self._is_constrained_by_pods(task)
        return constrained

    def _is_constrained_by_pods(self, task: Task) -> bool:
        return self.neighbours(task) is not None or self._pod_score(task) is not None

    def best(self, task: Task, *, future: bool = False) -> NodeInfo | None:
        """Return the best node with room for the task; None if there is none."""
        self.spend(100)
        constrained = bool(self._nodes.with_pod_terms) or self.has_inter_pod_constraints(task)
        neighbours = self.neighbours(task, future=future) if constrained else None
        pod_score = self._pod_score(task) if constrained else None
        if neighbours is None and pod_score is None:
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
        """Return nodes for `count` equal tasks, placed one after the other; fewer if there is not enough room.

        For a task with inter-pod constraints the plan ends after the first task: the caller must plan the rest again.
        """
        if count == 1 or self.has_inter_pod_constraints(task):
            node = self.best(task, future=future)
            return [] if node is None else [node]
        rows = self._ranking(task, future=future).rows_for(count)
        return [self._nodes.rows[row] for row in rows]

    def _ranking(self, task: Task, *, future: bool) -> Ranking:
        key = (self._kind_in_domain(task), future)
        ranking = self._rankings.get(key)
        if ranking is None:
            self.spend(100 + len(self._nodes.rows) // 4)
            ranking = self._rankings[key] = Ranking(self, self._nodes, task, future=future)
        ranking.refresh()
        return ranking
