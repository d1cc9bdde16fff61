"""Record the changes to tasks in a cycle, so that they can be undone.

Within a cycle a task changes only here. Every change keeps job, node and the listeners of allocations consistent, and
undoing in reverse order restores the original state.
"""

from __future__ import annotations

from collections.abc import Callable

from ..model.cluster import Cluster
from ..model.task import HOLDING, Task, TaskStatus
from ..reasons import VictimReason
from .work import Work

CHANGE = 20
"""Steps of a change to a task, including its undoing."""
CLAIMING = HOLDING | TaskStatus.PIPELINED
"""Statuses in which a task counts as allocated in queue plugins within a cycle.

Volcano also calls AllocateFunc for a pipelined task.
"""

Change = tuple[Task, TaskStatus, str, VictimReason | None]
"""A task with its previous status and node, and the reason if it was evicted."""


class ChangeLog:
    """The changes of one cycle, oldest first."""

    def __init__(self, cluster: Cluster, work: Work) -> None:
        self._cluster = cluster
        self._work = work
        self._on_allocation_change: list[Callable[[Task, int], None]] = []
        self.entries: list[Change] = []

    def __len__(self) -> int:
        return len(self.entries)

    def on_allocation_change(self, handler: Callable[[Task, int], None]) -> None:
        """Call `handler(task, +1)` when a task begins to count as allocated, `-1` when it stops, also by undoing."""
        self._on_allocation_change.append(handler)

    def change(self, task: Task, status: TaskStatus, node: str, reason: VictimReason | None = None) -> None:
        """Change a task's status and node, and record how to undo it."""
        self._work.spend(CHANGE)
        self.entries.append((task, task.status, task.node, reason))
        self._apply(task, status, node)

    def commit(self) -> None:
        """Turn the changes so far into decisions."""
        self._work.end_attempt()

    def undo(self, savepoint: int) -> None:
        """Undo all changes except the first `savepoint`, last first."""
        while len(self.entries) > savepoint:
            task, status, node, _ = self.entries.pop()
            self._apply(task, status, node)

    def close(self) -> None:
        """Restore the original state and drop the listeners."""
        self._on_allocation_change.clear()
        self.undo(0)

    def _apply(self, task: Task, status: TaskStatus, node: str) -> None:
        nodes, before = self._cluster.nodes, task.status
        if task.node and (info := nodes.by_name.get(task.node)) is not None:
            nodes.lift(info, task, before)
        if job := self._cluster.jobs.get(task.job):
            job.move(task, status)
        else:
            task.status = status
        task.node = node
        if node and (info := nodes.by_name.get(node)) is not None:
            nodes.place(info, task, status)
        if self._on_allocation_change and (is_claiming := bool(status & CLAIMING)) != bool(before & CLAIMING):
            for handler in self._on_allocation_change:
                handler(task, 1 if is_claiming else -1)
