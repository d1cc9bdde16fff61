"""Sum up the reservations of waiting admitted jobs, in serving order and by namespace.

Jobs are ranked once per cycle, when the first result is computed; admission does not change their order. Between cycles
the ranks are kept, and only jobs that have changed are ranked again.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from ...backlog.reservations import requested
from ...framework.session import Session
from ...model import resources
from ...model.job import Job
from ...model.reserving import Measure
from ...model.resources import Resource
from ...policy.tiers import Hooks


@dataclass(frozen=True, slots=True)
class Ranked:
    """The waiting jobs of a queue, in serving order.

    Attributes:
        keys: The sort keys of the jobs.
        reserved: The reservations of the jobs.
        sums: The sums of the last 0, 1, 2 … reservations, as far as they have been needed.
    """

    keys: list[Any]
    reserved: list[Resource]
    sums: list[Resource] = field(default_factory=lambda: [{}])


class KeptRanks:
    """The ranks of a queue's waiting jobs, kept from one cycle to the next."""

    def __init__(self) -> None:
        self._reserved: Mapping[str, Resource] = {}
        """The reservations of the last cycle. The reservation of a changed job is a new object, even if it is equal."""
        self._key_of: dict[str, tuple[Any, ...]] = {}
        self._keys: list[tuple[Any, ...]] = []

    def ranked(self, reserved: Mapping[str, Resource], jobs: Mapping[str, Job], hooks: Hooks) -> Ranked:
        """Return the ranks of the jobs that have reservations now."""
        before, key_of, keys = self._reserved, self._key_of, self._keys
        changed = [key for key, amount in reserved.items() if before.get(key) is not amount]
        for key in (*changed, *(before.keys() - reserved.keys())):
            if key in before:
                del keys[bisect.bisect_left(keys, key_of.pop(key))]
        key_of.update(zip(changed, hooks.job_keys([jobs[key] for key in changed]), strict=True))
        keys += [key_of[key] for key in changed]
        keys.sort()  # nearly sorted: linear
        self._reserved = dict(reserved)
        return Ranked(list(keys), [reserved[key[-1]] for key in keys])


class WaitingReservations:
    """The admitted jobs of each queue that wait for room, and the reservation of each.

    Args:
        session: The session.
        known: The reservations that the sums of the state contain (`Sums.waiting`), by queue and job.
        ranks: Queue → ranks, if they are kept for later cycles.
    """

    def __init__(
        self,
        session: Session,
        known: Mapping[str, Mapping[str, Resource]],
        ranks: dict[str, KeptRanks] | None = None,
    ) -> None:
        self._session, self._hooks = session, session.hooks
        self._known, self._ranks = known, ranks
        self._more: dict[str, list[tuple[Job, Resource]]] = {}
        self._ranked: dict[str, Ranked] = {}

    def add(self, job: Job, reserved: Resource) -> None:
        """Add the reservation of a waiting job. Add all reservations before the first call of `behind`."""
        self._more.setdefault(job.queue, []).append((job, reserved))

    def behind(self, job: Job) -> Resource:
        """Return the sum of reservations of jobs of the same queue that are served after `job`."""
        if job.queue not in self._ranked:
            self._ranked[job.queue] = self._ranks_of(job.queue)
        ranked = self._ranked[job.queue]
        keys, sums = ranked.keys, ranked.sums
        number = len(keys) - bisect.bisect_right(keys, self._hooks.job_key(job))
        while len(sums) <= number:
            sums.append(resources.plus(sums[-1], ranked.reserved[-len(sums)]))
        return sums[number]

    def _ranks_of(self, queue: str) -> Ranked:
        if self._ranks is None or queue in self._more or not self._session.is_order_of_state:
            return self._rank(queue)
        kept = self._ranks.setdefault(queue, KeptRanks())
        return kept.ranked(self._known.get(queue, {}), self._session.jobs, self._hooks)

    def _rank(self, queue: str) -> Ranked:
        jobs, known = self._session.jobs, self._known.get(queue, {})
        waiting = [(jobs[key], reserved) for key, reserved in known.items() if key in jobs]
        waiting += self._more.get(queue, ())
        keys = self._hooks.job_keys([job for job, _ in waiting])
        ranked = sorted(zip(keys, [reserved for _, reserved in waiting], strict=True), key=itemgetter(0))
        return Ranked([key for key, _ in ranked], [reserved for _, reserved in ranked])


class Uncovered:
    """Reservations without pods, by namespace.

    Against jobs of other namespaces such reservations count for at most an equal share of the limit, so that no
    namespace can reserve a queue without creating pods. Against jobs of their own namespace they count in full. A pool
    is what a limit applies to: a queue or the cluster.
    """

    def __init__(self, session: Session, pools_of: Callable[[str], Iterable[str]]) -> None:
        self._session, self._pools_of = session, pools_of
        self._amounts: dict[str, dict[str, Resource]] = {}
        """Pool → namespace → amounts that are reserved without pods."""
        self._by_namespace: dict[str, WaitingReservations] = {}
        self._namespaces: dict[str, set[str]] = {}

    def add(self, job: Job, reserved: Resource, measure: Measure) -> None:
        """Add the part of a reservation that the job's pods do not cover."""
        if not self._session.reservations.is_uncovered(job):
            return
        uncovered = resources.exceeded_part(reserved, requested(job, measure))
        self._by_namespace.setdefault(job.namespace, WaitingReservations(self._session, {})).add(job, uncovered)
        for pool in self._pools_of(job.queue):
            resources.add_to(self._amounts.setdefault(pool, {}).setdefault(job.namespace, {}), uncovered)

    def surplus(self, job: Job, pool: str, name: str, limit: int) -> int:
        """Return the reserved amount of dimension `name` that does not count against `job` in a pool with `limit`."""
        others = {space: held for space, held in self._amounts.get(pool, {}).items() if space != job.namespace}
        if not others:
            return 0
        share = limit // max(len(self._waiting_namespaces().get(pool, ())), 1)
        ahead = (
            held.get(name, 0) - self._by_namespace[space].behind(job).get(name, 0) for space, held in others.items()
        )
        return sum(max(amount - share, 0) for amount in ahead)

    def _waiting_namespaces(self) -> Mapping[str, set[str]]:
        """Return for each pool the namespaces that have jobs with a reservation or with tasks that do not run yet."""
        if not self._namespaces:
            session, by_queue = self._session, dict[str, set[str]]()
            for key in session.sums.undecided | session.sums.reserving:
                if (job := session.jobs.get(key)) is not None:
                    by_queue.setdefault(job.queue, set()).add(job.namespace)
            for queue, spaces in by_queue.items():
                for pool in self._pools_of(queue):
                    self._namespaces.setdefault(pool, set()).update(spaces)
        return self._namespaces
