"""Iterate over the jobs of an action in policy order until the cycle's budget is used up.

The policy orders queues first, then the jobs of a queue. In the cycles after one that was cut, queues take turns, and
namespaces within a queue, until the action has tried all jobs. The queue and namespace on which the fewest steps were
spent lately are next, so that no tenant's jobs keep other jobs from being tried: a job that is bound after a second of
work has delayed the others as much as one that is refused. Namespaces with equal steps are served in an order that
differs from cycle to cycle, so that no name is always last. A job that exceeded the maximum of one job is tried last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from zlib import crc32

from ..model.job import Job
from ..model.queue import Queue
from .priority_queue import LazyPriorityQueue
from .session import Session


class ServingOrder:
    """Iterator over the jobs of one action. `again` inserts a job once more."""

    def __init__(self, session: Session, jobs: Iterable[Job]) -> None:
        self._session = session
        self._queue_key = _by_steps_spent(session) if session.backlog.takes_turns else session.hooks.queue_key
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
            before = work.spent
            yield queue, job
            backlog.count_steps(queue.name, job.namespace, work.spent - before)
            is_admitted = job.key in self._session.phases
            follower = self._session.selection.join_next_in_line(job, is_admitted=is_admitted)
            if follower is not None:
                jobs.push(follower)

    def again(self, job: Job) -> None:
        """Serve the job once more, in the order that its key then has."""
        self._jobs[job.queue].push(job)

    def queues(self) -> Iterator[list[Job]]:
        """Yield the jobs queue by queue: a list for each queue, and at last one of the jobs that are tried last."""
        while self._queues:
            jobs = self._jobs[self._queues.pop().name]
            found = []
            while jobs:
                found.append(jobs.pop())
            yield found
        if self._late:
            yield self._late

    def leave_out(self, queue: Queue) -> None:
        """Remove the remaining jobs of a queue."""
        self._jobs[queue.name] = self._of_queue(queue.name, ())

    def rest_of(self, queue: Queue) -> Iterator[Job]:
        """Yield and remove the remaining jobs of a queue, while the budget lasts."""
        jobs = self._jobs[queue.name]
        while jobs and self._session.work.may_go_on():
            yield jobs.pop()

    def _of_queue(self, queue: str, jobs: Iterable[Job]) -> LazyPriorityQueue[Job] | _NamespacesOfQueue:
        """Return the jobs of a queue in the policy's order; after a cut cycle, its namespaces take turns."""
        if self._session.backlog.takes_turns:
            return _NamespacesOfQueue(self._session, queue, jobs)
        hooks, of_queue = self._session.hooks, list(jobs)
        keys = hooks.job_keys(of_queue) if len(of_queue) > 1 else None
        return LazyPriorityQueue(hooks.job_key, of_queue, keys, self._session.changes.__len__)


def _by_steps_spent(session: Session) -> Callable[[Queue], tuple[Any, ...]]:
    """Return the key of queues that take turns: fewest steps first, then the policy's order."""
    steps_spent, queue_key = session.backlog.steps_spent, session.hooks.queue_key
    return lambda queue: (steps_spent(queue.name), *queue_key(queue))


class _NamespacesOfQueue:
    """The jobs of one queue whose namespaces take turns.

    Each namespace has a priority queue of its jobs, so that a turn changes only one key.
    """

    def __init__(self, session: Session, queue: str, jobs: Iterable[Job]) -> None:
        self._session = session
        by_namespace: dict[str, list[Job]] = {}
        for job in jobs:
            by_namespace.setdefault(job.namespace, []).append(job)
        key = session.hooks.job_key
        self._jobs = {name: LazyPriorityQueue(key, own_jobs) for name, own_jobs in by_namespace.items()}
        backlog, round_ = session.backlog, session.backlog.round
        self._names = LazyPriorityQueue(
            lambda name: (backlog.steps_spent(queue, name), crc32(f"{round_} {name}".encode()), name), by_namespace
        )

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
