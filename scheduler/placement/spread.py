"""Topology spread: pods of a kind in equal numbers over zones, racks or nodes (semantics: kube-scheduler's
``podtopologyspread``).

The one rule: pods on their way out do not count, pods on their way in do.
"""

from __future__ import annotations

import math

import numpy as np

from ..model.nodes import Mask, NodeInfo, Nodes, Vector
from ..model.objects import TopologySpreadConstraint
from ..model.task import Task
from .counts import Counts, Domains, domains_of, per_domain
from .pod_index import PodIndex, labels_of
from .selectors import node_selector_matches, selector_matches, untolerated

HARD = "DoNotSchedule"


class Spread:
    """The spread constraints of pending tasks; for one cycle."""

    def __init__(self, nodes: Nodes, pods: PodIndex) -> None:
        self._nodes = nodes
        self._pods = pods
        self._eligible: dict[tuple[bytes, int], Mask] = {}
        self._allowed: dict[bytes, tuple[int, list[tuple[str, Mask]]]] = {}

    def mask(self, task: Task) -> Mask | None:
        """Nodes on which one more pod like the task breaks no hard constraint; None if it has none."""
        allowed = self._allowed_by_each(task)
        return np.logical_and.reduce([mask for _, mask in allowed]) if allowed else None

    def broken(self, task: Task, node: NodeInfo) -> str:
        """The topology key of the first hard constraint that the node would break; empty if none."""
        return next((key for key, mask in self._allowed_by_each(task) if not mask[node.row]), "")

    def score(self, task: Task, feasible: Mask) -> Vector | None:
        """How well each node serves the soft constraints, 0 to 100; None if the task has none."""
        total: Vector | None = None
        for number, constraint in self._of(task, hard=False):
            self._pods.spend(150)
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
        """The topology keys of the hard constraints, each with the nodes that it allows."""
        if not task.pod.spec.topology_spread_constraints:
            return []
        known, now = self._allowed.get(task.shape), len(self._nodes.touched)
        if known is None or known[0] != now:
            hard = self._of(task, hard=True)
            self._pods.spend(150 * len(hard))
            # a node counts only where it has the labels of all constraints
            keys = {constraint.topology_key for _, constraint in hard}
            labelled = np.ones(len(self._nodes.rows), dtype=np.bool_)
            for key in keys:
                labelled &= domains_of(self._nodes, key) >= 0
            found = [(c.topology_key, self._nodes_allowed(task, number, c, labelled)) for number, c in hard]
            known = self._allowed[task.shape] = (now, found)
        return known[1]

    def _nodes_allowed(self, task: Task, number: int, constraint: TopologySpreadConstraint, labelled: Mask) -> Mask:
        domains, inside = domains_of(self._nodes, constraint.topology_key), self._eligible_for(task, number) & labelled
        counts = np.where(inside, self._count(task, number, constraint), 0.0)
        here = per_domain(domains, counts)
        least = self._least(domains[inside], here[inside], constraint)
        itself = selector_matches(constraint.label_selector, labels_of(task))
        allowed: Mask = (domains >= 0) & (here + float(itself) - least <= constraint.max_skew)
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

        return self._pods.counts(("spread", task.shape, number), weigh).staying()

    def _eligible_for(self, task: Task, number: int) -> Mask:
        """Nodes whose domains count, by the constraint's node affinity and taint policies."""
        key = (task.shape, number)
        known = self._eligible.get(key)
        if known is None:
            spec = task.pod.spec
            constraint = (spec.topology_spread_constraints or [])[number]
            required = spec.affinity.node_affinity.required if spec.affinity and spec.affinity.node_affinity else None
            honours_affinity = (constraint.node_affinity_policy or "Honor") == "Honor"
            honours_taints = constraint.node_taints_policy == "Honor"

            def counts(node: NodeInfo) -> bool:
                if honours_affinity and not (
                    all(node.labels.get(k) == v for k, v in (spec.node_selector or {}).items())
                    and node_selector_matches(required, node)
                ):
                    return False
                taints = node.object.spec.taints if honours_taints else None
                return untolerated(taints, spec.tolerations, ("NoSchedule", "NoExecute")) is None

            known = np.fromiter((counts(node) for node in self._nodes.rows), np.bool_, len(self._nodes.rows))
            self._eligible[key] = known
        return known


def _same_labels(task: Task, constraint: TopologySpreadConstraint) -> list[tuple[str, str]]:
    """``matchLabelKeys``: what else a pod must have in common with the task to be counted."""
    labels = labels_of(task)
    return [(key, labels[key]) for key in constraint.match_label_keys or () if key in labels]
