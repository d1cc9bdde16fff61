"""Giving back victims that nobody needs.

The one rule: a victim stays a victim only if without it some placement of the claim would not stand. The best
protected are given back first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np

from scheduler.model.nodes import NodeInfo, Vector
from scheduler.model.resources import EPSILON
from scheduler.model.task import Task
from scheduler.statement import Statement
from scheduler.victims.claim import Claim
from scheduler.victims.cover import Option


class Evicted(Protocol):
    """A unit that was evicted."""

    @property
    def tasks(self) -> tuple[Task, ...]: ...

    @property
    def option(self) -> Option: ...


E = TypeVar("E", bound=Evicted)


class GiveBack:
    """The check, over the placements that the claim has made so far.

    ``by_quota``: some victims went for the queue's sake.
    """

    def __init__(self, claim: Claim, statement: Statement, placed: list[tuple[Task, NodeInfo]]) -> None:
        self._claim = claim
        self._session = claim.session
        self._statement = statement
        self._placed = placed
        self.by_quota = False

    def unneeded(self, victims: Sequence[E]) -> list[E]:
        """Give back those that are not needed; the rest, in their order."""
        rows = {node.row for _, node in self._placed}
        minding = [
            (task, node)
            for task, node in self._placed
            if self._session.placement.neighbours(task, future=True) is not None
        ]
        kept = list(victims)
        for victim in sorted(victims, key=lambda v: v.option.rank, reverse=True):
            if self._can_stay(victim, rows, minding):
                kept.remove(victim)
        return kept

    def _can_stay(self, victim: Evicted, rows: set[int], minding: list[tuple[Task, NodeInfo]]) -> bool:
        nodes = self._session.nodes
        back: dict[int, Vector] = {}
        for task in victim.tasks:
            info = nodes.by_name.get(task.node)
            if info is not None and info.row in rows:
                back[info.row] = back.get(info.row, np.zeros(nodes.idle.shape[1])) + nodes.held(task)
        for row, amount in back.items():
            left = nodes.idle[row] + nodes.releasing[row] - nodes.pipelined[row] - amount
            if bool(((left < -EPSILON) & (amount > 0)).any()):
                return False
        savepoint = self._statement.savepoint()
        for task in victim.tasks:
            self._statement.restore(task)
        if self._stands(minding):
            return True
        self._statement.rollback(savepoint)
        return False

    def _stands(self, minding: list[tuple[Task, NodeInfo]]) -> bool:
        """Whether every placement still holds as far as neighbours and the queue's limits go."""
        placement, hooks = self._session.placement, self._session.hooks
        if not all(
            self._without(task, lambda t, n=node: placement.admits(t, n, future=True)) for task, node in minding
        ):
            return False
        if not self.by_quota:
            return True
        shapes = {task.shape: task for task, _ in self._placed}
        return all(
            self._without(task, lambda t: hooks.all_agree("allocatable", self._claim.queue, t))
            for task in shapes.values()
        )

    def _without(self, task: Task, question: Callable[[Task], bool]) -> bool:
        """Ask a question about a placed task as if it were not placed yet."""
        savepoint = self._statement.savepoint()
        self._statement.restore(task)
        try:
            return bool(question(task))
        finally:
            self._statement.rollback(savepoint)
