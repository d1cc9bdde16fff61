"""A PodGroup as the scheduler sees it: its tasks and how many of them stand where.

The one rule: counters follow the tasks' status; only :meth:`Job.add`, :meth:`Job.remove` and :meth:`Job.move` change
either, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from . import names
from .objects import PodGroup
from .resources import Resource
from .task import HOLDING, READY, Statuses, Task, TaskStatus


class PodGroupPhase(StrEnum):
    """Phases of a PodGroup."""

    PENDING = "Pending"
    INQUEUE = "Inqueue"
    RUNNING = "Running"
    UNKNOWN = "Unknown"
    COMPLETED = "Completed"


class DisruptionMode(StrEnum):
    """How a PodGroup may be preempted where it says so itself (Kubernetes' ``disruptionMode``)."""

    POD = "pod"
    """Each of its pods alone, whatever becomes of the gang."""
    GROUP = "group"
    """All of its pods together, those above its minimum too."""


class Job:
    """One PodGroup and its tasks.

    ``priority`` is the value of its priority class (0 where it has none and no class is the default). ``allocated`` is
    what its holding tasks request. A job whose PodGroup has not been seen yet has ``group`` None and takes no part in
    a cycle.
    """

    __slots__ = (
        "_pending_request",
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
        self._pending_request: Resource | None = None
        self.gated = 0
        self.ready = 0
        """Tasks that hold room or have succeeded."""
        self.undemanding = 0
        """Pending tasks that ask for nothing: they never keep a gang from starting."""

    def describe(self, group: PodGroup, priority: int, minimum: Resource | None, created: float) -> None:
        """Take over what the PodGroup says now; ``minimum`` (minResources) and ``created`` come parsed."""
        self.group = group
        spec = group.spec
        self.queue = spec.queue or "default"
        self.priority = priority
        self.min_available = spec.min_member
        self.role_minima = dict(spec.min_task_member or {})
        self.min_resources = minimum
        self.phase = group.status.phase
        self.creation = created
        mode = (group.metadata.annotations or {}).get(names.DISRUPTION_MODE, "")
        self.disruption = DisruptionMode(mode) if mode in tuple(DisruptionMode) else None

    def add(self, task: Task) -> None:
        """Take in a task, in whatever status it is."""
        self.tasks[task.key] = task
        self.gated += task.gated
        self._enter(task, task.status)

    def remove(self, task: Task) -> None:
        """Forget a task."""
        del self.tasks[task.key]
        self.gated -= task.gated
        self._leave(task, task.status)

    def move(self, task: Task, status: TaskStatus) -> None:
        """Give a task another status."""
        before = task.status
        task.status = status
        self._leave(task, before)
        self._enter(task, status)

    @property
    def pending_request(self) -> Resource:
        """What its pending tasks request."""
        known = self._pending_request
        if known is None:  # asked of every job in every cycle, and most have the same ones as in the last
            alike: dict[bytes, list[Task]] = {}
            for task in self.by_status.get(TaskStatus.PENDING, {}).values():
                alike.setdefault(task.shape, []).append(task)
            known = {}
            for tasks in alike.values():
                for name, amount in tasks[0].request.items():
                    known[name] = known.get(name, 0) + amount * len(tasks)
            self._pending_request = known
        return known

    def _enter(self, task: Task, status: TaskStatus) -> None:
        self.by_status.setdefault(status, {})[task.key] = task
        if status is TaskStatus.PENDING:
            self._pending_request = None
        if status & READY:
            self.ready += 1
            if status & HOLDING:
                _count(self.allocated, task.request, 1)
        elif status is TaskStatus.PENDING and task.best_effort and not task.gated:
            self.undemanding += 1

    def _leave(self, task: Task, status: TaskStatus) -> None:
        del self.by_status[status][task.key]
        if status is TaskStatus.PENDING:
            self._pending_request = None
        if status & READY:
            self.ready -= 1
            if status & HOLDING:
                _count(self.allocated, task.request, -1)
        elif status is TaskStatus.PENDING and task.best_effort and not task.gated:
            self.undemanding -= 1

    def count(self, statuses: Statuses) -> int:
        """How many tasks have one of ``statuses`` (a union of flags)."""
        return sum(len(tasks) for status, tasks in self.by_status.items() if status & statuses)

    def having(self, statuses: Statuses) -> Iterator[Task]:
        """The tasks with one of ``statuses``, by key."""
        found = [task for status, tasks in self.by_status.items() if status & statuses for task in tasks.values()]
        if len(found) > 1:
            found.sort(key=lambda task: task.key)
        return iter(found)

    @property
    def binding_roles(self) -> dict[str, int]:
        """The role minima that bind: all of them where the gang's minimum covers their sum, else none."""
        if not self.role_minima:
            return self.role_minima
        return self.role_minima if self.min_available >= sum(self.role_minima.values()) else {}

    @property
    def waiting(self) -> int:
        """Tasks pipelined onto room that is being freed."""
        return len(self.by_status.get(TaskStatus.PIPELINED, ()))

    @property
    def needs_nothing(self) -> bool:
        """Whether every task has its place or is done, and the PodGroup says so: no action has anything to do for it,
        until a task of it is evicted.
        """
        count, by_status = len(self.tasks), self.by_status
        if not count or count < self.min_available:
            return False
        if len(by_status.get(TaskStatus.RUNNING, ())) == count:  # as nearly all are; asked of every job in every cycle
            return self.phase == PodGroupPhase.RUNNING
        done = len(by_status.get(TaskStatus.SUCCEEDED, ())) + len(by_status.get(TaskStatus.FAILED, ()))
        placed = len(by_status.get(TaskStatus.RUNNING, ())) + len(by_status.get(TaskStatus.BOUND, ()))
        return done + placed == count and self.phase == (PodGroupPhase.RUNNING if placed else PodGroupPhase.COMPLETED)

    @property
    def is_pending(self) -> bool:
        """Whether the PodGroup is not yet admitted by enqueue."""
        return self.phase in ("", PodGroupPhase.PENDING)

    def __repr__(self) -> str:
        return f"<Job {self.key} {self.phase} in {self.queue}>"


def _count(total: Resource, request: Resource, sign: int) -> None:
    """Add or take away; what comes to nothing is dropped, so that giving and taking back leaves no trace."""
    for name, amount in request.items():
        if amount:
            left = total.get(name, 0) + sign * amount
            if left:
                total[name] = left
            else:
                del total[name]
