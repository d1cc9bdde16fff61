"""Pods that want, or do not want, to be near other pods (semantics: kube-scheduler's ``interpodaffinity``).

The one rule: who does not want company is asked on both sides: a running pod's required anti-affinity keeps others
away as much as the other's own does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..model.cluster import Cluster
from ..model.nodes import Mask, Vector
from ..model.objects import PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from ..model.task import Task
from .counts import PodCounts, domains_of, per_domain
from .selectors import selector_matches

HARD_WEIGHT = 1
"""What a running pod's required affinity is worth as a preference of others for it (kube-scheduler's
``hardPodAffinityWeight``).
"""


@dataclass(slots=True)
class _Spoken:
    """Terms of pods on nodes that speak of a task, each with one of the pods that have it."""

    unwanted: list[tuple[str, Task]] = field(default_factory=list)
    liked: list[tuple[str, float, Task]] = field(default_factory=list)


NOTHING = _Spoken()


class PodAffinities:
    """The terms of pending tasks against the pods on nodes, and the other way round; for one cycle."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._nodes = cluster.nodes
        self._counts: dict[tuple[str, bytes], PodCounts] = {}
        self._spoken: dict[bytes, _Spoken] = {}
        self._shapes_seen: set[bytes] = set()

    def concerns(self, task: Task) -> bool:
        """Whether the task has such terms, or anyone on a node has preferences that speak of it."""
        return _has_terms(task) or bool(self._spoken_of(task).liked)

    def mask(self, task: Task, *, future: bool) -> Mask | None:
        """Nodes that neither the task's required terms nor those of pods there exclude; None if there are none."""
        result: Mask | None = None
        for objection in (self.affinity_mask, self.anti_affinity_mask):
            mask = objection(task, future=future)
            if mask is not None:
                result = mask if result is None else result & mask
        return result

    def affinity_mask(self, task: Task, *, future: bool) -> Mask | None:
        """Nodes with the company that the task requires."""
        terms = _required(task, "pod_affinity")
        if not terms:
            return None
        counts = self._other_pods("affinity", task, terms)
        present = counts.present(future=future)
        mask = np.ones(len(present), dtype=np.bool_)
        for term in terms:
            mask &= domains_of(self._nodes, term.topology_key) >= 0
        if not present.any() and all(self._matches(term, task, task) for term in terms):
            return mask  # the first of a group that wants to be together
        for term in terms:
            mask &= per_domain(domains_of(self._nodes, term.topology_key), present) > 0
        return mask

    def anti_affinity_mask(self, task: Task, *, future: bool) -> Mask | None:
        """Nodes without the company that the task, or someone there, does not stand."""
        mask: Mask | None = None
        for number, term in enumerate(_required(task, "pod_anti_affinity")):
            counts = self._other_pods(f"anti{number}", task, [term])
            mask = self._without(mask, term.topology_key, counts, future=future)
        for key, other in self._spoken_of(task).unwanted:
            mask = self._without(mask, key, self._holders(other), future=future)
        return mask

    def score(self, task: Task, feasible: Mask) -> Vector | None:
        """How much the company on each node is liked, by the task and by those there, 0 to 100."""
        total: Vector | None = None
        for kind, sign in (("pod_affinity", 1), ("pod_anti_affinity", -1)):
            for number, item in enumerate(_preferred(task, kind)):
                term = item.pod_affinity_term
                counts = self._other_pods(f"{kind}{number}", task, [term])
                total = self._add(total, term.topology_key, counts, sign * item.weight)
        for key, weight, other in self._spoken_of(task).liked:
            total = self._add(total, key, self._holders(other), weight)
        if total is None or not feasible.any():
            return None
        low, high = total[feasible].min(), total[feasible].max()
        if low == high:
            return None
        scaled: Vector = 100.0 * (np.clip(total, low, high) - low) / (high - low)
        return scaled

    # ---------------------------------------------------------------------------------------------------------- parts

    def _spoken_of(self, task: Task) -> _Spoken:
        """What the terms of pods on nodes say of the task; looked up anew only when a pod with other terms came or
        went.
        """
        if self._shapes_seen != self._nodes.minding.keys():
            self._shapes_seen = set(self._nodes.minding)
            self._spoken.clear()
        if not self._shapes_seen:
            return NOTHING
        key = task.shape if _labels_count(task) else _identity(task)
        known = self._spoken.get(key)
        if known is None:
            known = self._spoken[key] = _Spoken()
            for _, alike in sorted(self._nodes.minding.items()):
                self._listen(known, next(iter(alike.values())), task)
        return known

    def _listen(self, spoken: _Spoken, other: Task, task: Task) -> None:
        """Add what the terms of ``other``, one of its shape, say of the task."""
        for term in _required(other, "pod_anti_affinity"):
            if self._matches(term, other, task):
                spoken.unwanted.append((term.topology_key, other))
        wishes = [(term, float(HARD_WEIGHT)) for term in _required(other, "pod_affinity")]
        for kind, sign in (("pod_affinity", 1.0), ("pod_anti_affinity", -1.0)):
            wishes += [(item.pod_affinity_term, sign * item.weight) for item in _preferred(other, kind)]
        for term, weight in wishes:
            if self._matches(term, other, task):
                spoken.liked.append((term.topology_key, weight, other))

    def _other_pods(self, what: str, task: Task, terms: list[PodAffinityTerm]) -> PodCounts:
        """Pods that all of some terms of the task speak of; ``what`` names those terms among the task's."""
        return self._count(what, task, lambda other: all(self._matches(term, task, other) for term in terms))

    def _holders(self, other: Task) -> PodCounts:
        return self._count("holders", other, lambda task: task.shape == other.shape)

    def _count(self, what: str, task: Task, matches: Callable[[Task], bool]) -> PodCounts:
        key = (what, task.shape)
        counts = self._counts.get(key)
        if counts is None:
            counts = self._counts[key] = PodCounts(self._nodes, matches)
        return counts

    def _without(self, mask: Mask | None, topology_key: str, counts: PodCounts, *, future: bool) -> Mask:
        free: Mask = per_domain(domains_of(self._nodes, topology_key), counts.possible(future=future)) == 0
        return free if mask is None else mask & free

    def _add(self, total: Vector | None, topology_key: str, counts: PodCounts, weight: float) -> Vector:
        part = weight * per_domain(domains_of(self._nodes, topology_key), counts.present(future=False))
        return part if total is None else total + part

    def _matches(self, term: PodAffinityTerm, owner: Task, other: Task) -> bool:
        """Whether a term of ``owner`` speaks of ``other``."""
        if not self._in_namespaces(term, owner, other):
            return False
        labels = other.pod.metadata.labels or {}
        return selector_matches(term.label_selector, labels) and _key_labels_agree(term, owner, labels)

    def _in_namespaces(self, term: PodAffinityTerm, owner: Task, other: Task) -> bool:
        if term.namespaces and other.namespace in term.namespaces:
            return True
        if term.namespace_selector is not None:
            namespace = self._cluster.namespaces.get(other.namespace)
            labels = (namespace.metadata.labels if namespace else None) or {}
            return selector_matches(term.namespace_selector, labels)
        return not term.namespaces and other.namespace == owner.namespace


def _part(task: Task, kind: str) -> PodAffinity | None:
    affinity = task.pod.spec.affinity
    part: PodAffinity | None = getattr(affinity, kind) if affinity else None
    return part


def _required(task: Task, kind: str) -> list[PodAffinityTerm]:
    part = _part(task, kind)
    return (part.required if part else None) or []


def _preferred(task: Task, kind: str) -> list[WeightedPodAffinityTerm]:
    part = _part(task, kind)
    return (part.preferred if part else None) or []


def _has_terms(task: Task) -> bool:
    return _part(task, "pod_affinity") is not None or _part(task, "pod_anti_affinity") is not None


def _key_labels_agree(term: PodAffinityTerm, owner: Task, labels: Mapping[str, str]) -> bool:
    """``matchLabelKeys`` and ``mismatchLabelKeys``: labels that must be, or must not be, those of the term's owner.

    The API server lays them into the selector of what is created through it; here they count in any case.
    """
    own = owner.pod.metadata.labels or {}
    return all(labels.get(key) == own[key] for key in term.match_label_keys or () if key in own) and all(
        labels.get(key) != own[key] for key in term.mismatch_label_keys or () if key in own
    )


def _labels_count(task: Task) -> bool:
    """Whether the task's shape tells its labels and namespace."""
    return _has_terms(task) or bool(task.pod.spec.topology_spread_constraints)


def _identity(task: Task) -> bytes:
    """What other pods' terms can see of a task whose shape does not tell it."""
    labels = sorted((task.pod.metadata.labels or {}).items())
    return repr((task.namespace, labels)).encode()
