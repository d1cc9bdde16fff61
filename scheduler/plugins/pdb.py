"""pdb: disruption budgets are kept when victims are chosen (semantics: Volcano's ``plugins/pdb``).

The one rule: a budget gives as many victims as ``status.disruptionsAllowed`` says, pods that are leaving by our doing
counted. Unlike in Volcano a pod without labels is no exception: it is covered by budgets whose selector matches
everything, and by no other.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..framework.plugin import Plugin
from ..framework.session import Session
from ..model.objects import PodDisruptionBudget
from ..model.task import Task, TaskStatus
from ..placement.selectors import selector_matches
from ..policy.hooks import Preemptable, PreemptUnit, Reclaimable, ReclaimUnit, Vote
from ..reasons import Protected, Protection


class Pdb(Plugin, Reclaimable, Preemptable, ReclaimUnit, PreemptUnit):
    """See the module."""

    name = "pdb"

    def open(self, session: Session) -> None:
        self._session = session
        self._budgets = sorted(session.cluster.budgets.items())

    def reclaimable(self, preemptor: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:  # noqa: ARG002
        """The candidates, in their order, as far as every budget that covers them still allows."""
        if not self._budgets:
            return list(candidates), Vote.PERMIT
        left = {key: budget.status.disruptions_allowed for key, budget in self._budgets}
        leaving = {task.uid: task for task, *_, reason in self._session.changes.entries if reason is not None}
        for task in leaving.values():
            if task.status is TaskStatus.RELEASING:  # and was not given back
                for key in self._covering(task):
                    left[key] -= 1
        permitted = []
        for task in candidates:
            covering = self._covering(task)
            if all(left[key] > 0 for key in covering):
                permitted.append(task)
                for key in covering:
                    left[key] -= 1
        return permitted, Vote.PERMIT

    preemptable = reclaimable

    def reclaim_unit(self, preemptor: Task, unit: Sequence[Task]) -> Protection | None:
        """The budget that does not allow all of the unit to go; None if every one does."""
        permitted = {task.uid for task in self.reclaimable(preemptor, unit)[0]}
        for task in unit:
            if task.uid not in permitted:
                return Protected("budget", self._covering(task)[0])
        return None

    preempt_unit = reclaim_unit

    def _covering(self, task: Task) -> list[str]:
        return [key for key, budget in self._budgets if _covers(budget, task)]


def _covers(budget: PodDisruptionBudget, task: Task) -> bool:
    return budget.metadata.namespace == task.namespace and selector_matches(
        budget.spec.selector, task.pod.metadata.labels or {}
    )
