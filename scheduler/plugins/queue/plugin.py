"""Shared implementation of capacity, proportion and capacity-card: the hooks of a plugin that limits queues.

A queue plugin decides from its live queue attributes alone (`scheduler.plugins.queue.attributes`); every refusal
reports the numbers on which it is based.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from ...backlog.entries import HoldingsBound
from ...framework.decisions import QueueNumbers
from ...framework.plugin import Covers, QuotaPlugin
from ...framework.session import Session
from ...model import resources
from ...model.job import Job
from ...model.queue import Queue
from ...model.resources import UNLIMITED, Limit, Resource
from ...model.task import Task
from ...policy.hooks import (
    Allocatable,
    JobEnqueueable,
    JobEnqueued,
    Preemptive,
    QueueOrder,
    Reasons,
    Reclaimable,
    ReclaimUnit,
    Vote,
)
from ...policy.model import PluginOption
from ...reasons import Protected, ProtectedBy, Protection, QueueBroken, QueueClosed, QueueLimit, UnschedulableReason
from .admission import Admission
from .admission_backlog import KeptRanks
from .attributes import QueueAttributes, QueueAttributesTable, without_pods
from .guarantees import Guarantees


class QueuePlugin(
    QuotaPlugin, QueueOrder, JobEnqueueable, JobEnqueued, Allocatable, Preemptive, Reclaimable, ReclaimUnit, Reasons
):
    """Base of the queue plugins.

    A subclass defines limits and deserved shares, which tasks may reclaim, and which units may be evicted.
    """

    queue_fields: ClassVar[frozenset[str]] = frozenset({"capability", "deserved", "guarantee"})
    refusal_covers = Covers.LOWER_PRIORITIES
    in_requests = True
    limit_name = "capability"
    """The name of a queue's limit in reasons."""
    admission_name = "capability"
    """The name of the limit at admission in reasons."""
    admission_factor = 1.0
    limits_are_fixed = False
    """Whether the limits of queues depend on queues and nodes alone; the limits at admission always do."""
    _table: QueueAttributesTable | None = None
    queue_attributes: QueueAttributesTable
    _ranks: dict[str, KeptRanks]
    """Queue → its waiting jobs in the order of the last ranking."""

    @classmethod
    def fields_read(cls, option: PluginOption) -> frozenset[str]:
        return super().fields_read(option) | ({"priority"} if option.enabled("enableQueueOrder") else frozenset())

    def open(self, session: Session) -> None:
        """Fill the attributes of all queues; the last cycle's table is reused if queues and nodes are unchanged."""
        self.session = session
        if self._table is None or not self._table.is_valid_for(session):
            self._table = self.queue_attributes = QueueAttributesTable(session, self)
            self.arrange()
            self._ranks = {}
        self.queue_attributes.open(session)
        self.guarantees = Guarantees(session, self.queue_attributes)
        self.divide()
        self.admission = Admission(
            session,
            self.queue_attributes,
            self,
            self._ranks,
            factor=self.admission_factor,
            limit_name=self.admission_name,
        )
        self.publish()

    # -------------------------------------------------------------------------------------------------- for subclasses

    def arrange(self) -> None:
        """Set what depends on queues and nodes alone (parents, limits), before the attributes are filled."""
        raise NotImplementedError

    def divide(self) -> None:
        """Compute what depends on the queues' holdings and requests (proportion's deserved shares)."""

    def measure(self, task: Task) -> Resource:
        """Return the amounts of a task that count in its queue: its request."""
        return without_pods(task.request)

    def varies(self, task: Task) -> bool:  # noqa: ARG002
        """Whether the task's amounts depend on its node."""
        return False

    def minimum(self, job: Job) -> Mapping[str, int] | None:
        """Return what a job needs to start: the PodGroup's `minResources`; None if it has none."""
        return None if job.min_resources is None else without_pods(job.min_resources)

    def is_overused(self, attributes: QueueAttributes) -> bool:
        """Whether the queue holds more than it deserves, in the dimension where the ratio is largest."""
        return attributes.share > 1

    def denial(
        self, preemptor: Task, taker: QueueAttributes, unit: Sequence[Task], giver: QueueAttributes
    ) -> Protection | None:
        """Return why `unit` may not be evicted from the queue `giver` for the queue `taker`; None if it may."""
        raise NotImplementedError

    # ---------------------------------------------------------------------------------------------------------- hooks

    def queue_order(self, queue: Queue) -> Any:
        """Order by higher priority, then smaller share, then queues that deserve something."""
        attributes = self.queue_attributes.by_name[queue.name]
        return (-queue.priority, attributes.share, resources.is_empty(attributes.deserved))

    def job_enqueueable(self, job: Job) -> Vote:
        """Whether the quotas admit the job."""
        if self.closed(self.queue_attributes.by_name[job.queue], job) is not None:
            return Vote.REJECT
        return self.admission.vote(job)

    def job_enqueued(self, job: Job) -> None:
        """Reserve the job's minimum."""
        self.admission.admit(job)

    def allocatable(self, queue: Queue, task: Task) -> bool:
        """Whether the queue and its ancestors may hold this task in addition."""
        attributes = self.queue_attributes.by_name[queue.name]
        if self.closed(attributes, self.session.jobs.get(task.job)) is not None:
            return False
        amount = self.queue_attributes.amount(task)
        for one, limit in self.ceilings(attributes):
            if not fits(one, amount, limit):
                return False
        guarantees = self.guarantees
        return not guarantees.total or next(guarantees.short(attributes, task, amount), None) is None

    def reclaimable(self, preemptor: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
        """Return the candidates that may be evicted one after the other, in the given order."""
        permitted: list[Task] = []
        try:
            for task in candidates:
                if self.reclaim_unit(preemptor, (task,)) is None:
                    permitted.append(task)
                    self._add(task, -1)
        finally:
            for task in permitted:
                self._add(task, 1)
        return permitted, Vote.PERMIT if self.queue_attributes.of_task(preemptor) else Vote.REJECT

    def reclaim_unit(self, preemptor: Task, unit: Sequence[Task]) -> Protection | None:
        """Return why the unit, a task or a whole gang judged as one, may not be evicted now; None if it may."""
        taker, giver = self.queue_attributes.of_task(preemptor), self.queue_attributes.of_task(unit[0])
        if taker is None or giver is None:
            return Protected(ProtectedBy.QUEUE, taker.problem if taker else "")
        if problem := taker.problem or giver.problem:
            return Protected(ProtectedBy.QUEUE, problem)
        return self.denial(preemptor, taker, unit, giver)

    def reasons(self, job: Job, task: Task | None) -> Iterator[UnschedulableReason]:
        """Return the rules of the queue that block the placement of `task`; without a task, the admission of `job`."""
        attributes = self.queue_attributes.by_name[job.queue]
        if (closed := self.closed(attributes, job)) is not None:
            yield closed
        elif task is None:
            yield from self.admission.limits(job)
        else:
            yield from (limits := list(self.limits(attributes, task)))
            if not limits:
                yield from self.guarantees.short(attributes, task, self.queue_attributes.amount(task))

    def quota_bounds(self, job: Job, why: UnschedulableReason) -> tuple[HoldingsBound, ...]:
        """Return how much a queue may hold at most so that the job is within the limit that refused it."""
        if not isinstance(why, QueueLimit) or not self.in_requests:
            return ()
        is_admission = self.session.is_pending(job)
        if not (is_admission or self.limits_are_fixed):
            return ()
        if self.queue_attributes.by_name[why.queue].children:
            return (HoldingsBound(why.queue),)
        wanted = why.requested if is_admission else self.least_wanted(job, why.dimension)
        return (HoldingsBound(why.queue, why.dimension, why.amount - wanted, needed=is_admission),)

    def least_wanted(self, job: Job, dimension: str) -> int:
        """Return the least amount of a dimension with which a cycle can place tasks of the job."""
        hooks = self.session.hooks
        can_place_single_tasks = hooks.job_ready(job) or hooks.job_pipelined(job)
        tasks = 1 if can_place_single_tasks else max(job.lacking, 1)
        return tasks * self._least(job).get(dimension, 0)

    # -------------------------------------------------------------------------------------------------------- helpers

    def _least(self, job: Job) -> Resource:
        """Return, for each dimension that a waiting task requests, the least amount among the job's waiting tasks."""
        amounts = [self.queue_attributes.amount(task) for task in job.waiting_shapes.values() if not task.best_effort]
        names = {name for amount in amounts for name, value in amount.items() if value > 0}
        return {name: min(amount.get(name, 0) for amount in amounts) for name in names}

    def closed(self, attributes: QueueAttributes, job: Job | None = None) -> QueueClosed | QueueBroken | None:
        """Return why no new job (or, if given, no task of `job`) is scheduled, whatever the amounts; None if open."""
        drains = attributes.drains_since
        if attributes.problem and (drains is None or job is None or job.creation >= drains):
            return QueueBroken(attributes.name, attributes.problem)
        if not attributes.queue.is_open:
            return QueueClosed(attributes.name, attributes.queue.object.status.state)
        return None

    def limits(self, attributes: QueueAttributes, task: Task) -> Iterator[QueueLimit]:
        """Return the limits of the queue or an ancestor that the task would exceed, nearest first."""
        amount = self.queue_attributes.amount(task)
        for one, limit in self.ceilings(attributes):
            yield from over_limit(one, amount, limit, self.limit_name)

    def ceilings(self, attributes: QueueAttributes) -> Sequence[tuple[QueueAttributes, Mapping[str, Limit]]]:
        """Return the queues whose limits apply to tasks of this queue, nearest first, each with its limits."""
        return [(one, one.limit) for one in attributes.ancestors]

    def amount(self, unit: Sequence[Task]) -> Resource:
        """Return the amounts of a unit that count in its queue. Do not change the result: tasks of a shape share it."""
        if len(unit) == 1:  # the usual case among thousands of candidates
            return self.queue_attributes.amount(unit[0])
        total: Resource = {}
        for task in unit:
            for name, value in self.queue_attributes.amount(task).items():
                total[name] = total.get(name, 0) + value
        return total

    def publish(self) -> None:
        """Write the numbers of every queue into the decisions."""
        queues, published = self.session.queues, self.session.decisions.queues
        for attributes in self.queue_attributes:
            if attributes.name not in queues:
                continue  # a root that was created here
            if attributes.published is None:
                attributes.published = QueueNumbers(
                    allocated=dict(attributes.allocated),
                    deserved=dict(attributes.deserved),
                    request=dict(attributes.request),
                    guarantee=dict(attributes.guarantee),
                    capability={name: amount for name, amount in attributes.limit.items() if amount is not UNLIMITED},
                    share=attributes.share,
                    overused=self.is_overused(attributes),
                )
            published[attributes.name] = attributes.published

    def _add(self, task: Task, sign: int) -> None:
        attributes = self.queue_attributes.of_task(task)
        assert attributes is not None
        self.queue_attributes.version += 1
        attributes.add(self.queue_attributes.amount(task), sign)


def fits(attributes: QueueAttributes, amount: Mapping[str, int], limits: Mapping[str, Limit]) -> bool:
    """Whether the queue would be within `limits` with `amount` more, in every dimension of the amount."""
    held = attributes.allocated
    for dimension, wanted in amount.items():  # called for every task that is placed
        limit = limits.get(dimension, 0)
        if wanted > 0 and limit is not UNLIMITED and held.get(dimension, 0) + wanted > limit:
            return False
    return True


def over_limit(
    attributes: QueueAttributes, amount: Mapping[str, int], limits: Mapping[str, Limit], name: str
) -> Iterator[QueueLimit]:
    """Return the dimensions in which the queue would exceed `limits` with `amount` more; an absent limit is zero."""
    held = attributes.allocated
    for dimension, wanted in amount.items():
        limit = limits.get(dimension, 0)
        if wanted > 0 and limit is not UNLIMITED and held.get(dimension, 0) + wanted > limit:
            kept = attributes.kept_for_others(dimension, limit)
            yield QueueLimit(attributes.name, dimension, held.get(dimension, 0), wanted, name, limit, 0, kept)
