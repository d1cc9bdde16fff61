"""Transactions of changes to the state within a cycle.

The one rule: an action changes a task only through a `Statement`. Changes can be undone, last first, and all of them
are undone at the end of a cycle, so that the original state is restored. (Semantics: Volcano's
`framework/statement.go`.)
"""

from __future__ import annotations

from collections.abc import Mapping

from ..model.nodes import NodeInfo
from ..model.task import Task, TaskStatus
from ..reasons import VictimReason
from .change_log import Change, ChangeLog
from .decisions import Bind, Decisions, Evict, Nominate


class Statement:
    """One transaction. A session's statements are nested or sequential, never interleaved."""

    def __init__(self, log: ChangeLog, decisions: Decisions) -> None:
        self._log, self._decisions = log, decisions
        self._start = len(log)

    @property
    def changes(self) -> list[Change]:
        """Return the changes as `(task, previous status, previous node, reason of an eviction)`."""
        return self._log.entries[self._start :]

    @property
    def evictions(self) -> list[tuple[Task, VictimReason]]:
        """Return the tasks that this statement evicts, each with its reason."""
        last = {task.uid: (task, reason) for task, _, _, reason in self.changes}
        return [
            (task, reason)
            for task, reason in last.values()
            if task.status is TaskStatus.RELEASING and reason is not None
        ]

    @property
    def has_evictions(self) -> bool:
        return any(task.status is TaskStatus.RELEASING for task, *_ in self.changes)

    def allocate(self, task: Task, node: NodeInfo) -> None:
        """Allocate idle capacity on the node to the task."""
        self._move(task, TaskStatus.ALLOCATED, node.name)

    def pipeline(self, task: Task, node: NodeInfo) -> None:
        """Let the task wait for capacity that is being freed on the node."""
        self._move(task, TaskStatus.PIPELINED, node.name)

    def release(self, task: Task) -> None:
        """Release the capacity that the task was pipelined onto."""
        self._move(task, TaskStatus.PENDING, "")

    def run(self, task: Task) -> None:
        """Let a placed task run, to see what could follow."""
        self._move(task, TaskStatus.RUNNING, task.node)

    def evict(self, task: Task, reason: VictimReason) -> None:
        """Evict the task; its capacity counts as releasing from now on."""
        self._move(task, TaskStatus.RELEASING, task.node, reason)

    def restore(self, task: Task) -> None:
        """Undo the eviction of the task by any statement: restore the status and node from before the cycle."""
        status, node = next((status, node) for other, status, node, _ in self._log.entries if other is task)
        self._move(task, status, node)

    def savepoint(self) -> int:
        return len(self._log)

    def rollback(self, savepoint: int) -> None:
        """Undo the changes since the savepoint, last first."""
        self._log.undo(savepoint)

    def discard(self) -> None:
        """Undo all changes."""
        self._log.undo(self._start)

    def commit(self, reasons: Mapping[str, VictimReason] | None = None) -> None:
        """Turn the changes into decisions. A waiting task gets a nomination if this statement freed its capacity.

        Args:
            reasons: UID of a victim → reason that replaces the one passed to `evict`, which may have been incomplete.
        """
        self._log.commit()
        decisions = self._decisions
        evicting = self.has_evictions
        last = {task.uid: (task, reason) for task, _, _, reason in self.changes}
        for task, reason in last.values():
            if task.status is TaskStatus.ALLOCATED:
                decisions.binds.append(Bind(task.key, task.uid, task.node, task.job))
            elif task.status is TaskStatus.RELEASING and reason is not None:
                decisions.evictions.append(Evict(task.key, task.uid, task.job, (reasons or {}).get(task.uid, reason)))
            elif task.status is TaskStatus.PIPELINED and evicting and task.nominated != task.node:
                decisions.nominations.append(Nominate(task.key, task.uid, task.node))

    def _move(self, task: Task, status: TaskStatus, node: str, reason: VictimReason | None = None) -> None:
        self._log.change(task, status, node, reason)
