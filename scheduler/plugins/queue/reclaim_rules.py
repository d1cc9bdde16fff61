"""Decide which units capacity and proportion reclaim from the queues that borrowed.

A unit is evicted only from a queue that exceeds its deserved share before the eviction and keeps its guarantee after
it. It is never evicted if its queue, with the unit pending again, could reclaim the room back: two queues never play
ping-pong with a pod. `taker` is the reclaiming queue, `giver` the queue that loses the unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from ...framework.session import Session
from ...model import resources
from ...model.queue import Queue
from ...model.resources import Resource
from ...model.task import Task, TaskStatus
from ...policy.hooks import PreemptiveGang
from ...reasons import (
    NotEntitled,
    OfNoUse,
    PingPong,
    Protection,
    QueueGuarantee,
    QueueLimit,
    QueueWithinDeserved,
    UnschedulableReason,
)
from .attributes import QueueAttributes, without_pods
from .plugin import QueuePlugin

_SHAPE = attrgetter("shape")


class Claim(NamedTuple):
    """What a job reclaims for, in all: its members that were placed in this cycle, and the members that it lacks."""

    total: Resource
    placed: Resource


class LendingPlugin(QueuePlugin, PreemptiveGang):
    """Base of the plugins whose queues have a deserved share."""

    lasting: tuple[type, ...] = (QueueWithinDeserved, QueueGuarantee)

    def open(self, session: Session) -> None:
        self._denials: dict[tuple[Hashable, ...], dict[Hashable, Protection | None]] = {}
        """Protections by the preemptor's queue, shape and gang, then by unit; valid until a queue's amounts change."""
        self._denials_at = -1
        self._preemptor: Task | None = None
        self._claim = Claim({}, {})
        self._claim_basis: tuple[Task | None, int, Resource] = (None, 0, {})
        self._denials_of_preemptor: dict[Hashable, Protection | None] = {}
        super().open(session)

    def entitled(self, attributes: QueueAttributes, amount: Mapping[str, int]) -> NotEntitled | QueueLimit | None:
        """Return why the queue may not reclaim `amount` more from other queues; None if it may."""
        raise NotImplementedError

    def never_entitled(self, attributes: QueueAttributes, amount: Mapping[str, int]) -> NotEntitled | QueueLimit | None:
        """Return why the queue may not reclaim `amount`, whatever is evicted for it; None if it may."""
        return self.entitled(attributes, amount)

    def useless(self, taker: QueueAttributes, giver: QueueAttributes, wanted: Mapping[str, int]) -> bool:  # noqa: ARG002
        """Whether room that `giver` frees cannot help `taker`."""
        return False

    def claims(self, taker: QueueAttributes, giver: QueueAttributes, gang: Resource, amount: Resource) -> bool:  # noqa: ARG002
        """Whether `taker` may reclaim some of `amount` from `giver` for a job that still needs `gang`."""
        return True

    def progresses(
        self,
        taker: QueueAttributes,  # noqa: ARG002
        giver: QueueAttributes,  # noqa: ARG002
        gang: Resource,  # noqa: ARG002
        amount: Resource,  # noqa: ARG002
        *,
        breaks: bool,  # noqa: ARG002
    ) -> bool:
        """Whether the eviction takes no more of the deserved share of `giver` than it brings to that of `taker`.

        `breaks`: a whole gang of several pods is evicted.
        """
        return True

    def kept(
        self, taker: QueueAttributes, giver: QueueAttributes, wanted: Mapping[str, int], amount: Resource
    ) -> QueueWithinDeserved | None:
        """Return why `giver` keeps `amount` if it does not exceed its deserved share; None otherwise."""
        raise NotImplementedError

    def preemptive(self, queue: Queue, task: Task) -> UnschedulableReason | None:
        attributes = self.queue_attributes.by_name[queue.name]
        return self.closed(attributes) or self.entitled(attributes, self.queue_attributes.amount(task))

    def preemptive_gang(self, queue: Queue, tasks: Sequence[Task]) -> UnschedulableReason | None:
        attributes, amount = self.queue_attributes.by_name[queue.name], self.amount(tasks)
        job = self.session.jobs.get(tasks[0].job)
        if job is not None and self.session.is_pending(job):  # it is being admitted: admitted jobs come before it
            amount = resources.plus(amount, self.admission.ahead_of(job))
        return self.never_entitled(attributes, amount)

    def denial(
        self, preemptor: Task, taker: QueueAttributes, unit: Sequence[Task], giver: QueueAttributes
    ) -> Protection | None:
        # All pods of one shape in a queue share one result, and so do equal gangs: there may be thousands.
        if self._denials_at != self.queue_attributes.version:
            self._denials.clear()
            self._denials_at, self._preemptor = self.queue_attributes.version, None
        if self._preemptor is not preemptor:
            self._preemptor = preemptor
            self._claim = claim = self._claim_of(preemptor)
            amounts = tuple(claim.total.items()), tuple(claim.placed.items())
            key_of_preemptor = (taker.name, preemptor.shape, amounts, preemptor.preemptable)
            self._denials_of_preemptor = self._denials.setdefault(key_of_preemptor, {})
        key: Hashable = (giver.name, unit[0].shape)
        if len(unit) > 1:
            key = (giver.name, self.session.jobs[unit[0].job].min_available, *[task.shape for task in unit])
        if key not in self._denials_of_preemptor:
            self._denials_of_preemptor[key] = self._denial(preemptor, taker, unit, giver, self.amount(unit))
        return self._denials_of_preemptor[key]

    def _denial(
        self, preemptor: Task, taker: QueueAttributes, unit: Sequence[Task], giver: QueueAttributes, amount: Resource
    ) -> Protection | None:
        wanted = self.queue_attributes.amount(preemptor)
        if not resources.overlap(amount, preemptor.init_request) or self.useless(taker, giver, wanted):
            return OfNoUse()
        for one in giver.ancestors:
            if one.guarantee and one not in taker.ancestors:
                after = resources.minus(one.allocated, amount)
                if not resources.less_equal(one.guarantee, after):
                    return _below_guarantee(one, after)
        if (protection := self.kept(taker, giver, wanted, amount)) is not None:
            return protection
        taker.add(self._claim.placed, -1)
        try:
            return self._objection(preemptor, taker, unit, giver, amount)
        finally:
            taker.add(self._claim.placed, 1)

    def _objection(
        self, preemptor: Task, taker: QueueAttributes, unit: Sequence[Task], giver: QueueAttributes, amount: Resource
    ) -> Protection | None:
        """Return why `giver` keeps the unit, as if nothing of the preemptor's claim were placed yet."""
        gang = self._claim.total
        can_lose = preemptor.preemptable and taker.queue.reclaimable
        if can_lose and (ping_pong := self._ping_pong(gang, taker, unit, giver, amount)) is not None:
            return ping_pong
        if self.claims(taker, giver, gang, amount) and self.progresses(
            taker, giver, gang, amount, breaks=len(unit) > 1
        ):
            return None
        return OfNoUse()

    def _claim_of(self, preemptor: Task) -> Claim:
        """Return what the preemptor's job needs to start: the members that were placed, and those that are lacking.

        If quotas count requests, the lacking members request at most what the job's waiting pods request, but at least
        one task.
        """
        job, before = self.session.jobs[preemptor.job], self._claim_basis
        allocated, pipelined = (
            job.by_status.get(status, {}) for status in (TaskStatus.ALLOCATED, TaskStatus.PIPELINED)
        )
        self._claim_basis = basis = (preemptor, len(allocated) + len(pipelined), job.pending_request)
        if preemptor is before[0] and basis[1] == before[1] and basis[2] is before[2]:
            return self._claim  # asked for again after each eviction for the same task
        placed, members = Resource(), [*allocated.values(), *pipelined.values()]
        for shape, times in Counter(map(_SHAPE, members)).items():
            task = next(task for task in members if task.shape == shape)
            resources.add_to(placed, {n: times * value for n, value in self.queue_attributes.amount(task).items()})
        count, amount = max(job.lacking, 1), self.queue_attributes.amount(preemptor)
        rest = {name: value * count for name, value in amount.items()}
        if count > 1 and self.in_requests:
            waiting = without_pods(job.pending_request)
            if count < len(job.by_status.get(TaskStatus.PENDING, ())) - job.undemanding:
                waiting = {name: max(min(rest[name], waiting.get(name, 0)), value) for name, value in amount.items()}
            rest = waiting
        return Claim(resources.plus(placed, rest), placed)

    def _ping_pong(
        self, wanted: Resource, taker: QueueAttributes, unit: Sequence[Task], giver: QueueAttributes, amount: Resource
    ) -> PingPong | None:
        """Return the protection if `giver`, with the unit pending again, could reclaim back what `taker` reclaims now.

        The preemptor's gang, which requests `wanted`, counts as placed. The queue `giver` would reclaim for its tasks
        one by one: for the first task while that gang holds its amounts, for the other tasks after the gang has been
        evicted. The difference matters in a common ancestor.
        """
        job = self.session.jobs[unit[0].job]
        again = self.amount(unit[: max(1, min(job.min_available, len(unit)))])
        first = self.amount(unit[:1])
        giver.add(amount, -1)
        taker.add(wanted, 1)
        try:
            if not resources.overlap(wanted, again) or self.entitled(giver, first) is not None:
                return None
            if not self.claims(giver, taker, first, wanted) or self.kept(giver, taker, first, wanted) is not None:
                return None
            if not self._entitled_without(taker, wanted, giver, again):
                return None
            name = next((n for n in again if n in giver.deserved), next(iter(again), ""))
            return PingPong(giver.name, name, giver.allocated.get(name, 0), giver.deserved.get(name, 0))
        finally:
            taker.add(wanted, -1)
            giver.add(amount, 1)

    def _entitled_without(
        self, taker: QueueAttributes, wanted: Resource, giver: QueueAttributes, again: Mapping[str, int]
    ) -> bool:
        """Whether `giver` may reclaim `again` after `wanted` has been evicted from `taker`."""
        taker.add(wanted, -1)
        try:
            return self.entitled(giver, again) is None
        finally:
            taker.add(wanted, 1)


def within_deserved(attributes: QueueAttributes, amount: Mapping[str, int]) -> QueueWithinDeserved:
    """Return the protection, with the amounts of the first dimension of `amount` that the queue deserves some of."""
    deserved = attributes.deserved
    name = min(amount, key=lambda one: (not deserved.get(one), one not in deserved), default="")
    return QueueWithinDeserved(attributes.name, name, attributes.allocated.get(name, 0), deserved.get(name, 0))


def not_entitled(attributes: QueueAttributes, amount: Mapping[str, int], dimension: str = "") -> NotEntitled:
    """Return why a queue may not reclaim, with the amounts of `dimension`, or of the first requested dimension."""
    name = dimension or next((n for n, v in amount.items() if v > 0), "")
    held, deserved = attributes.allocated.get(name, 0), attributes.deserved.get(name, 0)
    return NotEntitled(attributes.name, name, held, amount.get(name, 0), deserved)


def _below_guarantee(attributes: QueueAttributes, after: Resource) -> QueueGuarantee:
    name, guaranteed = next((n, v) for n, v in attributes.guarantee.items() if after.get(n, 0) < v)
    return QueueGuarantee(attributes.name, name, attributes.allocated.get(name, 0), guaranteed)
