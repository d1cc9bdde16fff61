"""Iterate over the jobs of an action in policy order until the cycle's budget is used up.

The policy's current order of queues comes first, then its order of jobs. In the cycles after one that was cut, queues,
and in a queue namespaces, take turns until the action has tried all jobs: those with the fewest useless steps are next,
so that no tenant's jobs keep others from being tried. Steps that placed no task are useless, including those of
admissions: thousands of admissions must not delay other jobs. A job that exceeded the limit of one job is tried last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..model.job import Job
from ..model.queue import Queue
from .priority_queue import LazyPriorityQueue
from .session import Session


class ServingOrder:
    """The jobs of one action: iterate and try each. `again` serves a job once more."""

    def __init__(self, session: Session, jobs: Iterable[Job]) -> None:
        self._session = session
        self._queue_key = _least_in_vain(session) if session.backlog.takes_turns else session.hooks.queue_key
        self._late: list[Job] = []
        late = session.backlog.late_jobs
        by_queue: dict[str, list[Job]] = {}
        for job in jobs:
            if job.key in late:
                self._late.append(job)
            else:
                by_queue.setdefault(job.queue, []).append(job)
        self._open(by_queue)

    def _open(self, by_queue: dict[str, list[Job]]) -> None:
        self._jobs = {name: self._of_queue(name, jobs) for name, jobs in by_queue.items()}
        queues = (self._session.queues[name] for name in by_queue)
        version = None if self._session.backlog.takes_turns else self._session.changes.__len__
        self._queues = LazyPriorityQueue(self._queue_key, queues, version=version)

    def __iter__(self) -> Iterator[tuple[Queue, Job]]:
        work, backlog = self._session.work, self._session.backlog
        binds, evictions = self._session.decisions.binds, self._session.decisions.evictions
        while self._queues or self._late:
            if not self._queues:
                late, self._late = self._late, []
                self._open({job.queue: [other for other in late if other.queue == job.queue] for job in late})
            queue = self._queues.first()
            jobs = self._jobs[queue.name]
            if not jobs:
                self._queues.pop()
                continue
            if not work.may_go_on():
                return
            job = jobs.pop()
            spent, bound, evicted = work.spent, len(binds), len(evictions)
            yield queue, job
            if work.spent > spent and len(binds) == bound and len(evictions) == evicted:
                backlog.count_useless(queue.name, job.namespace, work.spent - spent)
            if (follower := self._session.next_in_line(job)) is not None:
                jobs.push(follower)

    def again(self, job: Job) -> None:
        """Serve the job once more, at its position."""
        self._jobs[job.queue].push(job)

    def queues(self) -> Iterator[list[Job]]:
        """Yield the jobs of one queue after the other."""
        while self._queues:
            jobs = self._jobs[self._queues.pop().name]
            found = []
            while jobs:
                found.append(jobs.pop())
            yield found
        if self._late:
            yield self._late

    def leave_out(self, queue: Queue) -> None:
        """Do not serve the queue any more."""
        self._jobs[queue.name] = self._of_queue(queue.name, ())

    def rest_of(self, queue: Queue) -> Iterator[Job]:
        """Yield the remaining jobs of a queue, which is not served any more."""
        jobs = self._jobs[queue.name]
        while jobs and self._session.work.may_go_on():
            yield jobs.pop()

    def _of_queue(self, queue: str, jobs: Iterable[Job]) -> LazyPriorityQueue[Job] | _NamespacesOfQueue:
        """Return the jobs of a queue in the policy's order; after a cut cycle, those of its namespaces in turns."""
        if self._session.backlog.takes_turns:
            return _NamespacesOfQueue(self._session, queue, jobs)
        hooks, some = self._session.hooks, list(jobs)
        keys = hooks.job_keys(some) if len(some) > 1 else None
        return LazyPriorityQueue(hooks.job_key, some, keys, self._session.changes.__len__)


def _least_in_vain(session: Session) -> Callable[[Queue], tuple[Any, ...]]:
    """Return the key of queues that take turns: the fewest useless steps, then the policy's order."""
    useless_steps, queue_key = session.backlog.useless_steps, session.hooks.queue_key
    return lambda queue: (useless_steps(queue.name), *queue_key(queue))


class _NamespacesOfQueue:
    """The jobs of one queue whose namespaces take turns.

    Each namespace orders its own jobs, so that a turn changes only one key.
    """

    def __init__(self, session: Session, queue: str, jobs: Iterable[Job]) -> None:
        self._session = session
        by_namespace: dict[str, list[Job]] = {}
        for job in jobs:
            by_namespace.setdefault(job.namespace, []).append(job)
        key = session.hooks.job_key
        self._jobs = {name: LazyPriorityQueue(key, some) for name, some in by_namespace.items()}
        useless_steps = session.backlog.useless_steps
        self._names = LazyPriorityQueue(lambda name: (useless_steps(queue, name), name), by_namespace)

    def __len__(self) -> int:
        return len(self._names)

    def push(self, job: Job) -> None:
        jobs = self._jobs.setdefault(job.namespace, LazyPriorityQueue(self._session.hooks.job_key))
        if not jobs:
            self._names.push(job.namespace)
        jobs.push(job)

    def pop(self) -> Job:
        """Remove and return the next job."""
        name = self._names.pop()
        jobs = self._jobs[name]
        job = jobs.pop()
        if jobs:
            self._names.push(name)
        return job
