"""Changes to the state within a cycle, as transactions.

The one rule: every change an action makes to a task goes through a :class:`Statement`, and every one can be taken back
in reverse order; at the end of a cycle all of them are, so that the state is as it was found. (Semantics: Volcano's
``framework/statement.go``.)
"""

from __future__ import annotations

from ..model.nodes import NodeInfo
from ..model.task import Task, TaskStatus
from ..reasons import VictimReason
from .change_log import Change, ChangeLog
from .decisions import Bind, Decisions, Evict, Nominate


class Statement:
    """One transaction. Statements of a session are opened and closed one inside or after the other, never
    interleaved.
    """

    def __init__(self, log: ChangeLog, decisions: Decisions) -> None:
        self._log, self._decisions = log, decisions
        self._start = len(log)

    @property
    def changes(self) -> list[Change]:
        """What was done, as ``(task, status before, node before, reason of an eviction)``."""
        return self._log.entries[self._start :]

    @property
    def has_evictions(self) -> bool:
        return any(task.status is TaskStatus.RELEASING for task, *_ in self.changes)

    def allocate(self, task: Task, node: NodeInfo) -> None:
        """The task takes idle room on the node."""
        self._move(task, TaskStatus.ALLOCATED, node.name)

    def pipeline(self, task: Task, node: NodeInfo) -> None:
        """The task waits for room on the node that is being freed."""
        self._move(task, TaskStatus.PIPELINED, node.name)

    def release(self, task: Task) -> None:
        """The task no longer waits for the room that it was pipelined onto."""
        self._move(task, TaskStatus.PENDING, "")

    def evict(self, task: Task, reason: VictimReason) -> None:
        """The task is to leave its node; its room counts as releasing from now on."""
        self._move(task, TaskStatus.RELEASING, task.node, reason)

    def restore(self, task: Task) -> None:
        """The task stays where it was when the cycle began: its eviction, by whichever statement, is taken back."""
        status, node = next((status, node) for other, status, node, _ in self._log.entries if other is task)
        self._move(task, status, node)

    def savepoint(self) -> int:
        return len(self._log)

    def rollback(self, savepoint: int) -> None:
        """Take back what was done since the savepoint, last first."""
        self._log.undo(savepoint)

    def discard(self) -> None:
        """Take back everything."""
        self._log.undo(self._start)

    def commit(self) -> None:
        """Make decisions of it. What only waits becomes a nomination if this statement freed its room."""
        self._log.commit()
        decisions = self._decisions
        evicting = self.has_evictions
        last = {task.uid: (task, reason) for task, _, _, reason in self.changes}
        for task, reason in last.values():
            if task.status is TaskStatus.ALLOCATED:
                decisions.binds.append(Bind(task.key, task.uid, task.node, task.job))
            elif task.status is TaskStatus.RELEASING and reason is not None:
                decisions.evictions.append(Evict(task.key, task.uid, task.job, reason))
            elif task.status is TaskStatus.PIPELINED and evicting and task.nominated != task.node:
                decisions.nominations.append(Nominate(task.key, task.uid, task.node))

    def _move(self, task: Task, status: TaskStatus, node: str, reason: VictimReason | None = None) -> None:
        self._log.change(task, status, node, reason)
