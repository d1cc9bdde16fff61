"""Sum up the reservations of waiting admitted jobs, in serving order and by namespace.

Jobs are ranked once per cycle, when the first result is computed; admission does not change their order. Between cycles
the ranks are kept, and only jobs that have changed are ranked again.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from ...backlog.reservations import requested
from ...framework.session import Session
from ...model import resources
from ...model.job import Job
from ...model.resources import Resource
from ...model.sums import Measure
from ...placement.empty_nodes import EmptyNodes
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
        self._void: dict[str, list[tuple[Job, Resource]]] = {}
        self._sizes: dict[tuple[str, tuple[str, ...]], list[tuple[int, Job]]] = {}

    @property
    def queues(self) -> set[str]:
        """Return the queues with waiting jobs."""
        return {*self._known, *self._more}

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

    def void(self, job: Job, queues: Iterable[str]) -> Resource:
        """Return the sum of reservations in `queues` that do not count against `job`: those of jobs that can never run.

        Reservations of jobs that are served after `job` are left out, since `behind` contains them. They count against
        another job that can never run.
        """
        void = {queue: found for queue in queues if (found := self._void_of(queue))}
        if not void or self._session.shared(EmptyNodes).why_never(job) is not None:
            return {}
        key = self._hooks.job_key(job)
        return resources.total_of(
            reserved
            for queue, found in void.items()
            for other, reserved in found
            if queue != job.queue or self._hooks.job_key(other) <= key
        )

    def largest(
        self, job: Job, queues: Iterable[str], names: tuple[str, ...], now: Iterable[tuple[Job, Resource]] = ()
    ) -> tuple[str, ...]:
        """Return the keys of the two jobs that reserve most of some dimensions, of those that count against `job`.

        They are waiting jobs of `queues`, or in `now`, which this cycle has admitted.
        """
        found = [(-sum(reserved.get(name, 0) for name in names), other.key) for other, reserved in now]
        for queue in queues:
            counting = (pair for pair in self._by_size(queue, names) if self._counts(pair[1], job))
            found += [(-amount, other.key) for amount, other in itertools.islice(counting, 2)]
        return tuple(key for _, key in sorted(found)[:2])

    def _counts(self, other: Job, job: Job) -> bool:
        """Whether the reservation of a waiting job counts against `job`."""
        if other.queue == job.queue and self._hooks.job_key(other) > self._hooks.job_key(job):
            return False
        empty = self._session.shared(EmptyNodes)
        return empty.why_never(other) is None or empty.why_never(job) is not None

    def _by_size(self, queue: str, names: tuple[str, ...]) -> list[tuple[int, Job]]:
        """Return the waiting jobs of a queue with what they reserve of some dimensions, the largest first."""
        if (queue, names) not in self._sizes:
            sizes = [(sum(reserved.get(name, 0) for name in names), job) for job, reserved in self.waiting(queue)]
            self._sizes[queue, names] = sorted((pair for pair in sizes if pair[0]), key=lambda it: (-it[0], it[1].key))
        return self._sizes[queue, names]

    def _void_of(self, queue: str) -> list[tuple[Job, Resource]]:
        """Return the waiting jobs of a queue that can never run, with their reservations."""
        if queue not in self._void:
            empty = self._session.shared(EmptyNodes)
            self._void[queue] = [pair for pair in self.waiting(queue) if empty.why_never(pair[0]) is not None]
        return self._void[queue]

    def waiting(self, queue: str) -> list[tuple[Job, Resource]]:
        """Return the admitted jobs of a queue that wait for room, with their reservations."""
        jobs = self._session.jobs
        known = [(jobs[key], reserved) for key, reserved in self._known.get(queue, {}).items() if key in jobs]
        return known + self._more.get(queue, [])

    def _ranks_of(self, queue: str) -> Ranked:
        if self._ranks is None or queue in self._more or not self._session.is_order_of_state:
            return self._rank(queue)
        kept = self._ranks.setdefault(queue, KeptRanks())
        return kept.ranked(self._known.get(queue, {}), self._session.jobs, self._hooks)

    def _rank(self, queue: str) -> Ranked:
        waiting = self.waiting(queue)
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
        if not self._session.selection.reservations.is_uncovered(job):
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
