"""Which jobs a cycle serves, and about which of these it decides.

1. A job is served if it has a PodGroup, and a queue that accepts the job's namespace. Other jobs get a reason to wait.
2. Of the served jobs, the cycle decides about those for which an action may have work, without the jobs that no change
   could have helped since their refusal (`scheduler.backlog.view`).
3. Once the plugins are open, further jobs join: those whose queues now deserve enough, and those behind a tried job in
   its line.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Mapping

from ..backlog.quotas import Excess
from ..backlog.reservations import Reservations
from ..backlog.view import BacklogView
from ..model.cluster import Cluster
from ..model.job import Job
from ..model.names import NAMESPACES
from ..model.queue import ROOT, Queue
from ..model.sums import Contribution, QueueSums
from ..model.task import HOLDING, TaskStatus
from ..placement.empty_nodes import EmptyNodes
from ..reasons import NoGroup, QueueBroken, Refusal


class JobSelection:
    """The jobs of one cycle.

    Attributes:
        jobs: Jobs with a PodGroup and an existing queue.
        undecided: The jobs that the cycle decides about, sorted by key.
        uncovered: Jobs that may reserve more than their pods request, sorted by key.
        reservations: The reservations of these jobs.
        refusals: Job → why it waits, for jobs that are not served, and for waiting jobs that the cycle skips.
    """

    def __init__(self, cluster: Cluster, queues: Mapping[str, Queue], backlog: BacklogView) -> None:
        self._sums, self._backlog = cluster.sums(), backlog
        self.jobs: Mapping[str, Job] = cluster.jobs
        self.undecided: list[Job] = []
        self._rejected: list[Job] = []
        """Jobs whose queue exists but does not accept the job's namespace."""
        self._left_out: set[str] = set()
        self.refusals = backlog.passed_over(self._sums.undecided)
        self._select(queues)
        self.uncovered = self.served(self._sums.uncovered)
        self.reservations = Reservations(self.uncovered, backlog.lapses, backlog.now)

    def _select(self, queues: Mapping[str, Queue]) -> None:
        jobs, left_out, undecided = self.jobs, self._left_out, self._sums.undecided
        restricted = [name for name, queue in queues.items() if queue.namespaces is not None]
        for key in sorted(self._backlog.to_decide(undecided)):
            job = jobs[key]
            if job.group is None:
                left_out.add(key)
                if job.by_status.get(TaskStatus.PENDING):
                    self.refusals[key] = Refusal((NoGroup(key),))
                continue
            problem = "" if job.queue in queues else "does not exist"
            # running jobs continue when a queue begins to restrict its namespaces
            if restricted and not problem and not any(status & HOLDING for status in job.by_status):
                problem = _rejection(job, queues)
                if problem:
                    self._rejected.append(job)
            if not problem:
                self.undecided.append(job)
                continue
            left_out.add(key)
            if job.is_pending or job.by_status.get(TaskStatus.PENDING):
                self.refusals[key] = Refusal((QueueBroken(job.queue, problem),))
        if not self._sums.by_queue.keys() <= queues.keys():  # some running jobs have no queue: it was deleted
            self.jobs = {key: job for key, job in jobs.items() if job.queue in queues and key not in left_out}
        elif left_out:
            self.jobs = {key: job for key, job in jobs.items() if key not in left_out}

    # ------------------------------------------------------------------------------------------------------- joining

    def join_waiting(self, excess: Excess, empty: Callable[[], EmptyNodes]) -> None:
        """Add the waiting jobs whose queues may now deserve enough for them, or for which less is reserved.

        Args:
            excess: Returns what a queue held beyond what it deserves when the cycle began.
            empty: Returns the nodes without their pods.
        """
        backlog = self._backlog
        woken = backlog.wake_by_shares(excess)
        if backlog.entries and not backlog.turns and (queues := self._queues_with_new_void_reservations(empty())):
            woken |= backlog.wake_by_reservations(queues)
        for key in woken:
            self.refusals.pop(key, None)
            if key in self._sums.undecided and key in self.jobs:
                self._join(self.jobs[key])

    def join_next_in_line(self, job: Job, *, is_admitted: bool) -> Job | None:
        """Add and return the job behind a tried one if that job may be admitted or get room too; None otherwise."""
        got_nothing = not is_admitted and len(job.by_status.get(TaskStatus.PENDING, ())) == len(job.tasks)
        follower = self.jobs.get(self._backlog.next_in_line(job.key, refused=got_nothing))
        if follower is not None:
            self._join(follower)
            self.refusals.pop(follower.key, None)
        return follower

    def _join(self, job: Job) -> None:
        bisect.insort(self.undecided, job, key=lambda other: other.key)

    def _queues_with_new_void_reservations(self, empty: EmptyNodes) -> set[str]:
        """Return the queues of admitted jobs whose pods no node can hold, as far as that is new since their last trial.

        What such a job has reserved counts against other jobs until its pods exist. Two jobs that no node can hold
        would otherwise wake each other for ever.
        """
        waiting, backlog = self._sums.waiting, self._backlog
        changed = (job for job in self.undecided if job.key not in backlog.entries or job.key in backlog.due)
        unknown = (job for job in changed if not backlog.was_unplaceable(job.key))
        admitted = (job for job in unknown if job.key in waiting.get(job.queue, ()))
        return {job.queue for job in admitted if empty.why_never(job) is not None}

    # ------------------------------------------------------------------------------------------------------- queries

    def to_try(self) -> list[Job]:
        """Return the jobs for which this action may have work and that it has not tried in an earlier, cut cycle."""
        return self._backlog.not_tried(self.undecided)

    def served(self, keys: Iterable[str]) -> list[Job]:
        """Return the jobs of this cycle with these keys, in the order of their keys."""
        return [self.jobs[key] for key in sorted(keys) if key in self.jobs]

    @property
    def reserving(self) -> list[Job]:
        """Return the jobs that may have a reservation for capacity that they do not hold, sorted by key."""
        return self.served(self._sums.reserving)

    @property
    def considered(self) -> set[str]:
        """Return the jobs whose refusal may differ from that of the last cycle; other jobs keep the same `Refusal`."""
        return {job.key for job in self.undecided} | self._left_out | self._backlog.awake | self._backlog.due

    def sums_by_queue(self) -> dict[str, QueueSums]:
        """Return the sums of what the jobs of each queue hold, request and reserve."""
        by_queue = dict(self._sums.by_queue)
        for name in {job.queue for job in self._rejected}:
            left_out = (Contribution.in_requests(job) for job in self._rejected if job.queue == name)
            by_queue[name] = by_queue[name].without(left_out)
        return by_queue


def _rejection(job: Job, queues: Mapping[str, Queue]) -> str:
    """Return why the list of namespaces of the queue, or of its nearest ancestor with one, rejects the job."""
    namespace, visited = job.key.partition("/")[0], set()
    queue: Queue | None = queues[job.queue]
    while queue is not None and queue.name not in visited:
        visited.add(queue.name)
        if queue.namespaces is not None:
            listed = ", ".join(sorted(queue.namespaces)) or "none"
            rule = f"accepts only jobs of the namespaces that {NAMESPACES} of queue {queue.name} names ({listed})"
            return "" if namespace in queue.namespaces else f"{rule}, not of {namespace}"
        queue = queues.get(queue.parent or ROOT)
    return ""
