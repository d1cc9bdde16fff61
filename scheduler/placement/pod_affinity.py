"""Pods that want, or do not want, to be near other pods (semantics: kube-scheduler's ``interpodaffinity``).

The one rule: anti-affinity is asked on both sides: a running pod's required anti-affinity keeps others
away as much as the other's own does. All terms of a task about one topology are counted together, and tasks with equal
terms share the counts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec
import numpy as np

from ..model.cluster import Cluster
from ..model.nodes import Mask, Vector
from ..model.objects import LabelSelector, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from ..model.task import Task
from .counts import Counts, domains_of, per_domain
from .pod_index import ClassCounts, PodIndex, class_of, labels_of
from .selectors import selector_matches

HARD_WEIGHT = 1
"""What a running pod's required affinity is worth as a preference of others for it (kube-scheduler's
``hardPodAffinityWeight``).
"""
FEW = 8
"""So many classes are told apart one by one what the terms of another say of them; for more, all at once is cheaper."""
_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class _Spoken:
    """What the terms of pods on nodes say of a task, by topology: whose pods do not want it near, and how much whose
    pods like it. Pods are told by the number of their class.
    """

    unwanted: dict[str, dict[int, float]] = field(default_factory=dict)
    liked: dict[str, dict[int, float]] = field(default_factory=dict)
    heard: int = 0
    """How many of the classes that have terms have been heard."""


@dataclass(slots=True)
class _Says:
    """What the terms of one class of pods say of all classes, by topology."""

    unwanted: dict[str, Mask] = field(default_factory=dict)
    liked: dict[str, Vector] = field(default_factory=dict)


NOTHING = _Spoken()


class PodAffinities:
    """The terms of pending tasks against the pods on nodes, and the other way round; for one cycle."""

    def __init__(self, cluster: Cluster, pods: PodIndex) -> None:
        self._cluster = cluster
        self._nodes = cluster.nodes
        self._pods = pods
        self._spoken: dict[int, _Spoken] = {}
        self._says: dict[int, _Says] = {}
        self._asked: dict[int, int] = {}
        """Class of pods with terms → how many classes have asked what they say."""
        self._masks: dict[Hashable, tuple[int, Mask | None]] = {}
        self._namespaces: dict[bytes, tuple[int, list[str]]] = {}
        self._other_pods: dict[Hashable, dict[str, ClassCounts]] = {}

    def concerns(self, task: Task) -> bool:
        """Whether the task has such terms, or anyone on a node has preferences that speak of it."""
        return _has_terms(task) or bool(self._spoken_of(task).liked)

    def mask(self, task: Task, *, future: bool) -> Mask | None:
        """Nodes that neither the task's required terms nor those of pods there exclude; None if there are none."""
        wanted = self.affinity_mask(task, future=future)
        apart = self.anti_affinity_mask(task, future=future)
        if wanted is None or apart is None:
            return wanted if apart is None else apart
        return wanted & apart

    def affinity_mask(self, task: Task, *, future: bool) -> Mask | None:
        """Nodes whose topology domain holds a pod that the task requires."""
        if not _required(task, "pod_affinity"):
            return None
        return self._kept(("together", task.shape, future), lambda: self._together(task, future=future))

    def anti_affinity_mask(self, task: Task, *, future: bool) -> Mask | None:
        """Nodes where neither the task's anti-affinity nor that of a pod there excludes the other."""
        if not self._nodes.minding and not _has_terms(task):
            return None
        return self._kept(("apart", class_of(task), future), lambda: self._apart(task, future=future))

    def score(self, task: Task, feasible: Mask) -> Vector | None:
        """How much the task and the pods on each node prefer each other, 0 to 100."""
        total: Vector | None = None
        for key, counts in (*self._preferred_by(task).items(), *self._liking(task).items()):
            self._pods.spend(30)
            part = per_domain(domains_of(self._nodes, key), counts.present(future=False))
            total = part if total is None else total + part
        if total is None or not feasible.any():
            return None
        low, high = total[feasible].min(), total[feasible].max()
        if low == high:
            return None
        scaled: Vector = 100.0 * (np.clip(total, low, high) - low) / (high - low)
        return scaled

    # ---------------------------------------------------------------------------------------------------------- masks

    def _kept(self, key: Hashable, compute: Callable[[], Mask | None]) -> Mask | None:
        """A mask, computed anew only when something on the nodes has changed."""
        known, now = self._masks.get(key), len(self._nodes.touched)
        if known is None or known[0] != now:
            self._pods.spend(30)
            known = self._masks[key] = (now, compute())
        return known[1]

    def _together(self, task: Task, *, future: bool) -> Mask:
        terms = _required(task, "pod_affinity")
        counts = self._pods.counts(
            ("all of", _terms_key(terms, task)),
            lambda: np.logical_and.reduce([self._classes(term, task) for term in terms]),
        )
        present = counts.present(future=future)
        domains = [domains_of(self._nodes, key) for key in sorted({term.topology_key for term in terms})]
        mask: Mask = np.logical_and.reduce([domain >= 0 for domain in domains])
        if not present.any() and counts.weights[self._pods.number(task)]:
            return mask  # the first of a group that wants to be together
        self._pods.spend(30 * len(domains))
        for domain in domains:
            mask &= per_domain(domain, present) > 0
        return mask

    def _apart(self, task: Task, *, future: bool) -> Mask | None:
        mask: Mask | None = None
        for key, counts in (*self._kept_away(task).items(), *self._keeping_away(task).items()):
            self._pods.spend(30)
            free: Mask = per_domain(domains_of(self._nodes, key), counts.possible(future=future)) == 0
            mask = free if mask is None else mask & free
        return mask

    # --------------------------------------------------------------------------------------------------------- counts

    def _kept_away(self, task: Task) -> dict[str, ClassCounts]:
        """Pods that the task does not want near, by topology."""
        return self._by_topology(task, "any of", _required(task, "pod_anti_affinity"), self._any_of)

    def _any_of(self, terms: list[PodAffinityTerm], task: Task) -> Vector:
        mask: Vector = np.logical_or.reduce([self._classes(term, task) for term in terms])
        return mask

    def _preferred_by(self, task: Task) -> dict[str, ClassCounts]:
        """Pods by how much the task likes them near, by topology."""
        wishes = _wishes(task)
        if not wishes:
            return {}
        weights = {id(term): weight for term, weight in wishes}

        def worth(terms: list[PodAffinityTerm], task: Task) -> Vector:
            total: Vector = np.sum([weights[id(term)] * self._classes(term, task) for term in terms], axis=0)
            return total

        return self._by_topology(task, "liked", [term for term, _ in wishes], worth)

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

    def _keeping_away(self, task: Task) -> dict[str, ClassCounts]:
        """Pods that do not want the task near, by topology."""
        return self._of_holders(task, "unwanted", self._spoken_of(task).unwanted)

    def _liking(self, task: Task) -> dict[str, ClassCounts]:
        """Pods by how much they like the task near, by topology."""
        return self._of_holders(task, "liking", self._spoken_of(task).liked)

    def _of_holders(self, task: Task, what: str, found: dict[str, dict[int, float]]) -> dict[str, ClassCounts]:
        who = class_of(task)
        return {
            key: self._pods.counts((what, who, key), lambda some=some: self._weights(some), as_of=len(some))  # type: ignore[misc]
            for key, some in found.items()
        }

    def _weights(self, known: Mapping[int, float]) -> Vector:
        weights: Counts = np.zeros(len(self._pods.classes))
        for number, weight in known.items():
            weights[number] = weight
        return weights

    def _spoken_of(self, task: Task) -> _Spoken:
        """What the terms of pods on nodes say of the task."""
        if not self._nodes.minding:
            return NOTHING
        number = self._pods.number(task)
        spoken = self._spoken.setdefault(number, _Spoken())
        for holder in self._pods.holders[spoken.heard :]:
            self._asked[holder] = self._asked.get(holder, 0) + 1
            if self._asked[holder] > FEW:
                self._listen(spoken, holder, number)
            else:
                self._listen_alone(spoken, holder, task)
        spoken.heard = len(self._pods.holders)
        return spoken

    def _listen_alone(self, spoken: _Spoken, holder: int, task: Task) -> None:
        """Add what the terms of one class say of the task, without looking at the other classes."""
        owner = self._pods.classes[holder]
        for term in _required(owner, "pod_anti_affinity"):
            known = spoken.unwanted.get(term.topology_key)
            if known is not None and holder in known:
                continue  # one of them is enough
            self._pods.spend(2)
            if self._matches(term, owner, task):
                spoken.unwanted.setdefault(term.topology_key, {})[holder] = 1.0
        wishes = [(term, float(HARD_WEIGHT)) for term in _required(owner, "pod_affinity")]
        for term, weight in (*wishes, *_wishes(owner)):
            self._pods.spend(2)
            if self._matches(term, owner, task):
                liked = spoken.liked.setdefault(term.topology_key, {})
                liked[holder] = liked.get(holder, 0.0) + weight

    def _listen(self, spoken: _Spoken, holder: int, number: int) -> None:
        """The same from what they say of all classes at once."""
        says = self._said_by(holder)
        for key, mask in says.unwanted.items():
            if mask[number]:
                spoken.unwanted.setdefault(key, {})[holder] = 1.0
        for key, worth in says.liked.items():
            if worth[number]:
                spoken.liked.setdefault(key, {})[holder] = float(worth[number])

    def _said_by(self, holder: int) -> _Says:
        says = self._says.get(holder)
        if says is None:
            says, owner = _Says(), self._pods.classes[holder]
            for term in _required(owner, "pod_anti_affinity"):
                known = says.unwanted.get(term.topology_key)
                mask = self._classes(term, owner)
                says.unwanted[term.topology_key] = mask if known is None else known | mask
            wishes = [(term, float(HARD_WEIGHT)) for term in _required(owner, "pod_affinity")]
            for term, weight in (*wishes, *_wishes(owner)):
                known_worth = says.liked.setdefault(term.topology_key, np.zeros(len(self._pods.classes)))
                known_worth += weight * self._classes(term, owner)
            self._says[holder] = says
        return says

    # ---------------------------------------------------------------------------------------------------------- terms

    def _classes(self, term: PodAffinityTerm, owner: Task) -> Mask:
        """The classes of pods that a term of ``owner`` speaks of.

        ``matchLabelKeys`` and ``mismatchLabelKeys`` are labels that must be, or must not be, those of the owner. The
        API server lays them into the selector of what is created through it; here they count in any case.
        """
        pods, own = self._pods, labels_of(owner)
        mask = pods.selected(term.label_selector) & pods.in_namespaces(self._namespaces_of(term, owner))
        for key in term.match_label_keys or ():
            if key in own:
                mask &= pods.labelled(key, (own[key],))
        for key in term.mismatch_label_keys or ():
            if key in own:
                mask &= ~pods.labelled(key, (own[key],))
        return mask

    def _matches(self, term: PodAffinityTerm, owner: Task, other: Task) -> bool:
        """Whether a term of ``owner`` speaks of ``other``: what :meth:`_classes` says of all classes."""
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
        """The namespaces with pods on nodes whose labels a selector matches."""
        key, names = _encode(selector), self._pods.namespaces
        known = self._namespaces.get(key)
        if known is None or known[0] != len(names):
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


def _preferred(task: Task, kind: str) -> list[WeightedPodAffinityTerm]:
    part = _part(task, kind)
    return (part.preferred if part else None) or []


def _wishes(task: Task) -> list[tuple[PodAffinityTerm, float]]:
    """The preferences of a task, each with what it is worth to it."""
    return [
        (item.pod_affinity_term, sign * item.weight)
        for kind, sign in (("pod_affinity", 1.0), ("pod_anti_affinity", -1.0))
        for item in _preferred(task, kind)
    ]


def _has_terms(task: Task) -> bool:
    return _part(task, "pod_affinity") is not None or _part(task, "pod_anti_affinity") is not None


def _terms_key(terms: list[PodAffinityTerm], owner: Task) -> Hashable:
    """What tasks whose terms come to the same have in common."""
    own = labels_of(owner)
    keys = sorted(
        {key for term in terms for key in (*(term.match_label_keys or ()), *(term.mismatch_label_keys or ()))}
    )
    return (*sorted(map(_encode, terms)), owner.namespace, *((key, own.get(key)) for key in sorted(keys)))
