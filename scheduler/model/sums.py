"""What the jobs of each queue hold and ask for, and which jobs a cycle may have something to do for, kept from cycle
to cycle: a cycle costs what has changed, and not what runs.

The one rule: it says what a new one would say that takes in all jobs at once. Whoever changes a job says so
(:meth:`Sums.changed`) in the same breath; a cycle changes jobs too, but takes all of it back in the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from .job import Job, PodGroupPhase
from .resources import Resource, add_to, exceeded_part, smallest, take_from


class Part(NamedTuple):
    """What one job adds to the sums of its queue."""

    held: Resource
    needed: Resource
    """The part of ``held`` that it needs to start; nothing of one that does not say."""
    asked: Resource
    """What its pending tasks ask for."""

    @classmethod
    def of(cls, held: Resource, minimum: Mapping[str, int] | None, asked: Resource) -> Part:
        return cls(held, smallest(held, minimum, missing_is_unlimited=False) if minimum else {}, asked)

    @classmethod
    def in_requests(cls, job: Job) -> Part:
        """The same of a job that counts what its pods request."""
        return cls.of(dict(job.allocated), job.min_resources, job.pending_request)


@dataclass(slots=True)
class QueueSums:
    """The sums of one queue's parts, and how many there are. An amount that has come to nothing may be left as 0."""

    jobs: int = 0
    held: Resource = field(default_factory=dict)
    needed: Resource = field(default_factory=dict)
    asked: Resource = field(default_factory=dict)

    def add(self, part: Part) -> None:
        self.jobs += 1
        add_to(self.held, part.held)
        add_to(self.needed, part.needed)
        add_to(self.asked, part.asked)

    def take(self, part: Part) -> None:
        self.jobs -= 1
        take_from(self.held, part.held)
        take_from(self.needed, part.needed)
        take_from(self.asked, part.asked)

    def without(self, parts: Iterable[Part]) -> QueueSums:
        """The sums of all but some."""
        rest = QueueSums(self.jobs, dict(self.held), dict(self.needed), dict(self.asked))
        for part in parts:
            rest.take(part)
        return rest


class Sums:
    """The sums of all queues that have jobs, by name.

    ``undecided`` and ``reserving`` are keys of jobs: those that do not all run yet (:attr:`Job.needs_nothing`) or have
    no PodGroup, and those that may have room reserved which they do not hold.
    """

    def __init__(self) -> None:
        self.by_queue: dict[str, QueueSums] = {}
        self.undecided: set[str] = set()
        self.reserving: set[str] = set()
        self._parts: dict[str, tuple[str, Part]] = {}
        self._changed: set[str] = set()

    def changed(self, key: str) -> None:
        """A job came, went or changed."""
        self._changed.add(key)

    def refresh(self, jobs: Mapping[str, Job]) -> None:
        """Take in what has changed."""
        if not self._changed:
            return
        for key in self._changed:
            self._drop(key)
            if (job := jobs.get(key)) is not None:
                self._put(job)
        self._changed.clear()

    def _put(self, job: Job) -> None:
        if job.group is None or not job.needs_nothing:
            self.undecided.add(job.key)
        if job.group is None:
            return
        if _may_reserve(job):
            self.reserving.add(job.key)
        part = Part.in_requests(job)
        self._parts[job.key] = (job.queue, part)
        of_queue = self.by_queue.get(job.queue)
        if of_queue is None:
            of_queue = self.by_queue[job.queue] = QueueSums()
        of_queue.add(part)

    def _drop(self, key: str) -> None:
        self.undecided.discard(key)
        self.reserving.discard(key)
        if key not in self._parts:
            return
        queue, part = self._parts.pop(key)
        self.by_queue[queue].take(part)
        if not self.by_queue[queue].jobs:
            del self.by_queue[queue]


def _may_reserve(job: Job) -> bool:
    """Whether an admitted job may need more than it holds."""
    if not job.min_resources or job.phase not in (PodGroupPhase.INQUEUE, PodGroupPhase.RUNNING):
        return False
    return any(exceeded_part(job.min_resources, job.allocated).values())
