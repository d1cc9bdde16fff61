"""Admission: which waiting jobs the quota of a queue and its ancestors lets in.

The one rule: what an admitted job has reserved counts against another of its queue only where it would be served before
it. (In Volcano it counts always, so that a late job of high priority is locked out by low ones that wait for room
themselves.)
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping
from typing import Any

from scheduler.hooks import Vote
from scheduler.model import resources
from scheduler.model.job import INQUEUE, Job
from scheduler.model.resources import Resource
from scheduler.plugins.queue_accounts import Account, Accounts, Counting
from scheduler.reasons import QueueLimit
from scheduler.session import Session


class Admission:
    """Reservations of one cycle, and the verdicts on waiting jobs.

    ``factor`` multiplies the limits (capacity-card's ``overCommitFactor``); ``limit_name`` is what they are called.
    """

    def __init__(
        self, session: Session, accounts: Accounts, counting: Counting, *, factor: float = 1.0, limit_name: str
    ) -> None:
        self._session = session
        self._accounts = accounts
        self._counting = counting
        self._factor = factor
        self._limit_name = limit_name
        self._waiting: dict[str, list[tuple[Job, Resource]]] = {}
        self._ranked: dict[str, tuple[list[Any], list[Resource]]] = {}
        for job in session.jobs.values():
            reserved = accounts.reservation(job)
            if any(reserved.values()):
                self._reserve(accounts.by_name[job.queue], reserved)
                if job.phase == INQUEUE:
                    self._waiting.setdefault(job.queue, []).append((job, reserved))

    def admit(self, job: Job) -> None:
        """A job has been let in: what it needs is reserved from now on."""
        needed = self._counting.minimum(job)
        if needed is not None:
            self._reserve(self._accounts.by_name[job.queue], self._accounts.ungated(job, dict(needed)))

    def vote(self, job: Job) -> Vote:
        """Whether the quotas let the job in; one that does not say what it needs is let in."""
        return Vote.PERMIT if next(self.limits(job), None) is None else Vote.REJECT

    def limits(self, job: Job) -> Iterator[QueueLimit]:
        """The limits that keep the job out, nearest queue first."""
        needed = self._counting.minimum(job)
        if not needed:
            return
        later = self._served_later(job)
        for account in self._accounts.by_name[job.queue].ancestors:
            for name, wanted in needed.items():
                # Of a job that takes either of several cards, the quotas of all of them together are asked.
                parts = (name, *name.split("|")) if "|" in name else (name,)
                held, elastic = _sum(account.allocated, parts), _sum(account.elastic, parts)
                kept = _sum(account.inqueue, parts) - _sum(later, parts)
                limit = _sum(account.limit, parts) * self._factor
                if wanted > 0 and wanted + held + kept - elastic > limit:
                    yield QueueLimit(account.name, name, held - elastic, wanted, self._limit_name, limit, kept)

    def _reserve(self, account: Account, amount: Mapping[str, float]) -> None:
        for one in account.ancestors:
            resources.add_to(one.inqueue, amount)

    def _served_later(self, job: Job) -> Resource:
        """The sum of what jobs of the same queue have reserved that would be served after ``job``."""
        if job.queue not in self._waiting:
            return {}
        key_of = self._session.hooks.job_key
        if job.queue not in self._ranked:
            ranked = sorted(((key_of(other), amount) for other, amount in self._waiting[job.queue]), key=lambda r: r[0])
            sums: list[Resource] = [{}]
            for _, amount in reversed(ranked):
                sums.append(resources.plus(sums[-1], amount))
            self._ranked[job.queue] = ([key for key, _ in ranked], sums[::-1])
        keys, later = self._ranked[job.queue]
        return later[bisect.bisect_right(keys, key_of(job))]


def _sum(resource: Mapping[str, float], names: tuple[str, ...]) -> float:
    return sum(resource.get(name, 0.0) for name in names)
