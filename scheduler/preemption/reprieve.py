"""Reprieve victims: drop every victim whose eviction the placements do not need.

The one rule: a victim is evicted only if some placement would not stand without its eviction: for lack of room, because
of its neighbours, or because its queue could no longer hold or reclaim it. The best protected victims are reprieved
first; the caller passes the order of protection.
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

    @property
    def position(self) -> int: ...

    def objection(self, tasks: Sequence[Task]) -> Protection | None: ...

    def less(self, back: frozenset[str]) -> Self: ...


class Placed(NamedTuple):
    """A placement that must stand. `reclaims`: tasks of other queues were evicted for it."""

    task: Task
    node: NodeInfo
    queue: Queue
    reclaims: bool


E = TypeVar("E", bound=Evicted)


class Reprieve:
    """The placements that must stand. `by_quota`: some victims were evicted to free quota."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._placed: list[Placed] = []
        self._shapes: dict[tuple[str, bytes, bool], Placed] = {}
        self.by_quota = False

    def placed(self, task: Task, node: NodeInfo, queue: Queue, *, reclaims: bool) -> None:
        """Record a placement that must stand."""
        self._note(Placed(task, node, queue, reclaims))

    def _note(self, placed: Placed) -> None:
        self._placed.append(placed)
        self._shapes[placed.queue.name, placed.task.shape, placed.reclaims] = placed

    def absorb(self, other: Reprieve) -> None:
        """Add all placements of another."""
        for placed in other._placed:
            self._note(placed)
        self.by_quota = self.by_quota or other.by_quota

    @property
    def is_only_about_room(self) -> bool:
        """Whether victims were evicted for room only, not for neighbours or a queue's limits."""
        return not self.by_quota and not self.minding()

    def minding(self) -> set[bytes]:
        """Return the shapes of placed tasks with inter-pod constraints."""
        placement = self._session.placement
        return {task.shape for task, *_ in self._shapes.values() if placement.neighbours(task, future=True) is not None}

    def unneeded(self, victims: Sequence[E], statement: Statement, others: Sequence[E] = ()) -> list[E]:
        """Reprieve the victims that are not needed, from the last to the first; return the rest in order.

        `others` are further victims, which are not checked.
        """
        check = _Check(self, statement)
        broken = Counter(victim.option.job for victim in (*victims, *others) if victim.option.whole)
        kept = list(victims)
        for victim in reversed(victims):
            option = victim.option
            if broken[option.job] and not option.whole:
                continue  # the rest of its gang is evicted: reprieved alone, it would be part of a gang
            if check.can_stay(victim.tasks):
                kept.remove(victim)
                broken[option.job] -= option.whole
        return kept

    def without_spare_members(
        self, victims: Sequence[E], statement: Statement, age_key: Callable[[Task], Any]
    ) -> list[E]:
        """Reprieve members of gangs that were evicted as a whole, where enough can stay for the gang to run on.

        The oldest member comes first (`age_key`: smaller is younger). Members are reprieved only if the policy permits
        the eviction of the others without them, at the gang's place in the order of evictions.
        """
        gangs: dict[str, list[E]] = {}
        for victim in victims:
            gangs.setdefault(victim.option.job, []).append(victim)
        left: dict[int, E] = {id(victim): victim for victim in victims}
        for key, gang in gangs.items():
            if any(victim.option.whole for victim in gang) and self._may_go_on(key, gang):
                first = min(victim.position for victim in gang if victim.option.whole)
                later = [v for v in left.values() if v.option.job != key and v.position > first]
                back = self._spare_members(gang, later, statement, age_key)
                left |= {id(victim): victim.less(back) for victim in gang if back}
        return [victim for victim in left.values() if victim.tasks]

    def _may_go_on(self, key: str, gang: Sequence[E]) -> bool:
        """Whether the gang can run without one of its evicted members."""
        job = self._session.jobs[key]
        return may_keep_members(job) and job.ready + sum(len(victim.tasks) for victim in gang) > max(
            job.min_available, 1
        )

    def _spare_members(
        self, gang: Sequence[E], later: Sequence[E], statement: Statement, age_key: Callable[[Task], Any]
    ) -> frozenset[str]:
        savepoint, check = statement.savepoint(), _Check(self, statement)
        members = sorted((task for victim in gang for task in victim.tasks), key=age_key, reverse=True)
        back = [task for task in members if check.can_stay([task])]
        job = self._session.jobs[gang[0].option.job]
        if back and runs_on(job) and not self._objected(gang, back, later, statement):
            return frozenset(task.key for task in back)
        statement.rollback(savepoint)
        return frozenset()

    @staticmethod
    def _objected(gang: Sequence[E], back: Sequence[Task], later: Sequence[E], statement: Statement) -> bool:
        """Whether the policy protects the members of a gang that are not in `back`, if only they are evicted.

        They are judged at the gang's place in the order of evictions: the victims in `later` still run then, so that
        their queue holds as much as it did when the gang was chosen.
        """
        savepoint, stay = statement.savepoint(), {task.key for task in back}
        rest = [task for victim in gang for task in victim.tasks if task.key not in stay]
        for task in (*rest, *(task for victim in later for task in victim.tasks)):
            statement.restore(task)
        for preemptor in {victim.preemptor.key: victim.preemptor for victim in (*gang, *later)}.values():
            statement.release(preemptor)
        try:
            return any(victim.objection(rest) is not None for victim in gang if victim.option.whole)
        finally:
            statement.rollback(savepoint)

    def leaves_room(self, back: Sequence[Task]) -> bool:
        """Whether all placements on these nodes still have room if the tasks `back` are reprieved."""
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
        """Return one placement of each queue and shape that the queue may hold, and reclaim, in the present state."""
        among = self._shapes.values() if among is None else among
        return [placed for placed in among if _without(placed, self._is_entitled, statement)]

    def neighbours_stand(self, minding: set[bytes], statement: Statement) -> bool:
        """Whether the inter-pod constraints of all placed tasks of these shapes hold now."""
        return not minding or all(
            _without(placed, self._is_admitted, statement) for placed in self._placed if placed.task.shape in minding
        )

    def _is_admitted(self, placed: Placed) -> bool:
        return self._session.placement.admits(placed.task, placed.node, future=True)

    def _is_entitled(self, placed: Placed) -> bool:
        hooks, queue, task = self._session.hooks, placed.queue, placed.task
        return hooks.allocatable(queue, task) and not (placed.reclaims and hooks.preemptive(queue, task) is not None)


class _Check:
    """Check victims one after the other: whether every placement stands if the victim is reprieved."""

    def __init__(self, reprieve: Reprieve, statement: Statement) -> None:
        self._reprieve, self._statement = reprieve, statement
        self._minding = reprieve.minding()
        self._entitled: list[Placed] | None = None
        """Placements that their queues may hold before any reprieve; the others are not checked."""

    def can_stay(self, tasks: Sequence[Task]) -> bool:
        """Reprieve these tasks if every placement stands with them; return whether it did."""
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
    """Return tasks of reprieved gangs to the waiting state: room had been freed for them, and the gang still runs."""
    for key in sorted(gangs):
        job = session.jobs[key]
        if job.allocated and runs_on(job):
            session.nominations.wait_again(job, statement)


def _without(placed: Placed, question: Callable[[Placed], bool], statement: Statement) -> bool:
    """Evaluate a question about a placed task as if the task were not placed yet."""
    savepoint = statement.savepoint()
    statement.release(placed.task)
    try:
        return question(placed)
    finally:
        statement.rollback(savepoint)
