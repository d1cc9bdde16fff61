"""Track what queues hold, request and have reserved, throughout a cycle; shared by all queue plugins.

Every change that a statement makes or undoes is added to `allocated` of the queue and of all its ancestors, so that no
rule has to sum up changes itself. `pods` is not a quota, and no amount here contains it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple, Protocol

from ...backlog.reservations import requested
from ...framework.decisions import QueueNumbers
from ...framework.session import Session
from ...model import resources
from ...model.job import Job
from ...model.queue import Queue
from ...model.resources import PODS, UNLIMITED, Limit, Limits, Resource
from ...model.sums import Contribution, Measure, QueueSums, is_reserving, request_of, ungated
from ...model.task import HOLDING, Task, TaskStatus


class Counting(Protocol):
    """How a plugin counts: in resources or in cards."""

    in_requests: bool
    """Whether a task counts as its request, so that existing sums of requests can be used."""

    def measure(self, task: Task) -> Resource:
        """Return the amounts of a task that count in its queue; the same for all unplaced tasks of a shape."""

    def varies(self, task: Task) -> bool:
        """Whether the task's amounts depend on its node."""

    def minimum(self, job: Job) -> Mapping[str, int] | None:
        """Return what a job needs to start; None if the job does not declare it."""


def without_pods(resource: Mapping[str, int]) -> Resource:
    """Return the amounts to which quotas apply."""
    return {name: amount for name, amount in resource.items() if name != PODS}


def _quota(amounts: Mapping[str, int]) -> Resource:
    """Return the amounts to which quotas apply, sorted by name, without zeros."""
    return {name: amount for name, amount in sorted(amounts.items()) if amount and name != PODS}


class Own(NamedTuple):
    """Sums over the jobs of one queue, without the queues below it, at the beginning of a cycle.

    `elastic` is what the jobs hold beyond their minima, `requested` what they hold or request.
    """

    reserved: Resource
    held: Resource
    elastic: Resource
    requested: Resource


class QueueAttributes:
    """The amounts of one queue, in the units of `scheduler.model.resources`.

    `limit` is the real capability: what the queue may hold at most, given the guarantees of other queues. `elastic` is
    what its jobs hold beyond their minima; `request` is all that they hold or request. `problem` is the reason why no
    task of the queue is scheduled; empty if there is none.
    """

    __slots__ = (
        *("allocated", "ancestors", "basis", "children", "counted", "deserved", "drains_since", "elastic", "guarantee"),
        *("guaranteed_to_others", "inqueue", "is_stale", "limit", "name", "own", "parent", "problem", "published"),
        *("queue", "request", "share_known"),
    )

    def __init__(self, queue: Queue) -> None:
        self.queue, self.name = queue, queue.name
        self.counted: QueueSums | None = None
        """The sums of its own jobs, from which the amounts are computed; None if it has no jobs."""
        self.own = Own({}, {}, {}, {})
        """The amounts that `counted` adds to the queue and to each of its ancestors."""
        self.reset()
        self.deserved = without_pods(queue.deserved)
        self.guarantee = without_pods(queue.guarantee)
        self.limit: Limits = {}
        self.guaranteed_to_others: Resource = {}
        """The guarantees of other queues, which lower the queue's limit."""
        self.parent: QueueAttributes | None = None
        self.children: list[QueueAttributes] = []
        self.ancestors: tuple[QueueAttributes, ...] = (self,)
        """The queue itself, its parent, and so on; the root comes last."""
        self.problem = ""
        self.drains_since: float | None = None
        """Creation time of the first child of an otherwise valid queue: only older jobs are still scheduled."""
        self.basis: Resource | None = None
        """The amounts that `share` is relative to, if not the deserved amounts."""

    def reset(self) -> None:
        """Clear all amounts that depend on jobs."""
        self.allocated: Resource = {}
        self.request: Resource = {}
        self.inqueue: Resource = {}
        self.elastic: Resource = {}
        self.is_stale = False
        """Whether amounts have changed in a cycle, so that the next cycle has to sum them up again."""
        self.drop_cached()

    def drop_cached(self) -> None:
        """Drop cached values that depend on the amounts."""
        self.share_known: float | None = None
        self.published: QueueNumbers | None = None
        """The numbers in the decisions."""

    @property
    def share(self) -> float:
        """Return the ratio of held to deserved in the dimension where it is largest; 1 if nothing is deserved."""
        if self.share_known is None:
            basis, held = self.deserved if self.basis is None else self.basis, self.allocated
            parts = [held.get(name, 0) / amount for name, amount in basis.items() if amount > 0]
            self.share_known = max(parts, default=1.0)
        return self.share_known

    def kept_for_others(self, dimension: str, limit: Limit) -> int:
        """Return the guarantees of other queues if they lower `limit` below the own capability; otherwise 0."""
        guaranteed, own = self.guaranteed_to_others.get(dimension, 0), self.queue.capability.get(dimension)
        return guaranteed if limit is not UNLIMITED and (own is None or limit < own) else 0

    def add(self, amount: Mapping[str, int], sign: int) -> None:
        """Add an amount to the queue and its ancestors (`sign` 1), or subtract it (-1)."""
        self.is_stale = True
        for attributes in self.ancestors:
            attributes.share_known = None
            held = attributes.allocated
            for name, value in amount.items():
                held[name] = held.get(name, 0) + sign * value

    def __repr__(self) -> str:
        return f"<QueueAttributes {self.name} {self.allocated} of {self.deserved}>"


class QueueAttributesTable:
    """The attributes of all queues, filled from the jobs' tasks and updated with every change of the session.

    Queues with parents are linked (`scheduler.plugins.queue.hierarchy`) before `open`. Later cycles reuse the table
    while queues and nodes are the same: `open` then sums up only queues whose jobs, or those of a queue below, have
    changed since the last cycle, and queues whose amounts that cycle has changed.
    """

    def __init__(self, session: Session, counting: Counting) -> None:
        self._queues, self._total = session.queues, session.total
        self.by_name = {name: QueueAttributes(queue) for name, queue in session.queues.items()}
        self.version = 0
        """Grows whenever the holdings of any queue change."""
        self.reserving: list[Job] = []
        """The jobs whose reservations are not in the sums, and are computed one by one."""
        self._counting = counting

    def __iter__(self) -> Iterator[QueueAttributes]:
        return iter(self.by_name.values())

    @cached_property
    def top(self) -> list[QueueAttributes]:
        """Return the queues that share the cluster: the children of the root, or all queues without a tree."""
        roots = [one for one in self if one.parent is None]
        return [child for root in roots for child in root.children] or roots

    @cached_property
    def guaranteed(self) -> Resource:
        """Return the sum of all guarantees: the most that can be unused."""
        total = resources.total_of(one.guarantee for one in self.top)
        return {name: amount for name, amount in total.items() if amount > 0}

    def of_task(self, task: Task) -> QueueAttributes | None:
        """Return the attributes of the task's queue; None for a pod without a job, or a job without a queue."""
        job = self.session.jobs.get(task.job)
        return None if job is None else self.by_name.get(job.queue)

    def amount(self, task: Task) -> Resource:
        """Return the amounts of the task that count in its queue."""
        if self._counted and (counted := self._counted.get(task.key)) is not None:
            return counted
        # The node is a part of the key: another policy may have placed the pod on a node that does not fit it now.
        key: Hashable = task.shape if self._counting.in_requests else (task.shape, task.node)
        known = self._amounts.get(key)
        if known is None:
            known = self._counting.measure(task)
            if not self._counting.varies(task):
                self._amounts[key] = known
        return known

    def held(self, job: Job) -> Resource:
        """Return what the job holds."""
        return without_pods(job.allocated) if self._counting.in_requests else self._sum(job.having(HOLDING))

    def is_valid_for(self, session: Session) -> bool:
        """Whether the table was built from the same queues and nodes as this cycle has."""
        return self._queues == session.queues and self._total == session.total

    def open(self, session: Session) -> None:
        """Add what jobs hold, request and have reserved, and subscribe to the session's changes."""
        self.session = session
        self._amounts: dict[Hashable, Resource] = {}
        self._counted: dict[str, Resource] = {}
        """The amounts by which placed tasks were counted, for tasks that count by their node."""
        by_queue = self._in_requests() if self._counting.in_requests else self._measured()
        changed: dict[str, QueueAttributes] = {}
        for name, attributes in self.by_name.items():
            of_queue = by_queue.get(name)
            if of_queue is not None and not of_queue.jobs:
                of_queue = None
            if attributes.is_stale or attributes.counted != of_queue:
                attributes.counted = None if of_queue is None else of_queue.without(())
                attributes.own = Own({}, {}, {}, {}) if of_queue is None else _own(of_queue)
                changed.update((one.name, one) for one in attributes.ancestors)
        self._sum_up(changed)
        session.on_allocation_change(self._on_allocation_change)

    def _sum_up(self, changed: Mapping[str, QueueAttributes]) -> None:
        """Compute the amounts of these queues again."""
        for attributes in changed.values():
            attributes.reset()
        for attributes in self.by_name.values() if changed else ():
            for one in attributes.ancestors if attributes.counted is not None else ():
                if one.name in changed:
                    sums = (one.inqueue, one.allocated, one.elastic, one.request)
                    for total, amount in zip(sums, attributes.own, strict=True):
                        resources.add_to(total, amount)

    def _in_requests(self) -> Mapping[str, QueueSums]:
        """Return the sums of requests, which the state maintains."""
        self.reserving = self.session.selection.uncovered
        return self.session.selection.sums_by_queue()

    def _measured(self) -> Mapping[str, QueueSums]:
        """Return the sums of measured amounts, computed job by job."""
        by_queue: dict[str, QueueSums] = {}
        self.reserving = []
        for job in self.session.jobs.values():
            if minimum := self._counting.minimum(job):
                self.reserving.append(job)
            requested = self._requested_by(job) if job.by_status.get(TaskStatus.PENDING) else {}
            by_queue.setdefault(job.queue, QueueSums()).add(Contribution.of(self.held(job), minimum, requested))
        return by_queue

    def reservation(self, job: Job) -> Resource:
        """Return what an admitted job has reserved and does not hold yet; nothing if it is not admitted."""
        minimum = self._counting.minimum(job)
        return reservation_of(job, self.session, minimum, self.held(job), self.amount) if minimum else {}

    def ungated(self, job: Job, amount: Resource) -> Resource:
        """Return an amount without the part of the job's gated pods."""
        return ungated(job, amount, self.amount)

    def _sum(self, tasks: Iterable[Task]) -> Resource:
        return resources.total_of(self.amount(task) for task in tasks)

    def _requested_by(self, job: Job) -> Resource:
        """Return the amounts of the job's waiting tasks; tasks of one shape are counted at once."""
        alike: dict[bytes, list[Task]] = {}
        for task in job.by_status[TaskStatus.PENDING].values():
            alike.setdefault(task.shape, []).append(task)
        total: Resource = {}
        for tasks in alike.values():
            amount = self.amount(tasks[0])
            resources.add_to(total, {name: value * len(tasks) for name, value in amount.items()})
        return total

    def _on_allocation_change(self, task: Task, sign: int) -> None:
        attributes = self.of_task(task)
        if attributes is None:
            return
        self.version += 1
        if not self._counting.in_requests and self._counting.varies(task):
            if sign > 0:
                self._counted[task.key] = self._counting.measure(task)
            amount = self.amount(task)
            if sign < 0:
                self._counted.pop(task.key, None)
        else:
            amount = self.amount(task)
        attributes.add(amount, sign)


def _own(sums: QueueSums) -> Own:
    held, elastic = _quota(sums.held), _quota(resources.minus(sums.held, sums.needed))
    return Own(_quota(sums.reserved), held, elastic, resources.plus(held, _quota(sums.requested)))


def reservation_of(
    job: Job,
    session: Session,
    minimum: Mapping[str, int],
    held: Mapping[str, int],
    measure: Measure = request_of,
) -> Resource:
    """Return what an admitted job has reserved and does not hold yet; nothing where it is not admitted.

    `minimum` is what the job needs to start, `held` what it holds. Gated pods reserve nothing. A lapsed reservation is
    reduced to what the job's pods request.
    """
    if not is_reserving(job, session.phase(job)):
        return {}
    missing = resources.exceeded_part(minimum, held)
    if session.selection.reservations.has_lapsed(job):
        pods = requested(job, measure)
        missing = {name: min(amount, pods.get(name, 0)) for name, amount in missing.items()}
    return ungated(job, missing, measure)
