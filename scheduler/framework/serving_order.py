"""Jobs in the order in which an action serves them, for as long as the cycle's budget lasts.

The one rule: the queue first, then its job, both as the policy orders them at that moment. In the cycles after one that
was cut they take turns instead, until the action has come to all of them: whoever has spent least in vain is next,
queue by queue and in a queue namespace by namespace, so that nobody's jobs keep those of others from being tried. What
gave nobody a node is spent in vain, admissions included: thousands of them are no reason to let others wait.
A job that cost more than a job may is tried last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..model.job import Job
from ..model.queue import Queue
from .priority_queue import LazyPriorityQueue
from .session import Session


class ServingOrder:
    """The jobs of one action. Iterate, and try each; :meth:`again` has a job served once more."""

    def __init__(self, session: Session, jobs: Iterable[Job]) -> None:
        self._session = session
        takes_turns = session.backlog.takes_turns
        self._queue_key = self._least_in_vain if takes_turns else session.hooks.queue_key
        self._of_queue = self._in_turns if takes_turns else self._in_order
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
        self._queues = LazyPriorityQueue(self._queue_key, (self._session.queues[name] for name in by_queue))

    def __iter__(self) -> Iterator[tuple[Queue, Job]]:
        work, backlog = self._session.work, self._session.backlog
        binds, evictions = self._session.decisions.binds, self._session.decisions.evictions
        while self._queues or self._late:
            if not self._queues:
                late, self._late = self._late, []
                self._open({job.queue: [other for other in late if other.queue == job.queue] for job in late})
            queue = self._queues.pop()
            jobs = self._jobs[queue.name]
            if not jobs:
                continue
            if not work.may_go_on():
                return
            job = jobs.pop()
            spent, bound, evicted = work.spent, len(binds), len(evictions)
            yield queue, job
            if work.spent > spent and len(binds) == bound and len(evictions) == evicted:
                backlog.in_vain(queue.name, job.namespace, work.spent - spent)
            self._queues.push(queue)

    def again(self, job: Job) -> None:
        """Serve the job once more, in its place."""
        self._jobs[job.queue].push(job)

    def queues(self) -> Iterator[list[Job]]:
        """The jobs of one queue after the other."""
        while self._queues:
            jobs = self._jobs[self._queues.pop().name]
            found = []
            while jobs:
                found.append(jobs.pop())
            yield found
        if self._late:
            yield self._late

    def leave_out(self, queue: Queue) -> None:
        """Serve the queue no more."""
        self._jobs[queue.name] = self._of_queue(queue.name, ())

    def rest_of(self, queue: Queue) -> Iterator[Job]:
        """The jobs of a queue that have not been served; it is served no more."""
        jobs = self._jobs[queue.name]
        while jobs and self._session.work.may_go_on():
            yield jobs.pop()

    def _least_in_vain(self, queue: Queue) -> tuple[Any, ...]:
        return (self._session.backlog.spent_in_vain(queue.name), *self._session.hooks.queue_key(queue))

    def _in_order(self, _queue: str, jobs: Iterable[Job]) -> LazyPriorityQueue[Job]:
        """The jobs of a queue as the policy orders them."""
        return LazyPriorityQueue(self._session.hooks.job_key, jobs)

    def _in_turns(self, queue: str, jobs: Iterable[Job]) -> _NamespacesOfQueue:
        return _NamespacesOfQueue(self._session, queue, jobs)


class _NamespacesOfQueue:
    """The jobs of one queue, whose namespaces take turns.

    Each namespace has jobs of its own in order, so that a turn of one changes the key of one.
    """

    def __init__(self, session: Session, queue: str, jobs: Iterable[Job]) -> None:
        self._session, self._queue = session, queue
        by_namespace: dict[str, list[Job]] = {}
        for job in jobs:
            by_namespace.setdefault(job.namespace, []).append(job)
        key = session.hooks.job_key
        self._jobs = {name: LazyPriorityQueue(key, some) for name, some in by_namespace.items()}
        self._names = LazyPriorityQueue(self._key, by_namespace)

    def __len__(self) -> int:
        return len(self._names)

    def push(self, job: Job) -> None:
        jobs = self._jobs.setdefault(job.namespace, LazyPriorityQueue(self._session.hooks.job_key))
        if not jobs:
            self._names.push(job.namespace)
        jobs.push(job)

    def pop(self) -> Job:
        """Take out the next job."""
        name = self._names.pop()
        jobs = self._jobs[name]
        job = jobs.pop()
        if jobs:
            self._names.push(name)
        return job

    def _key(self, name: str) -> tuple[Any, ...]:
        return (self._session.backlog.spent_in_vain(self._queue, name), name)
