"""pdb: respect disruption budgets when victims are chosen (semantics: Volcano's `plugins/pdb`).

A namespace's budgets are matched with its own pods only, once for all pods with equal labels. If the budgets of a
namespace have more parts than `MOST_PARTS`, none of its pods is a victim: preemptors of other namespaces do not pay for
matching them, and a single budget that allows nothing would protect the pods as well.

A budget permits as many victims as `status.disruptionsAllowed` says, and pods that this scheduler is evicting count.
Unlike in Volcano, a pod without labels is no exception: budgets whose selector matches everything cover it, and no
other budget does.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ..framework.plugin import Plugin
from ..framework.session import Session
from ..model.matching import selector_matches
from ..model.objects import LabelSelector, PodDisruptionBudget
from ..model.task import Task, TaskStatus
from ..policy.hooks import Preemptable, PreemptUnit, Reclaimable, ReclaimUnit, Vote
from ..reasons import Protected, ProtectedBy, Protection

MOST_PARTS = 1_000
"""The maximum number of labels, expressions and values in all budgets of a namespace; plus one for each budget."""


class Pdb(Plugin, Reclaimable, Preemptable, ReclaimUnit, PreemptUnit):
    """Respect disruption budgets."""

    name = "pdb"
    judges_equals_alike = True
    judges_priorities_alike = True

    def open(self, session: Session) -> None:
        self._session = session
        self._by_namespace: dict[str, list[tuple[str, PodDisruptionBudget]]] = {}
        for key, budget in sorted(session.cluster.budgets.items()):
            self._by_namespace.setdefault(budget.metadata.namespace, []).append((key, budget))
        self._unread = {name for name, budgets in self._by_namespace.items() if _is_too_much(budgets)}
        self._known: dict[Hashable, list[str]] = {}

    def reclaimable(self, preemptor: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:  # noqa: ARG002
        """Return the candidates, in order, that every covering budget still allows."""
        if not self._by_namespace:
            return list(candidates), Vote.PERMIT
        budgets, taken = self._session.cluster.budgets, dict[str, int]()
        leaving = {task.uid: task for task, *_, reason in self._session.changes.entries if reason is not None}
        for task in leaving.values():
            if task.status is TaskStatus.RELEASING:  # and was not reprieved
                for key in self._covering(task):
                    taken[key] = taken.get(key, 0) + 1
        permitted = []
        for task in candidates:
            if task.namespace in self._unread:
                continue
            covering = self._covering(task)
            if all(budgets[key].status.disruptions_allowed > taken.get(key, 0) for key in covering):
                permitted.append(task)
                for key in covering:
                    taken[key] = taken.get(key, 0) + 1
        return permitted, Vote.PERMIT

    preemptable = reclaimable

    def reclaim_unit(self, preemptor: Task, unit: Sequence[Task]) -> Protection | None:
        """Return the budget that does not allow the eviction of the whole unit; None if all do."""
        permitted = {task.uid for task in self.reclaimable(preemptor, unit)[0]}
        for task in unit:
            if task.uid not in permitted:
                name = next(iter(self._covering(task)), self._by_namespace[task.namespace][0][0])
                allowed = self._session.cluster.budgets[name].status.disruptions_allowed
                return Protected(ProtectedBy.BUDGET, f"{name} ({allowed} allowed)")
        return None

    preempt_unit = reclaim_unit

    def _covering(self, task: Task) -> list[str]:
        """Return the keys of the budgets that cover a task."""
        budgets = self._by_namespace.get(task.namespace)
        if budgets is None or task.namespace in self._unread:
            return []
        known = self._known.get(task.identity)
        if known is None:
            self._session.work.spend(len(budgets))
            labels = task.pod.metadata.labels or {}
            known = [key for key, budget in budgets if selector_matches(budget.spec.selector, labels)]
            self._known[task.identity] = known
        return known


def _is_too_much(budgets: Sequence[tuple[str, PodDisruptionBudget]]) -> bool:
    """Whether matching the budgets of one namespace would cost other namespaces too much."""
    parts = len(budgets)
    for _, budget in budgets:
        if parts > MOST_PARTS:
            break
        parts += _parts_of(budget.spec.selector)
    return parts > MOST_PARTS


def _parts_of(selector: LabelSelector | None) -> int:
    if selector is None:
        return 0
    items = selector.match_expressions or ()
    return len(selector.match_labels or ()) + sum(1 + len(item.values or ()) for item in items)
