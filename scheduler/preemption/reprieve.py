"""Giving back victims that nobody needs.

The one rule: a victim stays a victim only if without it some placement would not stand. The best protected are given
back first; who calls says in which order victims are protected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from ..framework.session import Session
from ..framework.statement import Statement
from ..model.nodes import NodeInfo, Vector
from ..model.queue import Queue
from ..model.resources import EPSILON
from ..model.task import Task
from .victim_set import VictimOption


class Evicted(Protocol):
    """A unit that was evicted."""

    @property
    def tasks(self) -> tuple[Task, ...]: ...

    @property
    def option(self) -> VictimOption: ...


Placed = tuple[Task, NodeInfo, Queue]

E = TypeVar("E", bound=Evicted)


class Reprieve:
    """The check, over placements that have to stand. ``by_quota``: some victims went for a queue's sake."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._placed: list[Placed] = []
        self._shapes: dict[tuple[str, bytes], Placed] = {}
        self.by_quota = False

    def placed(self, task: Task, node: NodeInfo, queue: Queue) -> None:
        """Take note of a placement that has to stand."""
        placed = (task, node, queue)
        self._placed.append(placed)
        self._shapes[queue.name, task.shape] = placed

    def absorb(self, other: Reprieve) -> None:
        """Take note of all that another knows of."""
        for placed in other._placed:
            self.placed(*placed)
        self.by_quota = self.by_quota or other.by_quota

    @property
    def is_only_about_room(self) -> bool:
        """Whether neither neighbours nor a queue's limits can be the reason why a victim has to go."""
        return not self.by_quota and not self.minding()

    def minding(self) -> set[bytes]:
        """Shapes of placed tasks that mind who runs where."""
        placement = self._session.placement
        return {task.shape for task, *_ in self._shapes.values() if placement.neighbours(task, future=True) is not None}

    def unneeded(self, victims: Sequence[E], statement: Statement, others: Sequence[E] = ()) -> list[E]:
        """Give back those that are not needed, the last given first; the rest, in their order.

        ``others`` are further victims, which are not asked about.
        """
        minding = self.minding()
        broken = Counter(victim.option.job for victim in (*victims, *others) if victim.option.whole)
        kept = list(victims)
        for victim in reversed(victims):
            option = victim.option
            if option.limits and broken[option.job]:
                continue  # spare in a gang the rest of which has had to go too: alone it would be a gang in part
            if self._can_stay(victim, minding, statement):
                kept.remove(victim)
                broken[option.job] -= option.whole
        return kept

    def _can_stay(self, victim: Evicted, minding: set[bytes], statement: Statement) -> bool:
        if not self._leaves_room(victim.tasks):
            return False
        savepoint = statement.savepoint()
        for task in victim.tasks:
            statement.restore(task)
        if self._stands(minding, statement):
            return True
        statement.rollback(savepoint)
        return False

    def _leaves_room(self, back: Sequence[Task]) -> bool:
        """Whether all that waits for room on their nodes still finds it with the tasks ``back``."""
        nodes = self._session.nodes
        amounts: dict[int, Vector] = {}
        for task in back:
            info = nodes.by_name.get(task.node)
            if info is not None:
                held = nodes.held(task)
                amounts[info.row] = amounts[info.row] + held if info.row in amounts else held
        for row, amount in amounts.items():
            left = nodes.idle[row] + nodes.releasing[row] - nodes.pipelined[row] - amount
            if nodes.pipelined[row].any() and bool(((left < -EPSILON) & (amount > 0)).any()):
                return False
        return True

    def _stands(self, minding: set[bytes], statement: Statement) -> bool:
        """Whether every placement still holds as far as neighbours and the queues' limits go."""
        return self.neighbours_stand(minding, statement) and (
            not self.by_quota
            or all(_without(placed, self._is_allocatable, statement) for placed in self._shapes.values())
        )

    def neighbours_stand(self, minding: set[bytes], statement: Statement) -> bool:
        """Whether for no placed task of these shapes the neighbours, or the lack of them, rule its node out now."""
        return not minding or all(
            _without(placed, self._is_admitted, statement) for placed in self._placed if placed[0].shape in minding
        )

    def _is_admitted(self, task: Task, node: NodeInfo, _queue: Queue) -> bool:
        return self._session.placement.admits(task, node, future=True)

    def _is_allocatable(self, task: Task, _node: NodeInfo, queue: Queue) -> bool:
        return self._session.hooks.all_agree("allocatable", queue, task)


def _without(placed: Placed, question: Callable[[Task, NodeInfo, Queue], bool], statement: Statement) -> bool:
    """Ask a question about a placed task as if it were not placed yet."""
    savepoint = statement.savepoint()
    statement.release(placed[0])
    try:
        return question(*placed)
    finally:
        statement.rollback(savepoint)
