"""pdb: respect disruption budgets when victims are chosen (semantics: Volcano's `plugins/pdb`).

A namespace's budgets are matched with its own pods only, once for all pods with equal labels. If the budgets of a
namespace have more parts than `MAX_PARTS`, none of its pods is evicted: preemptors of other namespaces must not pay
for the matching, and the namespace gains nothing, because one budget that allows nothing has the same effect.

A budget permits up to `status.disruptionsAllowed` victims; victims of the present cycle count against it.
Unlike in Volcano, pods without labels are no exception: a budget covers them if its selector matches everything.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ..framework.plugin import Covers, Plugin
from ..framework.session import Session
from ..model.matching import selector_matches
from ..model.objects import LabelSelector, PodDisruptionBudget
from ..model.task import Task, TaskStatus
from ..policy.hooks import Evictable, EvictUnit, Vote
from ..reasons import Protected, ProtectedBy, Protection

MAX_PARTS = 1_000
"""Maximum number of parts: labels, expressions and values in all budgets of a namespace, and the budgets themselves."""


class Pdb(Plugin, Evictable, EvictUnit):
    """Respect disruption budgets."""

    name = "pdb"
    refusal_covers = Covers.LOWER_PRIORITIES

    def open(self, session: Session) -> None:
        self._session = session
        self._by_namespace: dict[str, list[tuple[str, PodDisruptionBudget]]] = {}
        for key, budget in sorted(session.cluster.budgets.items()):
            self._by_namespace.setdefault(budget.metadata.namespace, []).append((key, budget))
        self._unmatched = {name for name, budgets in self._by_namespace.items() if _are_too_many(budgets)}
        self._known: dict[Hashable, list[str]] = {}

    def evictable(self, preemptor: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:  # noqa: ARG002
        """Return the candidates whose eviction, one after the other in the given order, all covering budgets allow."""
        if not self._by_namespace:
            return list(candidates), Vote.PERMIT
        budgets, disrupted = self._session.cluster.budgets, dict[str, int]()
        evicted = {task.uid: task for task, *_, reason in self._session.changes.entries if reason is not None}
        for task in evicted.values():
            if task.status is TaskStatus.RELEASING:  # and was not reprieved
                for key in self._covering(task):
                    disrupted[key] = disrupted.get(key, 0) + 1
        permitted = []
        for task in candidates:
            if task.namespace in self._unmatched:
                continue
            covering = self._covering(task)
            if all(budgets[key].status.disruptions_allowed > disrupted.get(key, 0) for key in covering):
                permitted.append(task)
                for key in covering:
                    disrupted[key] = disrupted.get(key, 0) + 1
        return permitted, Vote.PERMIT

    def evict_unit(self, preemptor: Task, unit: Sequence[Task]) -> Protection | None:
        """Return the budget that does not allow the eviction of the whole unit; None if all budgets allow it."""
        permitted = {task.uid for task in self.evictable(preemptor, unit)[0]}
        for task in unit:
            if task.uid not in permitted:
                name = next(iter(self._covering(task)), self._by_namespace[task.namespace][0][0])
                allowed = self._session.cluster.budgets[name].status.disruptions_allowed
                return Protected(ProtectedBy.BUDGET, f"{name} ({allowed} allowed)")
        return None

    def _covering(self, task: Task) -> list[str]:
        """Return the keys of the budgets that cover a task."""
        budgets = self._by_namespace.get(task.namespace)
        if budgets is None or task.namespace in self._unmatched:
            return []
        known = self._known.get(task.identity)
        if known is None:
            self._session.work.spend(len(budgets))
            labels = task.pod.metadata.labels or {}
            known = [key for key, budget in budgets if selector_matches(budget.spec.selector, labels)]
            self._known[task.identity] = known
        return known


def _are_too_many(budgets: Sequence[tuple[str, PodDisruptionBudget]]) -> bool:
    """Whether the budgets of one namespace have more parts than `MAX_PARTS`."""
    parts = len(budgets)
    for _, budget in budgets:
        if parts > MAX_PARTS:
            break
        parts += _parts_of(budget.spec.selector)
    return parts > MAX_PARTS


def _parts_of(selector: LabelSelector | None) -> int:
    if selector is None:
        return 0
    items = selector.match_expressions or ()
    return len(selector.match_labels or ()) + sum(1 + len(item.values or ()) for item in items)
