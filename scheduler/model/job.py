"""A PodGroup as the scheduler sees it: its tasks and how many of them stand where.

The one rule: counters follow the tasks' status; only :meth:`Job.add`, :meth:`Job.remove` and :meth:`Job.move` change either,
so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.model import resources
from scheduler.model.objects import PodGroup
from scheduler.model.resources import Resource
from scheduler.model.task import HOLDING, Task, TaskStatus, seconds

PENDING, INQUEUE, RUNNING, UNKNOWN, COMPLETED = "Pending", "Inqueue", "Running", "Unknown", "Completed"
"""Phases of a PodGroup."""


class Job:
    """One PodGroup and its tasks.

    ``priority`` is the value of its priority class (0 where it has none and no class is the default). ``allocated`` is what its
    holding tasks request. A job whose PodGroup has not been seen yet has ``group`` None and takes no part in a cycle.
    """

    __slots__ = (
        "allocated",
        "by_status",
        "creation",
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
        "role_minima",
        "tasks",
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
        self.tasks: dict[str, Task] = {}
        self.by_status: dict[TaskStatus, dict[str, Task]] = {}
        self.allocated: Resource = {}
        self.gated = 0

    def describe(self, group: PodGroup | None, priority: int) -> None:
        """Take over what the PodGroup says now."""
        self.group = group
        if group is None:
            return
        spec = group.spec
        self.queue = spec.queue or "default"
        self.priority = priority
        self.min_available = spec.min_member
        self.role_minima = dict(spec.min_task_member or {})
        self.min_resources = None if spec.min_resources is None else resources.parse(spec.min_resources)
        self.phase = group.status.phase
        self.creation = seconds(group.metadata.creation_timestamp)

    def add(self, task: Task) -> None:
        """Take in a task, in whatever status it is."""
        self.tasks[task.key] = task
        self.by_status.setdefault(task.status, {})[task.key] = task
        self.gated += task.gated
        if task.status & HOLDING:
            self._count(task.request, 1.0)

    def remove(self, task: Task) -> None:
        """Forget a task."""
        del self.tasks[task.key]
        del self.by_status[task.status][task.key]
        self.gated -= task.gated
        if task.status & HOLDING:
            self._count(task.request, -1.0)

    def move(self, task: Task, status: TaskStatus) -> None:
        """Give a task another status."""
        del self.by_status[task.status][task.key]
        held, holds = bool(task.status & HOLDING), bool(status & HOLDING)
        if held != holds:
            self._count(task.request, 1.0 if holds else -1.0)
        task.status = status
        self.by_status.setdefault(status, {})[task.key] = task

    def _count(self, request: Resource, sign: float) -> None:
        # What came to nothing is dropped, so that giving and taking back leaves no trace.
        allocated = self.allocated
        for name, amount in request.items():
            if amount:
                left = allocated.get(name, 0.0) + sign * amount
                if left:
                    allocated[name] = left
                else:
                    del allocated[name]

    def count(self, statuses: TaskStatus) -> int:
        """How many tasks have one of ``statuses`` (a union of flags)."""
        return sum(len(tasks) for status, tasks in self.by_status.items() if status & statuses)

    def having(self, statuses: TaskStatus) -> Iterator[Task]:
        """The tasks with one of ``statuses``, by key."""
        found = [task for status, tasks in self.by_status.items() if status & statuses for task in tasks.values()]
        return iter(sorted(found, key=lambda task: task.key))

    @property
    def ready(self) -> int:
        """Tasks that hold room or have succeeded."""
        return self.count(HOLDING | TaskStatus.SUCCEEDED)

    @property
    def waiting(self) -> int:
        """Tasks pipelined onto room that is being freed."""
        return len(self.by_status.get(TaskStatus.PIPELINED, ()))

    @property
    def is_pending(self) -> bool:
        """Whether the PodGroup is not yet admitted by enqueue."""
        return self.phase in ("", PENDING)

    def __repr__(self) -> str:
        return f"<Job {self.key} {self.phase} in {self.queue}>"
