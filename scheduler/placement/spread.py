"""Spread pods evenly over zones, racks or nodes (semantics: kube-scheduler's `podtopologyspread`).

Pipelined pods count, releasing pods do not.
"""

from __future__ import annotations

import math

import numpy as np

from ..model.matching import selector_matches
from ..model.nodes import Mask, NodeInfo, Nodes, Vector
from ..model.objects import TopologySpreadConstraint
from ..model.task import Task
from .counts import Counts, Domains, domains_of, per_domain
from .label_column import VALUES_A_STEP
from .node_index import HARD_TAINTS, NODE_AFFINITY, TOLERATIONS, NodeIndex, Tolerations, mask_of, steps_of
from .pod_index import PodIndex, labels_of

HARD = "DoNotSchedule"
FIELD = "spec.topologySpreadConstraints"


class Spread:
    """Evaluate the topology spread constraints of pending tasks; for one cycle."""

    def __init__(self, nodes: Nodes, pods: PodIndex) -> None:
        self._nodes = nodes
        self._pods = pods
        self._eligible: dict[tuple[bytes, bool, bool], Mask] = {}
        self._allowed: dict[bytes, tuple[int, list[tuple[str, Mask]]]] = {}

    def mask(self, task: Task) -> Mask | None:
        """Return the nodes on which the task violates no hard constraint; None if it has none."""
        allowed = self._allowed_by_each(task)
        return np.logical_and.reduce([mask for _, mask in allowed]) if allowed else None

    def violated(self, task: Task, node: NodeInfo) -> str:
        """Return the topology key of the first hard constraint that the node would violate; empty if there is none."""
        return next((key for key, mask in self._allowed_by_each(task) if not mask[node.row]), "")

    def score(self, task: Task, feasible: Mask) -> Vector | None:
        """Return how well each node meets the soft constraints, 0 to 100; None if the task has none."""
        total: Vector | None = None
        for number, constraint in self._of(task, hard=False):
            self._pods.spend(150, FIELD)
            domains = domains_of(self._nodes, constraint.topology_key)
            present = np.unique(domains[feasible & (domains >= 0)])
            weight = math.log(len(present) + 2)
            part = per_domain(domains, self._count(task, number, constraint)) * weight + (constraint.max_skew - 1)
            total = part if total is None else total + part
        if total is None or not feasible.any():
            return None
        low, high = total[feasible].min(), total[feasible].max()
        return np.full(len(total), 100.0) if high == 0 else 100.0 * (high + low - total) / high

    def _allowed_by_each(self, task: Task) -> list[tuple[str, Mask]]:
        """Return the topology keys of the hard constraints, each with the nodes that it allows."""
        if not task.pod.spec.topology_spread_constraints:
            return []
        known, now = self._allowed.get(task.shape), len(self._nodes.touched)
        if known is None or known[0] != now:
            hard, index = self._of(task, hard=True), NodeIndex.of(self._nodes)
            satisfiable = sum(index.has_label(constraint.topology_key) for _, constraint in hard)
            self._pods.spend(149 * satisfiable + len(hard), FIELD)
            # only nodes with the labels of all constraints count
            keys = {constraint.topology_key for _, constraint in hard}
            labelled = np.ones(len(self._nodes.rows), dtype=np.bool_)
            for key in keys:
                labelled &= domains_of(self._nodes, key) >= 0
            nowhere = np.zeros(len(self._nodes.rows), dtype=np.bool_)
            found = [
                (
                    c.topology_key,
                    self._nodes_allowed(task, number, c, labelled) if index.has_label(c.topology_key) else nowhere,
                )
                for number, c in hard
            ]
            known = self._allowed[task.shape] = (now, found)
        return known[1]

    def _nodes_allowed(self, task: Task, number: int, constraint: TopologySpreadConstraint, labelled: Mask) -> Mask:
        domains = domains_of(self._nodes, constraint.topology_key)
        inside = self._eligible_for(task, constraint) & labelled
        counts = np.where(inside, self._count(task, number, constraint), 0.0)
        here = per_domain(domains, counts)
        least = self._least(domains[inside], here[inside], constraint)
        counts_itself = selector_matches(constraint.label_selector, labels_of(task))
        allowed: Mask = (domains >= 0) & (here + float(counts_itself) - least <= constraint.max_skew)
        return allowed

    @staticmethod
    def _least(domains: Domains, here: Counts, constraint: TopologySpreadConstraint) -> float:
        if not len(domains) or len(np.unique(domains)) < (constraint.min_domains or 1):
            return 0.0
        return float(here.min())

    def _of(self, task: Task, *, hard: bool) -> list[tuple[int, TopologySpreadConstraint]]:
        constraints = task.pod.spec.topology_spread_constraints or ()
        return [(i, c) for i, c in enumerate(constraints) if (c.when_unsatisfiable == HARD) is hard]

    def _count(self, task: Task, number: int, constraint: TopologySpreadConstraint) -> Counts:
        def weigh() -> Mask:
            pods = self._pods
            mask = pods.selected(constraint.label_selector) & pods.in_namespaces((task.namespace,))
            for key, value in _same_labels(task, constraint):
                mask &= pods.labelled(key, (value,))
            return mask

        return self._pods.counts(("spread", task.shape, number), weigh).remaining()

    def _eligible_for(self, task: Task, constraint: TopologySpreadConstraint) -> Mask:
        """Return the nodes that count, by the constraint's node affinity and taint policies.

        The result depends only on the pod and the two policies: all constraints of a pod share at most four results.
        """
        honours_affinity = (constraint.node_affinity_policy or "Honor") == "Honor"
        honours_taints = constraint.node_taints_policy == "Honor"
        key = (task.shape, honours_affinity, honours_taints)
        known = self._eligible.get(key)
        if known is None:
            spec, index = task.pod.spec, NodeIndex.of(self._nodes)
            known = np.ones(len(self._nodes.rows), dtype=np.bool_)
            if honours_affinity:
                required = spec.affinity and spec.affinity.node_affinity and spec.affinity.node_affinity.required
                self._pods.spend(steps_of(required or None, self._nodes), NODE_AFFINITY)
                known = index.labelled(spec.node_selector or {}) & index.selected(required or None)
            if honours_taints:
                self._pods.spend(len(spec.tolerations or ()) // VALUES_A_STEP, TOLERATIONS)
                tolerations = Tolerations(spec.tolerations)
                known = known & mask_of(
                    self._nodes, lambda node: tolerations.uncovered(node.object.spec.taints, HARD_TAINTS) is None
                )
            self._eligible[key] = known
        return known


def _same_labels(task: Task, constraint: TopologySpreadConstraint) -> list[tuple[str, str]]:
    """Return the labels of `matchLabelKeys` that a pod must share with the task to be counted."""
    labels = labels_of(task)
    return [(key, labels[key]) for key in constraint.match_label_keys or () if key in labels]
