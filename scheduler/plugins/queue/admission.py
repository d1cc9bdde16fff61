"""Admission: which waiting jobs the quota of a queue and its ancestors lets in.

The one rule: what an admitted job has reserved counts against another of its queue only where it would be served before
it. (In Volcano it counts always, so that a late job of high priority is locked out by low ones that wait for room
themselves.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...framework.session import Session
from ...model import resources
from ...model.job import Job, PodGroupPhase
from ...model.resources import UNLIMITED, Limit, Limits
from ...policy.hooks import Vote
from ...reasons import QueueLimit
from .admission_backlog import WaitingLine
from .attributes import Accounts, Counting, QueueAttributes


class Admission:
    """Reservations of one cycle, and the verdicts on waiting jobs.

    ``factor`` multiplies the limits (capacity-card's ``overCommitFactor``); ``limit_name`` is what they are called.
    """

    def __init__(
        self, session: Session, queue_attributes: Accounts, counting: Counting, *, factor: float = 1.0, limit_name: str
    ) -> None:
        self._session = session
        self._queue_attributes = queue_attributes
        self._counting = counting
        exact = resources.factor_of(factor)
        self._limits: dict[str, Limits] = {
            attributes.name: {
                name: limit if limit is UNLIMITED else resources.times(limit, exact)
                for name, limit in attributes.limit.items()
            }
            for attributes in queue_attributes
        }
        self._limit_name = limit_name
        self._line = WaitingLine(session)
        for job in queue_attributes.reserving:
            reserved = queue_attributes.reservation(job)
            if any(reserved.values()):
                self._reserve(queue_attributes.by_name[job.queue], reserved)
                if job.phase == PodGroupPhase.INQUEUE:
                    self._line.add(job, reserved)

    def admit(self, job: Job) -> None:
        """A job has been let in: what it needs is reserved from now on."""
        needed = self._counting.minimum(job)
        if needed is not None:
            self._reserve(self._queue_attributes.by_name[job.queue], self._queue_attributes.ungated(job, dict(needed)))

    def vote(self, job: Job) -> Vote:
        """Whether the quotas let the job in; one that does not say what it needs is let in."""
        return Vote.PERMIT if next(self.limits(job), None) is None else Vote.REJECT

    def limits(self, job: Job) -> Iterator[QueueLimit]:
        """The limits that keep the job out, nearest queue first."""
        needed = self._counting.minimum(job)
        if not needed:
            return
        later = self._line.behind(job)
        for attributes in self._queue_attributes.by_name[job.queue].ancestors:
            for name, wanted in needed.items():
                # Of a job that takes either of several cards, the quotas of all of them together are asked.
                parts = (name, *name.split("|")) if "|" in name else (name,)
                held, elastic = _sum(attributes.allocated, parts), _sum(attributes.elastic, parts)
                kept = _sum(attributes.inqueue, parts) - _sum(later, parts)
                limit = _limit(self._limits[attributes.name], parts)
                if wanted > 0 and limit is not UNLIMITED and wanted + held + kept - elastic > limit:
                    yield QueueLimit(attributes.name, name, held - elastic, wanted, self._limit_name, limit, kept)

    def _reserve(self, attributes: QueueAttributes, amount: Mapping[str, int]) -> None:
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
