"""Match pod affinity and anti-affinity (semantics: kube-scheduler's `interpodaffinity`).

All terms of a task for one topology are counted together, and tasks with equal terms share the counts.

Required anti-affinity is checked in both directions: a running pod's term excludes the task just as the task's own term
excludes the pod.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import msgspec
import numpy as np

from ..model.cluster import Cluster
from ..model.matching import selector_matches
from ..model.nodes import Mask, Vector
from ..model.objects import LabelSelector, PodAffinity, PodAffinityTerm
from ..model.task import Task
from .counts import Counts, domains_of, per_domain
from .label_column import VALUES_A_STEP
from .pod_index import ClassCounts, PodIndex, class_of, labels_of

HARD_WEIGHT = 1
"""The weight of a running pod's required affinity as a preference for the task (kube-scheduler's
`hardPodAffinityWeight`).
"""
AFFINITY = "spec.affinity"
ForOthers = Callable[[str], AbstractContextManager[None]]
"""Count the steps that pods of other jobs cause (`Work.for_others`)."""
OTHERS = "the affinity terms of pods on nodes"
"""The cause that a refusal names if the terms of pods on nodes use up their allowance."""
TOO_MUCH = 1 << 40
"""More steps than any job may cost."""
TERM = 3
"""The steps to match one term with one pod, without its expressions."""
FEW = 8
"""Up to this number of classes, the terms of a pod are matched class by class; above it, with all classes at once."""
_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class _EffectsOnTask:
    """Effects of running pods' terms on one task, by topology and by the number of the pods' class.

    `excluding` are the classes whose anti-affinity excludes the task; `preferring` has the weight of each class that
    prefers or avoids it.
    """

    excluding: dict[str, dict[int, float]] = field(default_factory=dict)
    preferring: dict[str, dict[int, float]] = field(default_factory=dict)
    evaluated: int = 0
    """How many of the classes with terms have been evaluated."""


@dataclass(slots=True)
class _EffectsOfClass:
    """Effects of the terms of one class of pods on all classes, by topology."""

    excluded: dict[str, Mask] = field(default_factory=dict)
    preferred: dict[str, Vector] = field(default_factory=dict)


NO_EFFECTS = _EffectsOnTask()


class PodAffinities:
    """Match the terms of pending tasks and of pods on nodes with each other; for one cycle."""

    def __init__(self, cluster: Cluster, pods: PodIndex, for_others: ForOthers) -> None:
        self._cluster = cluster
        self._for_others = for_others
        self._nodes = cluster.nodes
        self._pods = pods
        self._on_task: dict[Hashable, _EffectsOnTask] = {}
        self._of_class: dict[int, _EffectsOfClass] = {}
        self._evaluations: dict[int, int] = {}
        """Class of pods with terms → how many classes it has been matched with."""
        self._masks: dict[Hashable, tuple[int, Mask | None]] = {}
        self._namespaces: dict[bytes, tuple[int, list[str]]] = {}
        self._other_pods: dict[Hashable, dict[str, ClassCounts]] = {}

    def concerns(self, task: Task) -> bool:
        """Whether the task has inter-pod terms, or a pod on a node has a preference that applies to the task."""
        return _has_terms(task) or bool(self._effects_on(task).preferring)

    def mask(self, task: Task, *, future: bool) -> Mask | None:
        """Return the nodes that no required term of the task or of pods there excludes; None if there is no term."""
        affinity = self.affinity_mask(task, future=future)
        anti_affinity = self.anti_affinity_mask(task, future=future)
        if affinity is None or anti_affinity is None:
            return affinity if anti_affinity is None else anti_affinity
        return affinity & anti_affinity

    def affinity_mask(self, task: Task, *, future: bool) -> Mask | None:
        """Return the nodes whose topology domain holds a pod that the task requires."""
        if not _required(task, "pod_affinity"):
            return None
        return self._cached(("affinity", task.shape, future), lambda: self._affinity(task, future=future))

    def anti_affinity_mask(self, task: Task, *, future: bool) -> Mask | None:
        """Return the nodes that neither the task's anti-affinity nor a running pod's anti-affinity excludes."""
        if not self._nodes.with_pod_terms and not _has_terms(task):
            return None
        if self._nodes.with_pod_terms and _has_terms(task) and self._pods.is_full(task):
            self._pods.spend(TOO_MUCH, AFFINITY)
        return self._cached(("anti-affinity", class_of(task), future), lambda: self._anti_affinity(task, future=future))

    def score(self, task: Task, feasible: Mask) -> Vector | None:
        """Return how much the task and the pods near each node prefer each other, 0 to 100; None if all are equal."""
        total = self._add_weights(self._preferred_by_task(task), None)
        if preferring := self._preferring_task(task):
            with self._for_others(OTHERS):
                total = self._add_weights(preferring, total)
        if total is None or not feasible.any():
            return None
        low, high = total[feasible].min(), total[feasible].max()
        if low == high:
            return None
        scaled: Vector = 100.0 * (np.clip(total, low, high) - low) / (high - low)
        return scaled

    def _add_weights(self, found: dict[str, ClassCounts], total: Vector | None) -> Vector | None:
        """Return `total` plus the weights of these pods in each node's domains."""
        for key, counts in found.items():
            self._pods.spend(30, AFFINITY)
            part = per_domain(domains_of(self._nodes, key), counts.present(future=False))
            total = part if total is None else total + part
        return total

    # ---------------------------------------------------------------------------------------------------------- masks

    def _cached(self, key: Hashable, compute: Callable[[], Mask | None]) -> Mask | None:
        """Return a mask that is computed again only after something on the nodes has changed."""
        known, now = self._masks.get(key), len(self._nodes.touched)
        if known is None or known[0] != now:
            self._pods.spend(30, AFFINITY)
            known = self._masks[key] = (now, compute())
        return known[1]

    def _affinity(self, task: Task, *, future: bool) -> Mask:
        terms = _required(task, "pod_affinity")
        self._pods.spend(len(terms), AFFINITY)
        counts = self._pods.counts(
            ("all of", _terms_key(terms, task)),
            lambda: np.logical_and.reduce([self._classes(term, task) for term in terms]),
        )
        present = counts.present(future=future)
        domains = [domains_of(self._nodes, key) for key in sorted({term.topology_key for term in terms})]
        mask: Mask = np.logical_and.reduce([domain >= 0 for domain in domains])
        number = self._pods.number(task)
        if not present.any() and number is not None and counts.weights[number]:
            return mask  # the first task of a group with affinity to itself
        self._pods.spend(30 * len(domains))
        for domain in domains:
            mask &= per_domain(domain, present) > 0
        return mask

    def _anti_affinity(self, task: Task, *, future: bool) -> Mask | None:
        mask = self._without(self._excluded_by_task(task), None, future=future)
        if excluding := self._excluding_task(task):
            with self._for_others(OTHERS):
                mask = self._without(excluding, mask, future=future)
        return mask

    def _without(self, found: dict[str, ClassCounts], mask: Mask | None, *, future: bool) -> Mask | None:
        """Return the nodes of `mask` whose domains have none of these pods."""
        for key, counts in found.items():
            self._pods.spend(30, AFFINITY)
            free: Mask = per_domain(domains_of(self._nodes, key), counts.possible(future=future)) == 0
            mask = free if mask is None else mask & free
        return mask

    # --------------------------------------------------------------------------------------------------------- counts

    def _excluded_by_task(self, task: Task) -> dict[str, ClassCounts]:
        """Return the pods that the task's anti-affinity excludes, by topology."""
        return self._by_topology(task, "any of", _required(task, "pod_anti_affinity"), self._any_of)

    def _any_of(self, terms: list[PodAffinityTerm], task: Task) -> Vector:
        mask: Vector = np.logical_or.reduce([self._classes(term, task) for term in terms])
        return mask

    def _preferred_by_task(self, task: Task) -> dict[str, ClassCounts]:
        """Return the pods that the task prefers, by topology, with weights."""
        preferences = _preferences(task)
        if not preferences:
            return {}
        weights = {id(term): weight for term, weight in preferences}

        def weigh(terms: list[PodAffinityTerm], task: Task) -> Vector:
            total: Vector = np.sum([weights[id(term)] * self._classes(term, task) for term in terms], axis=0)
            return total

        return self._by_topology(task, "preferred", [term for term, _ in preferences], weigh)

    def _by_topology(
        self,
        task: Task,
        what: str,
        terms: list[PodAffinityTerm],
        weigh: Callable[[list[PodAffinityTerm], Task], Vector],
    ) -> dict[str, ClassCounts]:
        if not terms:
            return {}
        known = self._other_pods.get((what, task.shape))
        if known is None:
            alike: dict[str, list[PodAffinityTerm]] = {}
            for term in terms:
                alike.setdefault(term.topology_key, []).append(term)
            known = self._other_pods[what, task.shape] = {
                key: self._pods.counts(
                    (what, _terms_key(some, task)) if what == "any of" else (what, task.shape, key),
                    lambda some=some: weigh(some, task),  # type: ignore[misc]
                )
                for key, some in alike.items()
            }
        return known

    def _excluding_task(self, task: Task) -> dict[str, ClassCounts]:
        """Return the pods whose anti-affinity excludes the task, by topology."""
        return self._of_holders(task, "excluding", self._effects_on(task).excluding)

    def _preferring_task(self, task: Task) -> dict[str, ClassCounts]:
        """Return the pods that prefer the task, by topology, with weights."""
        return self._of_holders(task, "preferring", self._effects_on(task).preferring)

    def _of_holders(self, task: Task, what: str, found: dict[str, dict[int, float]]) -> dict[str, ClassCounts]:
        owner = class_of(task)
        return {
            key: self._pods.counts((what, owner, key), lambda some=some: self._weights(some), as_of=len(some))  # type: ignore[misc]
            for key, some in found.items()
        }

    def _weights(self, known: Mapping[int, float]) -> Vector:
        weights: Counts = np.zeros(len(self._pods.classes))
        for number, weight in known.items():
            weights[number] = weight
        return weights

    def _effects_on(self, task: Task) -> _EffectsOnTask:
        """Return how the terms of pods on nodes affect the task."""
        if not self._nodes.with_pod_terms:
            return NO_EFFECTS
        number = self._pods.number(task)
        effects = self._on_task.setdefault(class_of(task), _EffectsOnTask())
        if effects.evaluated == len(self._pods.holders):
            return effects
        with self._for_others(OTHERS):
            for holder in self._pods.holders[effects.evaluated :]:
                self._evaluations[holder] = self._evaluations.get(holder, 0) + 1
                if self._evaluations[holder] > FEW and number is not None:
                    self._add_from_masks(effects, holder, number)
                else:
                    self._add_one(effects, holder, task)
        effects.evaluated = len(self._pods.holders)
        return effects

    def _add_one(self, effects: _EffectsOnTask, holder: int, task: Task) -> None:
        """Add the effects of one class on the task, without matching other classes."""
        owner = self._pods.classes[holder]
        for term in _required(owner, "pod_anti_affinity"):
            known = effects.excluding.get(term.topology_key)
            if known is not None and holder in known:
                continue  # one matching term is enough
            self._pods.spend(TERM + _values_of(term) // VALUES_A_STEP, AFFINITY)
            if self._matches(term, owner, task):
                effects.excluding.setdefault(term.topology_key, {})[holder] = 1.0
        preferences = [(term, float(HARD_WEIGHT)) for term in _required(owner, "pod_affinity")]
        for term, weight in (*preferences, *_preferences(owner)):
            self._pods.spend(TERM + _values_of(term) // VALUES_A_STEP, AFFINITY)
            if self._matches(term, owner, task):
                preferring = effects.preferring.setdefault(term.topology_key, {})
                preferring[holder] = preferring.get(holder, 0.0) + weight

    def _add_from_masks(self, effects: _EffectsOnTask, holder: int, number: int) -> None:
        """Add the effects of one class on the class `number`, from the masks over all classes."""
        of_class = self._effects_of(holder)
        for key, mask in of_class.excluded.items():
            if mask[number]:
                effects.excluding.setdefault(key, {})[holder] = 1.0
        for key, weights in of_class.preferred.items():
            if weights[number]:
                effects.preferring.setdefault(key, {})[holder] = float(weights[number])

    def _effects_of(self, holder: int) -> _EffectsOfClass:
        of_class = self._of_class.get(holder)
        if of_class is None:
            of_class, owner = _EffectsOfClass(), self._pods.classes[holder]
            for term in _required(owner, "pod_anti_affinity"):
                known = of_class.excluded.get(term.topology_key)
                mask = self._classes(term, owner)
                of_class.excluded[term.topology_key] = mask if known is None else known | mask
            preferences = [(term, float(HARD_WEIGHT)) for term in _required(owner, "pod_affinity")]
            for term, weight in (*preferences, *_preferences(owner)):
                weights = of_class.preferred.setdefault(term.topology_key, np.zeros(len(self._pods.classes)))
                weights += weight * self._classes(term, owner)
            self._of_class[holder] = of_class
        return of_class

    # ---------------------------------------------------------------------------------------------------------- terms

    def _classes(self, term: PodAffinityTerm, owner: Task) -> Mask:
        """Return the classes of pods that a term of `owner` selects.

        `matchLabelKeys` and `mismatchLabelKeys` name labels that must, or must not, have the owner's value. The API
        server merges them into the selector at creation; they are evaluated here in any case.
        """
        pods, own = self._pods, labels_of(owner)
        pods.spend(1, AFFINITY)
        mask = pods.selected(term.label_selector) & pods.in_namespaces(self._namespaces_of(term, owner))
        for key in term.match_label_keys or ():
            if key in own:
                mask &= pods.labelled(key, (own[key],))
        for key in term.mismatch_label_keys or ():
            if key in own:
                mask &= ~pods.labelled(key, (own[key],))
        return mask

    def _matches(self, term: PodAffinityTerm, owner: Task, other: Task) -> bool:
        """Whether a term of `owner` selects `other`; `_classes` computes the same for all classes."""
        if other.namespace not in (term.namespaces or ()):
            if term.namespace_selector is not None:
                if not selector_matches(term.namespace_selector, self._labels_of(other.namespace)):
                    return False
            elif term.namespaces or other.namespace != owner.namespace:
                return False
        own, labels = labels_of(owner), labels_of(other)
        return (
            selector_matches(term.label_selector, labels)
            and all(labels.get(key) == own[key] for key in term.match_label_keys or () if key in own)
            and all(labels.get(key) != own[key] for key in term.mismatch_label_keys or () if key in own)
        )

    def _namespaces_of(self, term: PodAffinityTerm, owner: Task) -> Iterable[str]:
        if term.namespace_selector is None:
            return term.namespaces or (owner.namespace,)
        return (*(term.namespaces or ()), *self._with_labels(term.namespace_selector))

    def _with_labels(self, selector: LabelSelector) -> list[str]:
        """Return the namespaces that have pods on nodes and whose own labels the selector matches."""
        key, names = _encode(selector), self._pods.namespaces
        known = self._namespaces.get(key)
        if known is None or known[0] != len(names):
            parts = len(selector.match_labels or ()) + sum(
                1 + len(item.values or ()) // VALUES_A_STEP for item in selector.match_expressions or ()
            )
            self._pods.spend(len(names) * parts // 2, AFFINITY)
            matching = [name for name in names if selector_matches(selector, self._labels_of(name))]
            known = self._namespaces[key] = (len(names), matching)
        return known[1]

    def _labels_of(self, namespace: str) -> Mapping[str, str]:
        found = self._cluster.namespaces.get(namespace)
        return (found.metadata.labels if found else None) or {}


def _part(task: Task, kind: str) -> PodAffinity | None:
    affinity = task.pod.spec.affinity
    part: PodAffinity | None = getattr(affinity, kind) if affinity else None
    return part


def _required(task: Task, kind: str) -> list[PodAffinityTerm]:
    part = _part(task, kind)
    return (part.required if part else None) or []


def _preferences(task: Task) -> list[tuple[PodAffinityTerm, float]]:
    """Return the preferences of a task with their weights."""
    return [
        (item.pod_affinity_term, sign * item.weight)
        for kind, sign in (("pod_affinity", 1.0), ("pod_anti_affinity", -1.0))
        if (part := _part(task, kind)) is not None
        for item in part.preferred or ()
    ]


def _has_terms(task: Task) -> bool:
    return _part(task, "pod_affinity") is not None or _part(task, "pod_anti_affinity") is not None


def _values_of(term: PodAffinityTerm) -> int:
    """Return how many values have to be compared to match one term with a pod."""
    found = len(term.namespaces or ())
    for selector in (term.label_selector, term.namespace_selector):
        if selector is not None:
            found += VALUES_A_STEP * len(selector.match_labels or ())
            for item in selector.match_expressions or ():
                found += VALUES_A_STEP + len(item.values or ())
    return found


def _terms_key(terms: list[PodAffinityTerm], owner: Task) -> Hashable:
    """Return a key that is equal for tasks with equivalent terms."""
    own = labels_of(owner)
    keys = sorted(
        {key for term in terms for key in (*(term.match_label_keys or ()), *(term.mismatch_label_keys or ()))}
    )
    return (*sorted(map(_encode, terms)), owner.namespace, *((key, own.get(key)) for key in sorted(keys)))
