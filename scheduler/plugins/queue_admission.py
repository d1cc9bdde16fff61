"""Admission: which waiting jobs the quota of a queue and its ancestors lets in.

The one rule: what an admitted job has reserved counts against another of its queue only where it would be served
before it. (In Volcano it counts always, so that a late job of high priority is locked out by low ones that wait for
room themselves.)
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from scheduler.hooks import Vote
from scheduler.model import resources
from scheduler.model.job import Job
from scheduler.model.resources import Resource
from scheduler.plugins.queue_accounts import Account, Accounts, reservation_of, ungated, without_pods
from scheduler.reasons import QueueLimit
from scheduler.session import Session

Minimum = Callable[[Job], Mapping[str, float] | None]
"""What a job needs to start, in the dimensions of its queue; None where it does not say."""


def stated_minimum(job: Job) -> Resource | None:
    """The PodGroup's ``minResources``."""
    return None if job.min_resources is None else without_pods(job.min_resources)


class Admission:
    """Reservations of one cycle, and the verdicts on waiting jobs."""

    def __init__(self, session: Session, accounts: Accounts, minimum: Minimum = stated_minimum) -> None:
        self._session = session
        self._accounts = accounts
        self._minimum = minimum
        self._waiting: dict[str, list[tuple[Job, Resource]]] = {}
        self._later: dict[str, tuple[list[Any], list[Resource]]] = {}
        for job in session.jobs.values():
            needed = minimum(job)
            if needed is None:
                continue
            reserved = reservation_of(job, session, needed, job.allocated)
            if any(reserved.values()):
                self._reserve(accounts.by_name[job.queue], reserved)
                if job.phase == "Inqueue":
                    self._waiting.setdefault(job.queue, []).append((job, reserved))

    def admit(self, job: Job) -> None:
        """A job has been let in: what it needs is reserved from now on."""
        needed = self._minimum(job)
        if needed is not None:
            self._reserve(self._accounts.by_name[job.queue], ungated(job, dict(needed)))

    def vote(self, job: Job) -> Vote:
        """Whether the quotas let the job in; one that does not say what it needs is let in."""
        return Vote.PERMIT if next(self.limits(job), None) is None else Vote.REJECT

    def limits(self, job: Job) -> Iterator[QueueLimit]:
        """The limits that keep the job out, nearest queue first."""
        needed = self._minimum(job)
        if needed is None:
            return
        later = self._served_later(job)
        for account in self._accounts.by_name[job.queue].ancestors:
            for name, wanted in needed.items():
                held = account.allocated.get(name, 0.0)
                kept = account.inqueue.get(name, 0.0) - later.get(name, 0.0)
                freed = account.elastic.get(name, 0.0)
                if wanted > 0 and wanted + held + kept - freed > account.limit.get(name, 0.0):
                    limit = account.limit.get(name, 0.0)
                    yield QueueLimit(account.name, name, held - freed, wanted, "capability", limit, kept)

    def _reserve(self, account: Account, amount: Mapping[str, float]) -> None:
        for one in account.ancestors:
            resources.add_to(one.inqueue, amount)

    def _served_later(self, job: Job) -> Resource:
        """The sum of what jobs of the same queue have reserved that would be served after ``job``."""
        if job.queue not in self._waiting:
            return {}
        key_of = self._session.hooks.job_key
        known = self._later.get(job.queue)
        if known is None:
            entries = sorted(
                ((key_of(other), amount) for other, amount in self._waiting[job.queue]), key=lambda e: e[0]
            )
            sums: list[Resource] = [{}]
            for _, amount in reversed(entries):
                sums.append(resources.plus(sums[-1], amount))
            known = self._later[job.queue] = ([key for key, _ in entries], sums[::-1])
        keys, sums = known
        return sums[bisect.bisect_right(keys, key_of(job))]
