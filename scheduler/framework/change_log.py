"""Record the changes to tasks in a cycle, so that they can be undone.

Within a cycle, only this module changes tasks. Every change keeps job, node and the listeners to allocations
consistent; undoing the changes, last first, restores the original state.
"""

from __future__ import annotations

from collections.abc import Callable

from ..model.cluster import Cluster
from ..model.job import SavedCounts
from ..model.nodes import SavedAmounts
from ..model.task import HOLDING, Task, TaskStatus
from ..reasons import VictimReason
from .work import Work

CHANGE = 20
"""Steps of a change to a task, including the later undo."""
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
        self._amounts: SavedAmounts | None = None
        """The amounts on nodes before the first change."""
        self._counts: dict[str, SavedCounts] = {}
        """The counts of each job before its first change, by key."""

    def __len__(self) -> int:
        return len(self.entries)

    def on_allocation_change(self, handler: Callable[[Task, int], None]) -> None:
        """Call `handler(task, +1)` when a task begins to count as allocated, `-1` when it stops; undoing counts too."""
        self._on_allocation_change.append(handler)

    def change(self, task: Task, status: TaskStatus, node: str, reason: VictimReason | None = None) -> None:
        """Change a task's status and node, and record how to undo it."""
        self._work.spend(CHANGE)
        if task.job not in self._counts:
            self._save(task.job)
        self.entries.append((task, task.status, task.node, reason))
        self._apply(task, status, node)

    def commit(self) -> None:
        """Keep the changes so far, even if the job's attempt exceeds its maximum steps later."""
        self._work.end_attempt()

    def undo(self, savepoint: int) -> None:
        """Undo all changes except the first `savepoint`, last first."""
        while len(self.entries) > savepoint:
            task, status, node, _ = self.entries.pop()
            self._apply(task, status, node)

    def close(self) -> None:
        """Restore the original state and drop the listeners.

        Restoring the saved counts and amounts costs less than half of undoing each change.
        """
        self._on_allocation_change.clear()
        jobs, counts = self._cluster.jobs, self._counts
        original = {task.key: (task, status, node) for task, status, node, _ in reversed(self.entries)}
        if self._amounts is not None:
            self._cluster.nodes.restore(self._amounts, ((task, node) for task, _, node in original.values()))
        for key, saved in counts.items():
            jobs[key].restore(saved)
        for task, status, node in original.values():
            if task.job not in counts and (job := jobs.get(task.job)) is not None:
                job.move(task, status)
            task.status, task.node = status, node
        self.entries.clear()

    def _save(self, key: str) -> None:
        """Save the counts of a job, and once the amounts on nodes, before the first change to the job's tasks."""
        if self._amounts is None:
            self._amounts = self._cluster.nodes.save()
        if (job := self._cluster.jobs.get(key)) is not None and len(job.tasks) > 1:  # undoing one task costs no more
            self._counts[key] = job.save()

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
