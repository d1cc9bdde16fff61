"""Keep evictions in proportion to the job that causes them.

A queue may hold more than its limit: its capability was lowered, or it borrowed and the shares changed. To place one
more task there, the whole excess would have to be evicted first. One job must not cause so many evictions:

1. If the excess is more than one largest eviction unit for each task that the job lacks, the task waits at once.
2. After all of a job's victims are chosen and reprieved, the job waits if they are too many.

The bound: for each placed task, victims may hold the task's request plus the largest eviction unit (a pod, or a gang
that is evicted as a whole). Where a queue exceeds its limit, victims in queues that share the limit must keep the bound
in the limit's dimension. All victims together must keep it in one dimension at least: victims that free cards may hold
many cpus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

from ..framework.session import Session
from ..model.queue import ROOT, Queue
from ..model.resources import CPU, MEMORY, PODS
from ..model.task import Task
from ..reasons import GuaranteeKept, OutOfProportion, QueueExcess, QueueLimit
from .request import PreemptionRequest
from .units import Unit
from .victim import Victim


class QuotaBound:
    """The bound for the evictions of one request."""

    def __init__(self, request: PreemptionRequest) -> None:
        self._request = request
        self._session = request.session
        self._limits: dict[tuple[str, str], QueueLimit] = {}
        """Queue, dimension → the limit that a task would exceed, with the queue's allocation before any eviction."""
        self._amounts: dict[tuple[bytes, str], int] = {}
        """The amount that one task requests, by shape and dimension."""
        self.excess: QueueExcess | OutOfProportion | None = None
        """Why the request was refused; None if it was not."""

    @cached_property
    def related(self) -> set[str]:
        """Queues that share a limit with the request's queue. Computed late: most requests evict nothing."""
        return related_queues(self._session, self._request.queue)

    def read_limits(self, task: Task) -> None:
        """Record which limits a task would exceed. Call before the first eviction for the task."""
        for why in self._session.hooks.reasons(self._request.job, task):
            if isinstance(why, QueueLimit):
                self._limits.setdefault((why.queue, why.dimension), why)
            elif isinstance(why, GuaranteeKept):
                self.related |= queues_below(self._session, why.pool)

    @property
    def _exceeded(self) -> list[QueueLimit]:
        """Return the limits that their queues exceeded before any eviction: a bound bounds an excess."""
        return [limit for limit in self._limits.values() if limit.allocated > limit.amount]

    def permits(self, units: Iterable[Unit]) -> bool:
        """Whether evictions among `units` can end the excess of a queue and remain in proportion."""
        some = list(units)
        if not some:
            return True  # no unit may be evicted at all, which the votes explain
        tasks = self._request.job.lacking or len(self._request.job.tasks)
        return self._all_hold(
            limit
            for limit in self._exceeded
            if limit.allocated - limit.amount > tasks * max(self._amount(unit.tasks, limit.dimension) for unit in some)
        )

    def freed_by(self, unit: Unit) -> float:
        """Return the fraction of the missing quota that evicting the unit frees: 0 to 1 for each limit, summed."""
        lacking = (
            (limit.dimension, limit.allocated + limit.requested - limit.amount) for limit in self._limits.values()
        )
        return sum(min(self._amount(unit.tasks, dimension) / max(amount, 1), 1.0) for dimension, amount in lacking)

    def keeps(self, victims: Sequence[Victim], placed: Sequence[Task]) -> bool:
        """Whether a request's victims are in proportion to its placed tasks."""
        related = [victim for victim in victims if self._session.jobs[victim.option.job].queue in self.related]
        if not self._all_hold(
            limit for limit in self._exceeded if self._are_too_many(related, placed, limit.dimension)
        ):
            return False
        names = {name for task in placed for name in task.request if name != PODS and self._amount([task], name)}
        names &= {name for victim in victims for task in victim.tasks for name in task.request}
        broken = [name for name in sorted(names) if self._are_too_many(victims, placed, name)]
        if not broken or len(broken) < len(names):
            return True
        evicted = self._amount([task for victim in victims for task in victim.tasks], broken[-1])
        self.excess = OutOfProportion(self._request.action, broken[-1], evicted, self._amount(placed, broken[-1]))
        return False

    def _are_too_many(self, victims: Sequence[Victim], placed: Sequence[Task], dimension: str) -> bool:
        gangs = {victim.option.job for victim in victims if victim.option.whole}
        units: Counter[str] = Counter()
        for victim in victims:
            job = victim.option.job
            units[job if job in gangs else victim.tasks[0].key] += self._amount(victim.tasks, dimension)
        largest = max(units.values(), default=0)
        return units.total() > sum(self._amount([task], dimension) + largest for task in placed)

    def _all_hold(self, broken: Iterable[QueueLimit]) -> bool:
        """Whether no limit is broken; otherwise record the limit with the largest excess as the reason."""
        limit = max(broken, key=lambda limit: limit.allocated - limit.amount, default=None)
        if limit is None:
            return True
        self.excess = QueueExcess(
            self._request.action,
            limit.queue,
            limit.dimension,
            limit.allocated,
            limit.requested,
            limit.limit,
            limit.amount,
            self._set_by(limit),
        )
        return False

    def _set_by(self, limit: QueueLimit) -> str:
        """Return the queue or ancestor whose spec sets a limit; empty if the guarantees of other queues set it."""
        queues = self._session.queues
        if limit.limit != "capability":
            return limit.queue
        for name in lineage(self._session, limit.queue):
            if queues[name].capability.get(limit.dimension) == limit.amount:
                return name
        return ""

    def _amount(self, tasks: Sequence[Task], dimension: str) -> int:
        """Return what tasks request of a dimension; if it is a card model, all cards that the tasks request."""
        if len(tasks) > 1:
            return _sum(tasks, dimension)
        key = (tasks[0].shape, dimension)
        known = self._amounts.get(key)
        if known is None:  # needed for every victim; most victims have one of a few shapes
            known = self._amounts[key] = _sum(tasks, dimension)
        return known


def _sum(tasks: Sequence[Task], dimension: str) -> int:
    names = {name for task in tasks for name in task.request} - {CPU, MEMORY, PODS}
    if any(dimension in task.request for task in tasks) or dimension in (CPU, MEMORY):
        names = {dimension}
    return sum(task.request.get(name, 0) for task in tasks for name in names)


def related_queues(session: Session, queue: Queue) -> set[str]:
    """Return the queues that share a limit with `queue`: itself, and its top-level subtree without its ancestors.

    Evictions from any other queue free no quota for it.
    """
    own = set(lineage(session, queue.name))
    return {
        name
        for name in session.queues
        if own.intersection(lineage(session, name)) and (name == queue.name or name not in own)
    }


def queues_below(session: Session, name: str) -> set[str]:
    """Return the queue, or without a name the cluster, with all queues below it."""
    return {other for other in session.queues if not name or name == ROOT or name in lineage(session, other)}


def lineage(session: Session, name: str) -> list[str]:
    """Return a queue and its ancestors, nearest first, without the root."""
    queues, line = session.queues, list[str]()
    while name and name != ROOT and name in queues and name not in line:
        line.append(name)
        name = queues[name].parent
    return line
