"""Giving back victims that nobody needs.

The one rule: a victim stays a victim only if without it some placement would not stand: for lack of room, for its
neighbours, or because its queue might not hold it, or reclaim it, any more. The best protected are given back first;
who calls says in which order victims are protected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from ..framework.session import Session
from ..framework.statement import Statement
from ..model.nodes import Amounts, NodeInfo
from ..model.queue import Queue
from ..model.task import Task
from ..reasons import Protection
from .units import may_keep_members, runs_on
from .victim_set import VictimOption


class Evicted(Protocol):
    """A unit that was evicted."""

    @property
    def tasks(self) -> tuple[Task, ...]: ...

    @property
    def option(self) -> VictimOption: ...

    @property
    def preemptor(self) -> Task: ...

    def objection(self, tasks: Sequence[Task]) -> Protection | None: ...

    def less(self, back: frozenset[str]) -> Self: ...


class Placed(NamedTuple):
    """A placement that has to stand. ``reclaims``: others have had to leave other queues for it."""

    task: Task
    node: NodeInfo
    queue: Queue
    reclaims: bool


E = TypeVar("E", bound=Evicted)


class Reprieve:
    """The check, over placements that have to stand. ``by_quota``: some victims went for a queue's sake."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._placed: list[Placed] = []
        self._shapes: dict[tuple[str, bytes, bool], Placed] = {}
        self.by_quota = False

    def placed(self, task: Task, node: NodeInfo, queue: Queue, *, reclaims: bool) -> None:
        """Take note of a placement that has to stand."""
        self._note(Placed(task, node, queue, reclaims))

    def _note(self, placed: Placed) -> None:
        self._placed.append(placed)
        self._shapes[placed.queue.name, placed.task.shape, placed.reclaims] = placed

    def absorb(self, other: Reprieve) -> None:
        """Take note of all that another knows of."""
        for placed in other._placed:
            self._note(placed)
        self.by_quota = self.by_quota or other.by_quota

    @property
    def is_only_about_room(self) -> bool:
        """Whether neither neighbours nor a queue's limits can have been the reason for which a victim went."""
        return not self.by_quota and not self.minding()

    def minding(self) -> set[bytes]:
        """Shapes of placed tasks that mind who runs where."""
        placement = self._session.placement
        return {task.shape for task, *_ in self._shapes.values() if placement.neighbours(task, future=True) is not None}

    def unneeded(self, victims: Sequence[E], statement: Statement, others: Sequence[E] = ()) -> list[E]:
        """Give back those that are not needed, the last given first; the rest, in their order.

        ``others`` are further victims, which are not asked about.
        """
        check = _Check(self, statement)
        broken = Counter(victim.option.job for victim in (*victims, *others) if victim.option.whole)
        kept = list(victims)
        for victim in reversed(victims):
            option = victim.option
            if option.limits and broken[option.job]:
                continue  # spare in a gang the rest of which has had to go too: alone it would be a gang in part
            if check.can_stay(victim.tasks):
                kept.remove(victim)
                broken[option.job] -= option.whole
        return kept

    def without_spare_members(
        self, victims: Sequence[E], statement: Statement, age_key: Callable[[Task], Any]
    ) -> list[E]:
        """Give back members of gangs that went as a whole, where enough can stay for the gang to go on.

        The oldest first (``age_key``: smaller is younger), and only if the others might have gone without them.
        """
        gangs: dict[str, list[E]] = {}
        for victim in victims:
            gangs.setdefault(victim.option.job, []).append(victim)
        left: dict[int, E] = {id(victim): victim for victim in victims}
        for key, gang in gangs.items():
            if any(victim.option.whole for victim in gang) and self._may_go_on(key, gang):
                back = self._spare_members(key, gang, statement, age_key)
                left |= {id(victim): victim.less(back) for victim in gang if back}
        return [victim for victim in left.values() if victim.tasks]

    def _may_go_on(self, key: str, gang: Sequence[E]) -> bool:
        """Whether the gang could go on without one of those who went."""
        job = self._session.jobs[key]
        return may_keep_members(job) and job.ready + sum(len(victim.tasks) for victim in gang) > max(
            job.min_available, 1
        )

    def _spare_members(
        self, job: str, gang: Sequence[E], statement: Statement, age_key: Callable[[Task], Any]
    ) -> frozenset[str]:
        savepoint, check = statement.savepoint(), _Check(self, statement)
        members = sorted((task for victim in gang for task in victim.tasks), key=age_key, reverse=True)
        back = [task for task in members if check.can_stay([task])]
        if back and runs_on(self._session.jobs[job]) and not self._objected(gang, back, statement):
            return frozenset(task.key for task in back)
        statement.rollback(savepoint)
        return frozenset()

    @staticmethod
    def _objected(gang: Sequence[E], back: Sequence[Task], statement: Statement) -> bool:
        """Whether something stands against evicting no more of a gang than those who are not given back."""
        savepoint, stay = statement.savepoint(), {task.key for task in back}
        rest = [task for victim in gang for task in victim.tasks if task.key not in stay]
        for task in rest:
            statement.restore(task)
        for preemptor in {victim.preemptor.key: victim.preemptor for victim in gang}.values():
            statement.release(preemptor)
        try:
            return any(victim.objection(rest) is not None for victim in gang if victim.option.whole)
        finally:
            statement.rollback(savepoint)

    def leaves_room(self, back: Sequence[Task]) -> bool:
        """Whether all that waits for room on their nodes still finds it with the tasks ``back``."""
        nodes = self._session.nodes
        amounts: dict[int, Amounts] = {}
        for task in back:
            info = nodes.by_name.get(task.node)
            if info is not None:
                held = nodes.held(task)
                amounts[info.row] = amounts[info.row] + held if info.row in amounts else held
        for row, amount in amounts.items():
            left = nodes.idle[row] + nodes.releasing[row] - nodes.pipelined[row] - amount
            if nodes.pipelined[row].any() and bool(((left < 0) & (amount > 0)).any()):
                return False
        return True

    def entitled(self, statement: Statement, among: Iterable[Placed] | None = None) -> list[Placed]:
        """Of each queue and shape one placement, where the queue may hold it, and reclaim it, as things stand."""
        among = self._shapes.values() if among is None else among
        return [placed for placed in among if _without(placed, self._is_entitled, statement)]

    def neighbours_stand(self, minding: set[bytes], statement: Statement) -> bool:
        """Whether for no placed task of these shapes the neighbours, or the lack of them, rule its node out now."""
        return not minding or all(
            _without(placed, self._is_admitted, statement) for placed in self._placed if placed.task.shape in minding
        )

    def _is_admitted(self, placed: Placed) -> bool:
        return self._session.placement.admits(placed.task, placed.node, future=True)

    def _is_entitled(self, placed: Placed) -> bool:
        hooks, queue, task = self._session.hooks, placed.queue, placed.task
        return hooks.allocatable(queue, task) and not (placed.reclaims and hooks.preemptive(queue, task) is not None)


class _Check:
    """Whether victims can stay, one after the other, in one go over some placements."""

    def __init__(self, reprieve: Reprieve, statement: Statement) -> None:
        self._reprieve, self._statement = reprieve, statement
        self._minding = reprieve.minding()
        self._entitled: list[Placed] | None = None
        """What holds by the queues' numbers before anyone is given back; what does not is nobody's fault here."""

    def can_stay(self, tasks: Sequence[Task]) -> bool:
        """Give back these tasks, if every placement stands with them."""
        reprieve, statement = self._reprieve, self._statement
        if not reprieve.leaves_room(tasks):
            return False
        if self._entitled is None:
            self._entitled = reprieve.entitled(statement)
        savepoint = statement.savepoint()
        for task in tasks:
            statement.restore(task)
        if reprieve.neighbours_stand(self._minding, statement) and len(
            reprieve.entitled(statement, self._entitled)
        ) == len(self._entitled):
            return True
        statement.rollback(savepoint)
        return False


def wait_again(session: Session, gangs: Iterable[str], statement: Statement) -> None:
    """Of gangs that had been taken whole and can go on after all, have those wait again for whom room was freed."""
    for key in sorted(gangs):
        job = session.jobs[key]
        if job.allocated and runs_on(job):
            session.nominations.wait_again(job, statement)


def _without(placed: Placed, question: Callable[[Placed], bool], statement: Statement) -> bool:
    """Ask a question about a placed task as if it were not placed yet."""
    savepoint = statement.savepoint()
    statement.release(placed.task)
    try:
        return question(placed)
    finally:
        statement.rollback(savepoint)
