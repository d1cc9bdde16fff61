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
from .counts import Counts, Domains, PodCounts, domains_of, per_domain
from .selectors import node_selector_matches, selector_matches, untolerated

HARD = "DoNotSchedule"


class Spread:
    """The spread constraints of pending tasks; for one cycle."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._counts: dict[tuple[bytes, int], PodCounts] = {}
        self._eligible: dict[tuple[bytes, int], Mask] = {}

    def mask(self, task: Task) -> Mask | None:
        """Nodes on which one more pod like the task breaks no hard constraint; None if it has none."""
        mask: Mask | None = None
        for number, constraint in self._of(task, hard=True):
            allowed = self._allowed(task, number, constraint)
            mask = allowed if mask is None else mask & allowed
        return mask

    def broken(self, task: Task, node: NodeInfo) -> str:
        """The topology key of the first hard constraint that the node would break; empty if none."""
        for number, constraint in self._of(task, hard=True):
            if not self._allowed(task, number, constraint)[node.row]:
                return constraint.topology_key
        return ""

    def score(self, task: Task, feasible: Mask) -> Vector | None:
        """How well each node serves the soft constraints, 0 to 100; None if the task has none."""
        total: Vector | None = None
        for number, constraint in self._of(task, hard=False):
            domains = domains_of(self._nodes, constraint.topology_key)
            present = np.unique(domains[feasible & (domains >= 0)])
            weight = math.log(len(present) + 2)
            part = per_domain(domains, self._count(task, number, constraint)) * weight + (constraint.max_skew - 1)
            total = part if total is None else total + part
        if total is None or not feasible.any():
            return None
        low, high = total[feasible].min(), total[feasible].max()
        return np.full(len(total), 100.0) if high == 0 else 100.0 * (high + low - total) / high

    def _allowed(self, task: Task, number: int, constraint: TopologySpreadConstraint) -> Mask:
        domains, inside = domains_of(self._nodes, constraint.topology_key), self._eligible_for(task, number)
        for _, other in self._of(task, hard=True):  # a node counts only where it has the labels of all constraints
            inside = inside & (domains_of(self._nodes, other.topology_key) >= 0)
        counts = np.where(inside, self._count(task, number, constraint), 0.0)
        here = per_domain(domains, counts)
        least = self._least(domains[inside], here[inside], constraint)
        itself = selector_matches(constraint.label_selector, task.pod.metadata.labels or {})
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
        counts = self._counts.get((task.shape, number))
        if counts is None:
            selector, namespace = constraint.label_selector, task.namespace
            extra = _same_labels(task, constraint)

            def matches(other: Task) -> bool:
                labels = other.pod.metadata.labels or {}
                return (
                    other.namespace == namespace
                    and selector_matches(selector, labels)
                    and all(labels.get(key) == value for key, value in extra)
                )

            counts = self._counts[task.shape, number] = PodCounts(self._nodes, matches)
        return counts.staying()

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
    labels = task.pod.metadata.labels or {}
    return [(key, labels[key]) for key in constraint.match_label_keys or () if key in labels]
