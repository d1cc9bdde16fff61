"""Admission: decide which waiting jobs the quotas of a queue and its ancestors admit.

The reservation of an admitted job counts against another job of its queue only if the admitted job is served first. (In
Volcano it always counts, so that low-priority jobs that wait for room block a later high-priority job.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...framework.session import Session
from ...model import resources
from ...model.job import Job, PodGroupPhase
from ...model.resources import UNLIMITED, Limit, Limits, Resource
from ...policy.hooks import Vote
from ...reasons import QueueLimit
from .admission_backlog import KeptRanks, Uncovered, WaitingReservations
from .attributes import Counting, QueueAttributes, QueueAttributesTable


class Admission:
    """Reservations of one cycle, and the votes on waiting jobs.

    `ranks` keeps the ranks of waiting jobs for later cycles. `factor` multiplies the limits (capacity-card's
    `overCommitFactor`); `limit_name` is the limits' name in reasons.
    """

    def __init__(
        self,
        session: Session,
        queue_attributes: QueueAttributesTable,
        counting: Counting,
        ranks: dict[str, KeptRanks],
        *,
        factor: float = 1.0,
        limit_name: str,
    ) -> None:
        self._session = session
        self._queue_attributes = queue_attributes
        self._counting = counting
        exact = resources.factor_of(factor)
        self._limits: dict[str, Limits] = {
            attributes.name: attributes.limit
            if exact == 1
            else {
                name: limit if limit is UNLIMITED else resources.times(limit, exact)
                for name, limit in attributes.limit.items()
            }
            for attributes in queue_attributes
        }
        self._limit_name = limit_name
        self._admitted: list[tuple[Job, Resource]] = []
        """The jobs that this cycle has admitted, with what they have reserved."""
        self._reserved = 0
        """How many reservations were counted."""
        self._last: tuple[object, list[QueueLimit]] = (None, [])
        """The last result of `limits`, with its key: the job and the version of the queues' amounts."""
        self._waiting = WaitingReservations(session, session.sums.waiting if counting.in_requests else {}, ranks)
        self._uncovered = Uncovered(
            session, lambda queue: [one.name for one in queue_attributes.by_name[queue].ancestors]
        )
        for job in queue_attributes.reserving:
            reserved = queue_attributes.reservation(job)
            if any(reserved.values()):
                self._reserve(queue_attributes.by_name[job.queue], reserved)
                self._uncovered.add(job, reserved, queue_attributes.amount)
                if job.phase == PodGroupPhase.INQUEUE:
                    self._waiting.add(job, reserved)

    def admit(self, job: Job) -> None:
        """Record that a job was admitted: reserve its minimum."""
        needed = self._counting.minimum(job)
        if needed is not None:
            amount = self._queue_attributes.ungated(job, dict(needed))
            self._reserve(self._queue_attributes.by_name[job.queue], amount)
            self._admitted.append((job, amount))

    def vote(self, job: Job) -> Vote:
        """Whether the quotas admit the job; a job without `minResources` is admitted."""
        return Vote.REJECT if self.limits(job) else Vote.PERMIT

    def limits(self, job: Job) -> Sequence[QueueLimit]:
        """Return the limits that prevent the job's admission, nearest queue first."""
        key = job.key, self._queue_attributes.version, self._reserved
        if self._last[0] != key:  # the vote on a refused job and its reasons need the same limits
            self._last = key, list(self._exceeded(job))
        return self._last[1]

    def _exceeded(self, job: Job) -> Iterator[QueueLimit]:
        needed = self._counting.minimum(job)
        if not needed:
            return
        taken = self._taken_spare()
        for attributes in self._queue_attributes.by_name[job.queue].ancestors:
            spare = resources.minus(attributes.elastic, taken[attributes.name]) if attributes.name in taken else None
            for name, wanted in needed.items():
                # A job that accepts one of several cards is checked against the sum of their quotas.
                parts = (name, *name.split("|")) if "|" in name else (name,)
                held = _sum(attributes.allocated, parts)
                elastic = _sum(attributes.elastic if spare is None else spare, parts)
                kept = _sum(attributes.inqueue, parts)
                limit = _limit(self._limits[attributes.name], parts)
                if limit is UNLIMITED or wanted + held + kept - elastic <= limit:
                    continue
                kept -= _sum(self._waiting.behind(job), parts) + _sum(self._void(job, attributes), parts)
                kept -= sum(self._uncovered.surplus(job, attributes.name, part, limit) for part in parts)
                if wanted > 0 and wanted + held + kept - elastic > limit:
                    others = attributes.kept_for_others(name, limit)
                    yield QueueLimit(
                        *(attributes.name, name, held - elastic, wanted, self._limit_name, limit, kept, others),
                        reserved_by=self._reserved_by(job, attributes, parts) if kept > 0 else (),
                    )

    def _void(self, job: Job, attributes: QueueAttributes) -> Resource:
        """Return the reservations below a queue that do not count against a job, because their jobs can never run."""
        return self._waiting.void(job, self._below(attributes))

    def _reserved_by(self, job: Job, attributes: QueueAttributes, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the two jobs that reserve most below a queue."""
        by_name = self._queue_attributes.by_name
        now = [pair for pair in self._admitted if attributes in by_name[pair[0].queue].ancestors]
        return self._waiting.largest(job, self._below(attributes), names, now)

    def _below(self, attributes: QueueAttributes) -> list[str]:
        """Return the queues with waiting jobs that are, or are below, a queue."""
        by_name = self._queue_attributes.by_name
        return [name for name in self._waiting.queues if name in by_name and attributes in by_name[name].ancestors]

    def ahead_of(self, job: Job) -> Resource:
        """Return what the jobs of the queue that are served before a job have reserved."""
        return resources.exceeded_part(self._queue_attributes.by_name[job.queue].inqueue, self._waiting.behind(job))

    def _taken_spare(self) -> dict[str, Resource]:
        """Return by queue what is evicted on trial of what jobs hold beyond their minima: `elastic` still counts it."""
        lost: dict[str, Resource] = {}
        for task in self._session.taken:
            resources.add_to(lost.setdefault(task.job, {}), self._queue_attributes.amount(task))
        found: dict[str, Resource] = {}
        for key, amount in lost.items():
            job = self._session.jobs[key]
            left, minimum = self._queue_attributes.held(job), self._counting.minimum(job) or {}
            needed = resources.smallest(resources.plus(left, amount), minimum, missing_is_unlimited=False)
            spare = resources.minus(amount, resources.exceeded_part(needed, left))
            for one in self._queue_attributes.by_name[job.queue].ancestors:
                resources.add_to(found.setdefault(one.name, {}), spare)
        return found

    def _reserve(self, attributes: QueueAttributes, amount: Mapping[str, int]) -> None:
        attributes.is_stale = True
        self._reserved += 1
        for one in attributes.ancestors:
            resources.add_to(one.inqueue, amount)


def _sum(resource: Mapping[str, int], names: tuple[str, ...]) -> int:
    return sum(resource.get(name, 0) for name in names)


def _limit(limits: Limits, names: tuple[str, ...]) -> Limit:
    total = 0
    for name in names:
        limit = limits.get(name, 0)
        if limit is UNLIMITED:
            return UNLIMITED
        total += limit
    return total
