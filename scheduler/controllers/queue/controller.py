"""The shell of the Queue controller: map changes of queues, PodGroups and Commands to keys to reconcile.

Each change of a PodGroup updates the counts, so a queue costs no scan of its PodGroups.
"""

from __future__ import annotations

from collections import Counter

from ...kube import PODGROUPS, WorkQueue
from ...model.objects import PodGroup
from ...model.queue import DEFAULT_QUEUES
from ..runtime.commands import commands_to, is_forbidden, refusal
from ..runtime.controller import Context
from ..runtime.executor import About
from ..runtime.objects import COMMANDS, QUEUES, Command, ControlledQueue
from ..runtime.writes import ReconcileResult
from .reconcile import ObservedQueue, reconcile
from .state import children_of, is_relevant_change, parent_of

_COLLECT_FOR = 0.1
"""Seconds in which changes of PodGroups are collected before the counts are written."""


class QueueController:
    """Queues of `scheduling.volcano.sh` and their Commands."""

    name = "queue"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._queue = WorkQueue(self.name)
        self._queues = context.view(QUEUES)
        self._commands = context.view(COMMANDS)
        self._phases: dict[str, Counter[str]] = {}
        """For each queue, the number of PodGroups by phase."""
        self._queues.informer.on_change(self._queue_changed)
        self._commands.informer.on_change(self._command_changed)
        self._groups = context.view(PODGROUPS)
        self._groups.informer.on_change(self._group_changed)

    async def run(self) -> None:
        for name in DEFAULT_QUEUES:
            self._queue.add(name)
        await self._context.work(self.name, self._queue, self._decide, self._queues, self._commands, self._groups)

    def _queue_changed(self, before: ControlledQueue | None, after: ControlledQueue | None) -> None:
        for queue in (before, after) if is_relevant_change(before, after) else ():
            if queue is None:
                continue
            name, parent = queue.metadata.name, parent_of(queue)
            self._queue.add(name)
            if parent:
                self._queue.add(parent)
            for child in children_of(name, self._queues.informer):
                self._queue.add(child.metadata.name)

    def _command_changed(self, _: Command | None, after: Command | None) -> None:
        if after is None or after.target.kind != QUEUES.kind or after.metadata.deletion_timestamp is not None:
            return
        refused = is_forbidden(after, self._context.queue_command_namespace)
        self._queue.add(after.metadata.key if refused else after.target.name)

    def _group_changed(self, before: PodGroup | None, after: PodGroup | None) -> None:
        for group, number in ((before, -1), (after, 1)):
            if group is not None:
                self._count(group.spec.queue or "default", group.status.phase or "Pending", number)

    def _count(self, queue: str, phase: str, number: int) -> None:
        """Count a PodGroup; keep no count of zero, because tenants choose the names of queues."""
        phases = self._phases.setdefault(queue, Counter())
        phases[phase] += number
        if not phases[phase]:
            del phases[phase]
        if not phases:
            del self._phases[queue]
        self._queue.add_after(queue, _COLLECT_FOR)

    async def _decide(self, key: str) -> tuple[ReconcileResult, About | None]:
        """Decide on a key: the name of a queue, or `namespace/name` of a Command that is to be rejected."""
        if "/" in key:
            command = self._commands.get(key)
            if command is None or command.metadata.deletion_timestamp is not None:
                return ReconcileResult(), None  # rejected before; another owner has to remove its finalizer
            return refusal(command, self._context.queue_command_namespace), None
        known = {queue.metadata.name: queue for queue in self._queues}
        queue = known.get(key)
        if queue is None and key in self._queues.informer.malformed:
            return ReconcileResult(), None  # malformed; the scheduler reports why
        if queue is not None and not queue.metadata.uid:
            return ReconcileResult(), None  # a presumed queue (kube/scope.py) has no object to write to
        now = self._context.clock()
        space = self._context.queue_command_namespace
        addressed = self._commands.by("target", f"{QUEUES.kind} {key}")
        commands = [command for command in addressed if not is_forbidden(command, space)]
        batch = commands_to(commands, QUEUES, key, queue.metadata.uid if queue else None, now)
        outcome = reconcile(ObservedQueue(key, queue, known, self._phases.get(key, {}), batch.to_carry_out, now))
        about = (QUEUES, queue.metadata) if queue else None
        return ReconcileResult([*outcome.writes, *batch.to_remove], batch.requeue_after), about
