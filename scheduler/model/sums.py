"""Sums of what the jobs of each queue hold and request, and the jobs that may need work, kept between cycles.

With these sums, a cycle's cost depends on the number of changes, not on the number of running jobs.

The one rule: the sums equal those computed anew from all jobs. Each change of a job is reported at once (`changed`).
A cycle changes jobs too, but restores them at its end.

A job reserves capacity from its admission until its pods hold what it needs. The sums kept between cycles and the queue
plugins share the functions for that, so that they agree; some plugins measure in whole cards (`Measure`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from .job import Job, PodGroupPhase
from .resources import PODS, Resource, add_to, exceeded_part, smallest, take_from, total_of
from .task import HOLDING, Task, TaskStatus

Measure = Callable[[Task], Mapping[str, int]]
"""Returns the amounts that a task uses of quotas."""


def is_reserving(job: Job, phase: str) -> bool:
    """Whether a job in this phase reserves what it needs to start but does not hold yet."""
    return phase == PodGroupPhase.INQUEUE or (
        phase == PodGroupPhase.RUNNING and job.count(HOLDING) >= job.min_available
    )


def request_of(task: Task) -> Mapping[str, int]:
    """Return the task's request, without `pods`."""
    return task.request


def ungated(job: Job, amount: Resource, measure: Measure = request_of) -> Resource:
    """Return an amount minus the requests of the job's gated pods, at least zero."""
    if not job.gated:
        return amount
    waiting = job.by_status.get(TaskStatus.PENDING, {}).values()
    return exceeded_part(amount, total_of(measure(task) for task in waiting if task.gated))


class Contribution(NamedTuple):
    """The contribution of one job to the sums of its queue."""

    held: Resource
    needed: Resource
    """The part of `held` that the job needs to start; empty if the job has no minimum."""
    requested: Resource
    """The amounts that the job's pending tasks request, and its terminating tasks, whose owners create them again.

    Otherwise, the share by weight of every other queue would rise while a victim terminates, and then fall again.
    """
    reserved: Resource
    """The part of the job's reservation that it does not hold yet; empty if the job is `Sums.uncovered`."""

    @classmethod
    def of(
        cls,
        held: Resource,
        minimum: Mapping[str, int] | None,
        requested: Resource,
        reserved: Resource | None = None,
    ) -> Contribution:
        needed = smallest(held, minimum, missing_is_unlimited=False) if minimum else {}
        return cls(held, needed, requested, reserved or {})

    @classmethod
    def in_requests(cls, job: Job) -> Contribution:
        """Return the contribution of a job, measured by the requests of its pods."""
        reserved = _reservation_of(job) if _may_reserve(job) and not _is_uncovered(job) else {}
        leaving = job.by_status.get(TaskStatus.RELEASING, {}).values()
        requested = total_of([job.pending_request, *(it.request for it in leaving)]) if leaving else job.pending_request
        return cls.of(dict(job.allocated), job.min_resources, requested, reserved)


@dataclass(slots=True)
class QueueSums:
    """The sums of the parts of a queue's jobs, and the number of these jobs. A zero amount may remain as 0."""

    jobs: int = 0
    held: Resource = field(default_factory=dict)
    needed: Resource = field(default_factory=dict)
    requested: Resource = field(default_factory=dict)
    reserved: Resource = field(default_factory=dict)

    def add(self, part: Contribution) -> None:
        self.jobs += 1
        add_to(self.held, part.held)
        add_to(self.needed, part.needed)
        add_to(self.requested, part.requested)
        add_to(self.reserved, part.reserved)

    def subtract(self, part: Contribution) -> None:
        self.jobs -= 1
        take_from(self.held, part.held)
        take_from(self.needed, part.needed)
        take_from(self.requested, part.requested)
        take_from(self.reserved, part.reserved)

    def without(self, parts: Iterable[Contribution]) -> QueueSums:
        """Return the sums without these parts."""
        left = QueueSums(self.jobs, dict(self.held), dict(self.needed), dict(self.requested), dict(self.reserved))
        for part in parts:
            left.subtract(part)
        return left


class Sums:
    """The sums of all queues with jobs, by name.

    Attributes:
        undecided: Keys of jobs for which an action may have work (not `Job.needs_nothing`), or without a PodGroup.
        reserving: Keys of jobs that may have a reservation for capacity that they do not hold.
        uncovered: Keys of the `reserving` jobs whose pods request less than the job reserves.
        waiting: Queue → job → `Part.reserved`, for jobs that wait for room with a reservation.
    """

    def __init__(self) -> None:
        self.by_queue: dict[str, QueueSums] = {}
        self.undecided: set[str] = set()
        self.reserving: set[str] = set()
        self.uncovered: set[str] = set()
        self.waiting: dict[str, dict[str, Resource]] = {}
        self._parts: dict[str, tuple[str, Contribution]] = {}
        self._changed: set[str] = set()

    def changed(self, key: str) -> None:
        """Record that a job was added, deleted or changed."""
        self._changed.add(key)

    def refresh(self, jobs: Mapping[str, Job]) -> set[str]:
        """Apply the recorded changes; return the keys of the jobs that changed."""
        changed, self._changed = self._changed, set()
        for key in changed:
            self._drop(key)
            if (job := jobs.get(key)) is not None:
                self._put(job)
        return changed

    def _put(self, job: Job) -> None:
        if job.group is None or not job.needs_nothing:
            self.undecided.add(job.key)
        if job.group is None:
            return
        if _may_reserve(job):
            self.reserving.add(job.key)
            if _is_uncovered(job):
                self.uncovered.add(job.key)
        part = Contribution.in_requests(job)
        if part.reserved and job.phase == PodGroupPhase.INQUEUE:
            self.waiting.setdefault(job.queue, {})[job.key] = part.reserved
        self._parts[job.key] = (job.queue, part)
        of_queue = self.by_queue.get(job.queue)
        if of_queue is None:
            of_queue = self.by_queue[job.queue] = QueueSums()
        of_queue.add(part)

    def _drop(self, key: str) -> None:
        self.undecided.discard(key)
        self.reserving.discard(key)
        self.uncovered.discard(key)
        if key not in self._parts:
            return
        queue, part = self._parts.pop(key)
        self.by_queue[queue].subtract(part)
        if (waiting := self.waiting.get(queue)) and waiting.pop(key, None) is not None and not waiting:
            del self.waiting[queue]
        if not self.by_queue[queue].jobs:
            del self.by_queue[queue]


def _may_reserve(job: Job) -> bool:
    """Whether an admitted job may need more than it holds. Without `minResources`, annotations may state its needs."""
    if job.phase not in (PodGroupPhase.INQUEUE, PodGroupPhase.RUNNING):
        return False
    if not job.min_resources:
        return not job.tasks
    return any(exceeded_part(job.min_resources, job.allocated).values())


def _is_uncovered(job: Job) -> bool:
    """Whether the pods of a job that may reserve request less than it reserves."""
    if not job.tasks:
        return True
    missing = exceeded_part(job.min_resources or {}, job.allocated)
    return any(exceeded_part(missing, job.pending_request).values())


def _reservation_of(job: Job) -> Resource:
    """Return what the job has reserved and does not hold yet, without `pods`, which quotas do not limit."""
    if not is_reserving(job, job.phase):
        return {}
    missing = ungated(job, exceeded_part(job.min_resources or {}, job.allocated))
    return {name: amount for name, amount in missing.items() if amount and name != PODS}
