"""A job: a PodGroup as the scheduler sees it, with its tasks and their counts by status.

Only `add`, `remove` and `move` change tasks and counts, so that the counts always agree with the tasks' statuses.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

import msgspec

from . import names
from .objects import PodGroup
from .resources import Resource
from .task import HOLDING, READY, Statuses, Task, TaskStatus

_encode = msgspec.json.Encoder(order="deterministic").encode
"""Values are equal once encoded if they are equal once read from a record: a phase is text there, not a member."""


class PodGroupPhase(StrEnum):
    """Phases of a PodGroup."""

    PENDING = "Pending"
    INQUEUE = "Inqueue"
    RUNNING = "Running"
    UNKNOWN = "Unknown"
    COMPLETED = "Completed"


class DisruptionMode(StrEnum):
    """How a PodGroup may be preempted, as it requests (Kubernetes' `disruptionMode`)."""

    POD = "pod"
    """Each pod alone, regardless of the gang."""
    GROUP = "group"
    """All pods together, including those above the gang's minimum."""


class SavedCounts(NamedTuple):
    """The tasks of a job by status at one time, and what was computed from them (`Job.save`)."""

    by_status: dict[TaskStatus, dict[str, Task]]
    allocated: Resource
    ready: int
    undemanding: int
    holding: tuple[Task, ...] | None
    pending_request: Resource | None
    pending_change: tuple[Resource, int] | None
    waiting_shapes: dict[bytes, Task] | None
    kind: str | None
    kind_of_any_priority: str | None


class Job:
    """One PodGroup and its tasks.

    A job whose PodGroup was not seen yet has `group` None, and a cycle does not try it.

    Attributes:
        priority: Value of the priority class, or of the default class, or 0.
        allocated: The sum of the requests of the tasks that hold capacity.
    """

    __slots__ = (
        "_holding",
        "_kind",
        "_kind_of_any_priority",
        "_pending_change",
        "_pending_request",
        "_waiting_shapes",
        "allocated",
        "by_status",
        "creation",
        "disruption",
        "gated",
        "group",
        "key",
        "min_available",
        "min_resources",
        "name",
        "namespace",
        "phase",
        "priority",
        "queue",
        "ready",
        "role_minima",
        "tasks",
        "undemanding",
    )

    def __init__(self, key: str) -> None:
        self.key = key
        self.namespace, _, self.name = key.partition("/")
        self.group: PodGroup | None = None
        self.queue = ""
        self.priority = 0
        self.min_available = 0
        self.role_minima: dict[str, int] = {}
        self.min_resources: Resource | None = None
        self.phase = ""
        self.creation = 0.0
        self.disruption: DisruptionMode | None = None
        self.tasks: dict[str, Task] = {}
        self.by_status: dict[TaskStatus, dict[str, Task]] = {}
        self.allocated: Resource = {}
        self._holding: tuple[Task, ...] | None = None
        self._pending_request: Resource | None = None
        self._pending_change: tuple[Resource, int] | None = None
        """A request to add to (1) or subtract from (-1) `_pending_request` when that is next read."""
        self._waiting_shapes: dict[bytes, Task] | None = None
        self._kind: str | None = None
        self._kind_of_any_priority: str | None = None
        self.gated = 0
        self.ready = 0
        """Number of tasks that hold capacity or succeeded."""
        self.undemanding = 0
        """Number of pending tasks that request nothing and are not gated. They never prevent a gang from starting."""

    def describe(self, group: PodGroup, priority: int, minimum: Resource | None, created: float) -> None:
        """Update the job from its PodGroup; `minimum` (minResources) and `created` are parsed already."""
        self.group = group
        self._kind = self._kind_of_any_priority = None
        spec = group.spec
        self.queue = names.reference(spec.queue) or "default"
        self.priority = priority
        self.min_available = spec.min_member
        self.role_minima = dict(spec.min_task_member or {})
        self.min_resources = minimum
        self.phase = group.status.phase
        self.creation = created
        mode = (group.metadata.annotations or {}).get(names.DISRUPTION_MODE, "")
        self.disruption = DisruptionMode(mode) if mode in tuple(DisruptionMode) else None

    def add(self, task: Task) -> None:
        """Add a task in any status."""
        self.tasks[task.key] = task
        self.gated += task.gated
        self._enter(task, task.status)

    def remove(self, task: Task) -> None:
        """Remove a task."""
        del self.tasks[task.key]
        self.gated -= task.gated
        self._leave(task, task.status)

    def move(self, task: Task, status: TaskStatus) -> None:
        """Change the status of a task."""
        before = task.status
        task.status = status
        self._leave(task, before)
        self._enter(task, status)

    def save(self) -> SavedCounts:
        """Return the tasks by status and what is computed from them, for `restore`."""
        return SavedCounts(
            {status: dict(tasks) for status, tasks in self.by_status.items() if tasks},
            dict(self.allocated),
            self.ready,
            self.undemanding,
            self._holding,
            self._pending_request,
            self._pending_change,
            self._waiting_shapes,
            self._kind,
            self._kind_of_any_priority,
        )

    def restore(self, saved: SavedCounts) -> None:
        """Undo all calls of `move` since `save`; the caller sets the status of each task itself."""
        self.by_status, self.allocated, self.ready, self.undemanding = saved[:4]
        self._holding, self._pending_request, self._pending_change = saved[4:7]
        self._waiting_shapes, self._kind, self._kind_of_any_priority = saved[7:]

    @property
    def holding(self) -> tuple[Task, ...]:
        """The tasks that hold capacity, by key."""
        if self._holding is None:  # called for most running jobs in every search for victims
            self._holding = tuple(self.having(HOLDING))
        return self._holding

    @property
    def pending_request(self) -> Resource:
        """The amounts that the job's pending tasks request."""
        known = self._pending_request
        if known is None:  # called for every job in every cycle; most have the same tasks as in the last
            alike: dict[bytes, list[Task]] = {}
            for task in self.by_status.get(TaskStatus.PENDING, {}).values():
                alike.setdefault(task.shape, []).append(task)
            known = {}
            for tasks in alike.values():
                _count(known, tasks[0].request, len(tasks))
            self._pending_request = known
        elif self._pending_change is not None:
            self._pending_request = known = dict(known)  # callers may still use the former dict
            _count(known, *self._pending_change)
            self._pending_change = None
        return known

    @property
    def waiting_shapes(self) -> dict[bytes, Task]:
        """The first pending task of each shape, without gated tasks."""
        if self._waiting_shapes is None:
            found: dict[bytes, Task] = {}
            for task in self.by_status.get(TaskStatus.PENDING, {}).values():
                known = found.setdefault(task.shape, task) if not task.gated else task
                if known is not task and task.place_in_job < known.place_in_job:
                    found[task.shape] = task
            self._waiting_shapes = found
        return self._waiting_shapes

    @property
    def kind(self) -> str:
        """A key that equal waiting jobs share. The value of the job's priority class is not part of the key.

        The key is empty if a task is not pending, is gated or nominated, requests nothing, or depends on other pods for
        its place. Labels are not part of the key: they matter only to pods with terms about other pods.
        """
        if self._kind is None:
            self._kind = kind_of(self)
        return self._kind

    @property
    def kind_of_any_priority(self) -> str:
        """Like `kind`, but without any priority; empty if the pods of the job differ in priority."""
        if self._kind_of_any_priority is None:
            self._kind_of_any_priority = kind_of(self, any_priority=True)
        return self._kind_of_any_priority

    def _enter(self, task: Task, status: TaskStatus) -> None:
        self.by_status.setdefault(status, {})[task.key] = task
        if status & READY:
            self.ready += 1
            if status & HOLDING:
                _count(self.allocated, task.request, 1)
                self._holding = None
        elif status is TaskStatus.PENDING:
            self._pending_changed(task, 1)
            self.undemanding += task.best_effort and not task.gated

    def _leave(self, task: Task, status: TaskStatus) -> None:
        del self.by_status[status][task.key]
        if status & READY:
            self.ready -= 1
            if status & HOLDING:
                _count(self.allocated, task.request, -1)
                self._holding = None
        elif status is TaskStatus.PENDING:
            self._pending_changed(task, -1)
            self.undemanding -= task.best_effort and not task.gated

    def _pending_changed(self, task: Task, sign: int) -> None:
        """Update what depends on the pending tasks after one of them was added (`sign` 1) or removed (-1)."""
        self._waiting_shapes = self._kind = self._kind_of_any_priority = None
        if self._pending_request is None:
            return
        change = self._pending_change
        if change is None:
            self._pending_change = (task.request, sign)
        elif change[0] is task.request and change[1] == -sign:  # a placement is undone
            self._pending_change = None
        else:  # several tasks change before the sum is read
            self._pending_request = self._pending_change = None

    def count(self, statuses: Statuses) -> int:
        """Return the number of tasks with one of `statuses` (a union of flags)."""
        return sum(len(tasks) for status, tasks in self.by_status.items() if status & statuses)

    def having(self, statuses: Statuses) -> Iterator[Task]:
        """Yield the tasks with one of `statuses`, by key."""
        found = [task for status, tasks in self.by_status.items() if status & statuses for task in tasks.values()]
        if len(found) > 1:
            found.sort(key=lambda task: task.key)
        return iter(found)

    @property
    def binding_roles(self) -> dict[str, int]:
        """The role minima that apply: all of them if the gang's minimum is at least their sum, else none."""
        if not self.role_minima:
            return self.role_minima
        return self.role_minima if self.min_available >= sum(self.role_minima.values()) else {}

    @property
    def waiting(self) -> int:
        """Number of tasks that are pipelined onto capacity being freed."""
        return len(self.by_status.get(TaskStatus.PIPELINED, ()))

    @property
    def lacking(self) -> int:
        """Number of tasks with requests that the gang still has to place before it can start."""
        return max(self.min_available - self.ready - self.waiting - self.undemanding, 0)

    @property
    def needs_nothing(self) -> bool:
        """Whether every task is placed or done and the PodGroup's phase agrees.

        No action has work for such a job until one of its tasks is evicted.
        """
        count, by_status = len(self.tasks), self.by_status
        if not count or count < self.min_available:
            return False
        if len(by_status.get(TaskStatus.RUNNING, ())) == count:  # a shortcut for nearly all jobs
            return self.phase == PodGroupPhase.RUNNING
        done = len(by_status.get(TaskStatus.SUCCEEDED, ())) + len(by_status.get(TaskStatus.FAILED, ()))
        placed = len(by_status.get(TaskStatus.RUNNING, ())) + len(by_status.get(TaskStatus.BOUND, ()))
        return done + placed == count and self.phase == (PodGroupPhase.RUNNING if placed else PodGroupPhase.COMPLETED)

    @property
    def is_pending(self) -> bool:
        """Whether enqueue has not admitted the PodGroup yet."""
        return self.phase in ("", PodGroupPhase.PENDING)

    def __repr__(self) -> str:
        return f"<Job {self.key} {self.phase} in {self.queue}>"


def kind_of(job: Job, *, any_priority: bool = False) -> str:
    """Compute the key that equal waiting jobs share (`Job.kind`, `Job.kind_of_any_priority`)."""
    pending = job.by_status.get(TaskStatus.PENDING, {})
    if job.group is None or not pending or len(pending) < max(len(job.tasks), job.min_available):
        return ""
    alike: Counter[tuple[object, ...]] = Counter()
    for task in pending.values():
        pod = task.pod
        if task.gated or task.best_effort or task.nominated or task.has_inter_pod_constraints:
            return ""
        if pod.spec.topology_spread_constraints:
            return ""
        alike[
            task.shape.hex(),
            task.role,
            None if any_priority else (task.priority, pod.spec.priority),
            task.preemptable,
            task.never_preempts,
            tuple(_relevant(pod.metadata.annotations)),
            tuple((owner.kind, owner.controller) for owner in pod.metadata.owner_references or ()),
        ] += 1
    spec = msgspec.structs.replace(job.group.spec, min_resources=None)
    if any_priority:
        if len({task.priority for task in pending.values()}) > 1:
            return ""
        spec = msgspec.structs.replace(spec, priority_class_name="")
    group = (_relevant(job.group.metadata.annotations), sorted((job.min_resources or {}).items()))
    parts = (job.namespace, job.phase, spec, group, sorted(map(_encode, alike.items())))
    return hashlib.blake2b(_encode(parts), digest_size=12).hexdigest()


def _relevant(annotations: dict[str, str] | None) -> list[tuple[str, str]]:
    """Return the annotations on which decisions may depend."""
    return sorted((name, value) for name, value in (annotations or {}).items() if name not in names.OF_ONE_JOB)


def _count(total: Resource, request: Resource, sign: int) -> None:
    """Add or subtract amounts. Zero amounts are removed, so that adding and then subtracting them changes nothing."""
    for name, amount in request.items():
        if amount:
            left = total.get(name, 0) + sign * amount
            if left:
                total[name] = left
            else:
                del total[name]
