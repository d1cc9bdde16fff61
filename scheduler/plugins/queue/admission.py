"""Admission: decide which waiting jobs the quotas of a queue and its ancestors admit.

The reservation of an admitted job counts against another job of its queue only if the admitted job is served first. (In
Volcano it always counts, so that low-priority jobs that wait for room block a later high-priority job.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...framework.session import Session
from ...model import resources
from ...model.job import Job, PodGroupPhase
from ...model.resources import UNLIMITED, Limit, Limits
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
            self._reserve(self._queue_attributes.by_name[job.queue], self._queue_attributes.ungated(job, dict(needed)))

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
        for attributes in self._queue_attributes.by_name[job.queue].ancestors:
            for name, wanted in needed.items():
                # A job that accepts one of several cards is checked against the sum of their quotas.
                parts = (name, *name.split("|")) if "|" in name else (name,)
                held, elastic = _sum(attributes.allocated, parts), _sum(attributes.elastic, parts)
                kept = _sum(attributes.inqueue, parts)
                limit = _limit(self._limits[attributes.name], parts)
                if limit is UNLIMITED or wanted + held + kept - elastic <= limit:
                    continue
                kept -= _sum(self._waiting.behind(job), parts)
                kept -= sum(self._uncovered.surplus(job, attributes.name, part, limit) for part in parts)
                if wanted > 0 and wanted + held + kept - elastic > limit:
                    others = attributes.kept_for_others(name, limit)
                    yield QueueLimit(
                        attributes.name, name, held - elastic, wanted, self._limit_name, limit, kept, others
                    )

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
