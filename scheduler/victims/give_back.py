"""Giving back victims that nobody needs.

The one rule: a victim stays a victim only if without it some placement of the claim would not stand. The best
protected are given back first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

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
    """The check, over the placements of a claim so far. ``by_quota``: some victims went for the queue's sake."""

    def __init__(self, claim: Claim, statement: Statement) -> None:
        self._claim = claim
        self._session = claim.session
        self._statement = statement
        self._placed: list[tuple[Task, NodeInfo]] = []
        self._rows: set[int] = set()
        self._shapes: dict[bytes, Task] = {}
        self.by_quota = False

    def placed(self, task: Task, node: NodeInfo) -> None:
        """Take note of a placement that has to stand."""
        self._placed.append((task, node))
        self._rows.add(node.row)
        self._shapes[task.shape] = task

    def unneeded(self, victims: Sequence[E]) -> list[E]:
        """Give back those that are not needed; the rest, in their order."""
        placement = self._session.placement
        minding = {shape for shape, task in self._shapes.items() if placement.neighbours(task, future=True) is not None}
        kept = list(victims)
        for victim in sorted(victims, key=lambda v: v.option.rank, reverse=True):
            if not _leaves_part(victim, kept) and self._can_stay(victim, minding):
                kept.remove(victim)
        return kept

    def _can_stay(self, victim: Evicted, minding: set[bytes]) -> bool:
        if not self._leaves_room(victim.tasks):
            return False
        savepoint = self._statement.savepoint()
        for task in victim.tasks:
            self._statement.restore(task)
        if self._stands(minding):
            return True
        self._statement.rollback(savepoint)
        return False

    def _leaves_room(self, back: Sequence[Task]) -> bool:
        """Whether the placements have room on their nodes with the tasks ``back``."""
        nodes = self._session.nodes
        amounts: dict[int, Vector] = {}
        for task in back:
            info = nodes.by_name.get(task.node)
            if info is not None and info.row in self._rows:
                held = nodes.held(task)
                amounts[info.row] = amounts[info.row] + held if info.row in amounts else held
        for row, amount in amounts.items():
            left = nodes.idle[row] + nodes.releasing[row] - nodes.pipelined[row] - amount
            if bool(((left < -EPSILON) & (amount > 0)).any()):
                return False
        return True

    def _stands(self, minding: set[bytes]) -> bool:
        """Whether every placement still holds as far as neighbours and the queue's limits go."""
        if minding and not all(
            self._without(task, self._is_admitted, node) for task, node in self._placed if task.shape in minding
        ):
            return False
        return not self.by_quota or all(self._without(task, self._is_allocatable) for task in self._shapes.values())

    def _is_admitted(self, task: Task, node: NodeInfo) -> bool:
        return self._session.placement.admits(task, node, future=True)

    def _is_allocatable(self, task: Task) -> bool:
        return self._session.hooks.all_agree("allocatable", self._claim.queue, task)

    def _without(self, task: Task, question: Callable[..., bool], *more: NodeInfo) -> bool:
        """Ask a question about a placed task as if it were not placed yet."""
        savepoint = self._statement.savepoint()
        self._statement.restore(task)
        try:
            return question(task, *more)
        finally:
            self._statement.rollback(savepoint)


def _leaves_part(victim: Evicted, victims: Sequence[Evicted]) -> bool:
    """Whether the victim was spare in a gang the rest of which has had to go too: alone it is a gang in part."""
    job = victim.option.job
    return not victim.option.whole and any(other.option.whole and other.option.job == job for other in victims)
