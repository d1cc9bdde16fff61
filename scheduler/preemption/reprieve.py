"""Reprieve victims: drop every victim whose eviction the placements do not need.

The one rule: a victim is evicted only if some placement would be invalid without this eviction: for lack of room,
because of neighbours, or because the placement's queue may not hold or reclaim so much. The best protected victims are
reprieved first; the caller passes the victims in the order of protection.
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
from .units import has_minimum, may_keep_members
from .victim_set import VictimOption


class EvictedUnit(Protocol):
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

    def without(self, reprieved: frozenset[str]) -> Self: ...


class PlacedTask(NamedTuple):
    """A placement that must remain valid. `reclaims`: tasks of other queues were evicted for it."""

    task: Task
    node: NodeInfo
    queue: Queue
    reclaims: bool


E = TypeVar("E", bound=EvictedUnit)


class Reprieve:
    """The placements that must remain valid. `by_quota`: some victims were evicted to free quota."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._placed: list[PlacedTask] = []
        self._shapes: dict[tuple[str, bytes, bool], PlacedTask] = {}
        self.by_quota = False

    def placed(self, task: Task, node: NodeInfo, queue: Queue, *, reclaims: bool) -> None:
        """Record a placement that must remain valid."""
        self._record(PlacedTask(task, node, queue, reclaims))

    def _record(self, placed: PlacedTask) -> None:
        self._placed.append(placed)
        self._shapes[placed.queue.name, placed.task.shape, placed.reclaims] = placed

    def merge(self, other: Reprieve) -> None:
        """Add all placements of `other`."""
        for placed in other._placed:
            self._record(placed)
        self.by_quota = self.by_quota or other.by_quota

    @property
    def needs_room_only(self) -> bool:
        """Whether victims were evicted for room only, not for neighbours or a queue's limits."""
        return not self.by_quota and not self.constrained_shapes()

    def constrained_shapes(self) -> set[bytes]:
        """Return the shapes of placed tasks with inter-pod constraints."""
        placement = self._session.placement
        return {task.shape for task, *_ in self._shapes.values() if placement.neighbours(task, future=True) is not None}

    def unneeded(self, victims: Sequence[E], statement: Statement, others: Sequence[E] = ()) -> list[E]:
        """Reprieve the victims that are not needed, from the last to the first; return the needed ones in order.

        `others` are further victims, which are not checked.
        """
        check = _Check(self, statement)
        broken = Counter(victim.option.job for victim in (*victims, *others) if victim.option.whole)
        kept = list(victims)
        for victim in reversed(victims):
            option = victim.option
            if broken[option.job] and not option.whole:
                continue  # its gang is evicted as a whole: a single reprieved task would leave the gang in part
            if check.reprieves(victim.tasks):
                kept.remove(victim)
                broken[option.job] -= option.whole
        return kept

    def without_spare_members(
        self, victims: Sequence[E], statement: Statement, age_key: Callable[[Task], Any]
    ) -> list[E]:
        """Reprieve members of gangs that were evicted as a whole, if enough members remain for the gang to run on.

        The oldest member comes first (`age_key`: smaller is younger). Members are reprieved only if the policy permits
        evicting the other members without them, at the gang's position in the order of evictions.
        """
        gangs: dict[str, list[E]] = {}
        for victim in victims:
            gangs.setdefault(victim.option.job, []).append(victim)
        left: dict[int, E] = {id(victim): victim for victim in victims}
        for key, gang in gangs.items():
            if any(victim.option.whole for victim in gang) and self._may_run_on(key, gang):
                first = min(victim.position for victim in gang if victim.option.whole)
                later = [v for v in left.values() if v.option.job != key and v.position > first]
                reprieved = self._reprieve_members(gang, later, statement, age_key)
                left |= {id(victim): victim.without(reprieved) for victim in gang if reprieved}
        return [victim for victim in left.values() if victim.tasks]

    def _may_run_on(self, key: str, gang: Sequence[E]) -> bool:
        """Whether the gang can run without one of its evicted members."""
        job = self._session.jobs[key]
        return may_keep_members(job) and job.ready + sum(len(victim.tasks) for victim in gang) > max(
            job.min_available, 1
        )

    def _reprieve_members(
        self, gang: Sequence[E], later: Sequence[E], statement: Statement, age_key: Callable[[Task], Any]
    ) -> frozenset[str]:
        savepoint, check = statement.savepoint(), _Check(self, statement)
        members = sorted((task for victim in gang for task in victim.tasks), key=age_key, reverse=True)
        reprieved = [task for task in members if check.reprieves([task])]
        job = self._session.jobs[gang[0].option.job]
        if reprieved and has_minimum(job) and not self._objected(gang, reprieved, later, statement):
            return frozenset(task.key for task in reprieved)
        statement.rollback(savepoint)
        return frozenset()

    @staticmethod
    def _objected(gang: Sequence[E], reprieved: Sequence[Task], later: Sequence[E], statement: Statement) -> bool:
        """Whether the policy protects the members of a gang that are not `reprieved`, if only they are evicted.

        They are judged at the gang's position in the order of evictions: the victims in `later` still run then, so that
        their queue holds as much as it did when the gang was chosen.
        """
        savepoint, keys = statement.savepoint(), {task.key for task in reprieved}
        rest = [task for victim in gang for task in victim.tasks if task.key not in keys]
        for task in (*rest, *(task for victim in later for task in victim.tasks)):
            statement.restore(task)
        for preemptor in {victim.preemptor.key: victim.preemptor for victim in (*gang, *later)}.values():
            statement.release(preemptor)
        try:
            return any(victim.objection(rest) is not None for victim in gang if victim.option.whole)
        finally:
            statement.rollback(savepoint)

    def leaves_room(self, tasks: Sequence[Task]) -> bool:
        """Whether all placements on the nodes of these tasks still have room if the tasks are reprieved."""
        nodes = self._session.nodes
        amounts: dict[int, Amounts] = {}
        for task in tasks:
            info = nodes.by_name.get(task.node)
            if info is not None:
                held = nodes.held(task)
                amounts[info.row] = amounts[info.row] + held if info.row in amounts else held
        for row, amount in amounts.items():
            left = nodes.idle[row] + nodes.releasing[row] - nodes.pipelined[row] - amount
            if nodes.pipelined[row].any() and bool(((left < 0) & (amount > 0)).any()):
                return False
        return True

    def entitled(self, statement: Statement, among: Iterable[PlacedTask] | None = None) -> list[PlacedTask]:
        """Return those of `among` (default: one of each queue and shape) that the queue may hold and reclaim for."""
        among = self._shapes.values() if among is None else among
        return [placed for placed in among if _without(placed, self._is_entitled, statement)]

    def constraints_hold(self, shapes: set[bytes], statement: Statement) -> bool:
        """Whether the inter-pod constraints of all placed tasks of these shapes hold now."""
        return not shapes or all(
            _without(placed, self._is_admitted, statement) for placed in self._placed if placed.task.shape in shapes
        )

    def _is_admitted(self, placed: PlacedTask) -> bool:
        return self._session.placement.admits(placed.task, placed.node, future=True)

    def _is_entitled(self, placed: PlacedTask) -> bool:
        hooks, queue, task = self._session.hooks, placed.queue, placed.task
        return hooks.allocatable(queue, task) and not (placed.reclaims and hooks.preemptive(queue, task) is not None)


class _Check:
    """Reprieve victims one after the other, if every placement remains valid."""

    def __init__(self, reprieve: Reprieve, statement: Statement) -> None:
        self._reprieve, self._statement = reprieve, statement
        self._constrained_shapes = reprieve.constrained_shapes()
        self._entitled: list[PlacedTask] | None = None
        """Placements that their queues may hold before any reprieve. No others are checked."""

    def reprieves(self, tasks: Sequence[Task]) -> bool:
        """Reprieve these tasks if every placement remains valid; return whether they were reprieved."""
        reprieve, statement = self._reprieve, self._statement
        if not reprieve.leaves_room(tasks):
            return False
        if self._entitled is None:
            self._entitled = reprieve.entitled(statement)
        savepoint = statement.savepoint()
        for task in tasks:
            statement.restore(task)
        if reprieve.constraints_hold(self._constrained_shapes, statement) and len(
            reprieve.entitled(statement, self._entitled)
        ) == len(self._entitled):
            return True
        statement.rollback(savepoint)
        return False


def wait_again(session: Session, gangs: Iterable[str], statement: Statement) -> None:
    """Return tasks of reprieved gangs to the waiting state: room had been freed for them, and the gang still runs."""
    for key in sorted(gangs):
        job = session.jobs[key]
        if job.allocated and has_minimum(job):
            session.nominations.wait_again(job, statement)


def _without(placed: PlacedTask, check: Callable[[PlacedTask], bool], statement: Statement) -> bool:
    """Return the result of a check of a placed task, computed as if the task were not placed yet."""
    savepoint = statement.savepoint()
    statement.release(placed.task)
    try:
        return check(placed)
    finally:
        statement.rollback(savepoint)
