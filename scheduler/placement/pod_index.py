"""Index the pods on nodes by what selectors of other pods can match; for one cycle.

Pods with the same namespace and labels are one class, and a selector is matched with all classes at once, as arrays.
The cost depends on the number of classes, not of pods, and is paid once per cycle, however many tasks use the selector.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

import numpy as np

from ..model.cluster import Cluster
from ..model.nodes import Mask, NodeInfo, Rows, Vector
from ..model.objects import LabelSelector
from ..model.task import COMPLETED, Task, TaskStatus
from .counts import Counts, Tallies
from .label_column import VALUES_A_STEP, LabelColumn

Spend = Callable[..., None]
"""Count steps before they are done, with the field of the pod that causes them (`Work.spend`)."""
Tally = tuple[int, int, int]
"""Pods of a class on a node: present, releasing, pipelined."""
NONE: Tally = (0, 0, 0)
_NO_NAMES = LabelColumn(0, {})
CLASSES_A_STEP = 8
"""How many classes are searched for one label in one step."""
MAX_TERMS = 50_000
"""Maximum number of inter-pod terms of pods on nodes. Namespaces share it max-min fairly, because each term is matched
with the pods of all namespaces, at their cost. A pod waits if its terms would exceed its namespace's share (`is_full`).
Pods that were placed while fewer namespaces had terms keep their terms.
"""
MAX_TERMS_MATCHED = 5 * MAX_TERMS
"""Maximum number of terms that are matched. Another scheduler may place pods beyond `MAX_TERMS`: if a namespace then
exceeds its share of this number, or `MAX_TERMS` alone, none of its terms is matched. Eighty namespaces that use up
their shares one after the other do not reach it.
"""


class PodIndex:
    """Classes of pods, and how many pods of each class are on each node. Built at the first use.

    `classes` holds one pod of each class, pending pods included; the class's number is its position. Pods with
    inter-pod terms share a class only if they have the same shape, so that all pods of a class have the same terms.
    `holders` are the numbers of classes with terms that have, or had in this cycle, pods on nodes.
    """

    def __init__(self, cluster: Cluster, spend: Spend) -> None:
        self._cluster = cluster
        self.spend = spend
        self._nodes = cluster.nodes
        self._is_built = False
        self.classes: list[Task] = []
        self.holders: list[int] = []
        self.changes: list[tuple[int, int, Tally]] = []
        """Class, row, and change of the class's tally there, for each change since the index was built."""
        self._numbers: dict[Hashable, int] = {}
        self._namespaces = _NO_NAMES
        self._by_label: dict[str, LabelColumn] = {}
        """Label → its column, only for labels that selectors of this cycle name: pods may have thousands more."""
        self._named: dict[str, dict[int, str]] = {}
        """Label → its value by class, for the labels that terms of pods on nodes name."""
        self._tallies: list[dict[int, Tally]] = []
        self._first: tuple[Rows, Rows, Counts] = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((3, 0)))
        self._held: set[int] = set()
        self._terms: dict[str, int] = {}
        """Inter-pod terms of the classes in `_held`, by namespace."""
        self._seen = 0
        self._counts: dict[Hashable, tuple[int, ClassCounts]] = {}

    def counts(self, key: Hashable, weigh: Callable[[], Vector | Mask], as_of: int = 0) -> ClassCounts:
        """Return per node the sum of the weights of its pods.

        Args:
            key: calls with an equal key share the result.
            weigh: returns the weight of each class.
            as_of: the shared result is valid while this number is the same.
        """
        known = self._counts.get(key)
        if known is None or known[0] != as_of:
            known = self._counts[key] = (as_of, ClassCounts(self, weigh, len(self._nodes.rows)))
        return known[1]

    def close(self) -> None:
        """Drop the counts, which refer back to the index."""
        self._counts.clear()

    # ------------------------------------------------------------------------------------------------------ selectors

    def in_namespaces(self, names: Iterable[str]) -> Mask:
        """Return the classes of these namespaces."""
        self.refresh()
        distinct = dict.fromkeys(names)
        self.spend(len(distinct) // VALUES_A_STEP)
        return self._namespaces.having(distinct)

    @property
    def namespaces(self) -> list[str]:
        """Return the namespaces that have pods, pending ones included."""
        self.refresh()
        return list(self._namespaces.numbers)

    def selected(self, selector: LabelSelector | None) -> Mask:
        """Return the classes that a label selector matches; an absent one matches nothing, an empty one everything."""
        self.refresh()
        parts = 0 if selector is None else len(selector.match_labels or ()) + len(selector.match_expressions or ())
        self.spend((1 + parts) * (12 + len(self.classes) // 500))
        if selector is None:
            return np.zeros(len(self.classes), dtype=np.bool_)
        mask = np.ones(len(self.classes), dtype=np.bool_)
        for key, value in (selector.match_labels or {}).items():
            mask &= self.labelled(key, (value,))
        for item in selector.match_expressions or ():
            self.spend(len(item.values or ()) // VALUES_A_STEP)
            mask &= self._column(item.key).holding(item)
        return mask

    def labelled(self, key: str, values: Iterable[str]) -> Mask:
        """Return the classes whose label `key` has one of the values."""
        return self._column(key).having(values)

    def _column(self, label: str) -> LabelColumn:
        """Return the values of a label; the pod that names the label first pays for the indexing."""
        known = self._by_label.get(label)
        if known is None:
            found = self._named.get(label)
            if found is None:
                self.spend(len(self.classes) // CLASSES_A_STEP)
                values = ((number, labels_of(task).get(label)) for number, task in enumerate(self.classes))
                found = {number: value for number, value in values if value is not None}
            known = self._by_label[label] = LabelColumn(len(self.classes), found)
        return known

    # ---------------------------------------------------------------------------------------------------------- pods

    def refresh(self) -> None:
        """Recount the nodes that have changed."""
        if not self._is_built:
            self._build()
            return
        touched = self._nodes.touched
        if self._seen == len(touched):
            return
        changed = sorted(set(touched[self._seen :]))
        self.spend(20 * len(changed))
        self._seen = len(touched)
        for row in changed:
            before, now = self._tallies[row], self._tally(self._nodes.rows[row])
            self._tallies[row] = now
            for number in sorted(before.keys() | now.keys()):
                a, b = before.get(number, NONE), now.get(number, NONE)
                if a != b:
                    self._add_holders((number,))
                    self.changes.append((number, row, (b[0] - a[0], b[1] - a[1], b[2] - a[2])))

    def is_full(self, task: Task) -> bool:
        """Whether the task's terms would exceed its namespace's share of `MAX_TERMS`."""
        own = 0 if self.number(task) in self._held else terms_of(task)
        if not own:
            return False
        self.spend(len(self._terms) // VALUES_A_STEP)
        wanted = self._terms.get(task.namespace, 0) + own
        return wanted > fair_share({**self._terms, task.namespace: wanted}.values(), MAX_TERMS)

    def number(self, task: Task) -> int | None:
        """Return the class number of a task; None if no pod is of its class, because its own pod does not exist yet."""
        self.refresh()
        return self._numbers.get(class_of(task))

    def first(self) -> tuple[Rows, Rows, Counts]:
        """Return the tallies when the index was built, as parallel arrays: classes, rows, and tallies [3 x entries]."""
        self.refresh()
        return self._first

    def _build(self) -> None:
        self.spend(2 * len(self._cluster.tasks))
        self._is_built, self._seen = True, len(self._nodes.touched)
        for task in self._cluster.tasks.values():
            self._enter(task)
        of_class = {number: task.namespace for number, task in enumerate(self.classes)}
        self._namespaces = LabelColumn(len(of_class), of_class)
        self._tallies = [self._tally(info) for info in self._nodes.rows]
        entries = [(number, row, tally) for row, known in enumerate(self._tallies) for number, tally in known.items()]
        self._first = (
            np.fromiter((number for number, _, _ in entries), np.int64, len(entries)),
            np.fromiter((row for _, row, _ in entries), np.int64, len(entries)),
            np.array([tally for _, _, tally in entries], dtype=np.float64).reshape(-1, 3).T,
        )
        self._add_holders(dict.fromkeys(number for number, _, _ in entries))
        most = min(fair_share(self._terms.values(), MAX_TERMS_MATCHED), MAX_TERMS)
        self.holders = [number for number in self.holders if self._terms[self.classes[number].namespace] <= most]
        self._index_labels_of_holders()

    def _index_labels_of_holders(self) -> None:
        """Index the labels that terms of pods on nodes name: every pod is matched with these terms."""
        named = {key for number in self.holders for key in _labels_named_by(self.classes[number])}
        self._named = {key: {} for key in named}
        for number, task in enumerate(self.classes):
            labels = labels_of(task)
            for key in named & labels.keys() if named else ():
                self._named[key][number] = labels[key]

    def _add_holders(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if self.classes[number].has_inter_pod_constraints and number not in self._held:
                self._held.add(number)
                self.holders.append(number)
                owner = self.classes[number]
                self._terms[owner.namespace] = self._terms.get(owner.namespace, 0) + terms_of(owner)

    def _enter(self, task: Task) -> None:
        key = class_of(task)
        if key in self._numbers:
            return
        self._numbers[key] = len(self.classes)
        self.classes.append(task)

    def _tally(self, info: NodeInfo) -> dict[int, Tally]:
        found: dict[int, Tally] = {}
        for task in info.tasks.values():
            if task.status & COMPLETED:
                continue
            number = self._numbers[class_of(task)]
            present, releasing, pipelined = found.get(number, NONE)
            if task.status is TaskStatus.PIPELINED:
                found[number] = (present, releasing, pipelined + 1)
            elif task.status is TaskStatus.RELEASING:
                found[number] = (present, releasing + 1, pipelined)
            else:
                found[number] = (present + 1, releasing, pipelined)
        return found


class ClassCounts(Tallies):
    """Sums of the weights of each node's pods: present, releasing and pipelined."""

    def __init__(self, index: PodIndex, weigh: Callable[[], Vector | Mask], rows: int) -> None:
        self._index, self._rows = index, rows
        self._weigh: Callable[[], Vector | Mask] | None = weigh
        self._weights: Vector = np.zeros(0)
        self._counts: Counts = np.zeros((3, rows))
        self._seen = 0

    @property
    def weights(self) -> Vector:
        """Return the weight of each class."""
        self._refresh()
        return self._weights

    def _refresh(self) -> Counts:
        index = self._index
        index.refresh()
        if self._weigh is not None:
            index.spend(50 + len(index.first()[0]) // 50)
            self._weights = self._weigh().astype(np.float64)
            self._weigh = None  # no reference cycle: `weigh` may belong to an object that keeps these counts
            numbers, rows, tallies = index.first()
            weights = self._weights[numbers]
            self._counts = np.stack([np.bincount(rows, weights * tally, self._rows) for tally in tallies]).astype(
                np.float64
            )
        for number, row, change in index.changes[self._seen :]:
            if weight := self._weights[number]:
                self._counts[:, row] += weight * np.array(change)
        self._seen = len(index.changes)
        return self._counts


def class_of(task: Task) -> Hashable:
    """Return the key that tasks of one class share."""
    return task.shape if task.has_inter_pod_constraints else task.identity


def terms_of(task: Task) -> int:
    """Return how many inter-pod terms a task has."""
    affinity = task.pod.spec.affinity
    parts = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    return sum(len(part.required or ()) + len(part.preferred or ()) for part in parts if part is not None)


def fair_share(wanted: Iterable[int], total: float) -> float:
    """Return the maximum for each demand if `total` is shared max-min fairly; `inf` if all demands fit."""
    amounts = sorted(wanted)
    for position, amount in enumerate(amounts):
        share = total / (len(amounts) - position)
        if amount > share:
            return share
        total -= amount
    return math.inf


def _labels_named_by(task: Task) -> Iterator[str]:
    """Yield the labels that the selectors of a task's inter-pod terms name."""
    affinity = task.pod.spec.affinity
    for part in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
        for term in (*(part.required or ()), *(one.pod_affinity_term for one in part.preferred or ())) if part else ():
            yield from (*(term.match_label_keys or ()), *(term.mismatch_label_keys or ()))
            if (selector := term.label_selector) is not None:
                yield from selector.match_labels or ()
                yield from (item.key for item in selector.match_expressions or ())


def labels_of(task: Task) -> Mapping[str, str]:
    return task.pod.metadata.labels or {}
