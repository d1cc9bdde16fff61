"""The Queue controller's shell: which queue to look at when a queue, a PodGroup or a Command changes.

The one rule: counts of PodGroups follow their changes one by one, so that a busy cluster costs a queue nothing.
"""

from __future__ import annotations

from collections import Counter

from ...kube import PODGROUPS, WorkQueue
from ...model.objects import PodGroup
from ...model.queue import ALWAYS_THERE
from ..runtime.commands import is_overreach, orders_to, refusal
from ..runtime.controller import Context
from ..runtime.executor import About
from ..runtime.objects import COMMANDS, QUEUES, Command, Queue
from ..runtime.writes import ReconcileResult
from .reconcile import ObservedQueue, reconcile
from .state import children_of, is_news, parent_of

_CALM = 0.1
"""Seconds in which changes of PodGroups are gathered before the counts are written."""


class QueueController:
    """Queues of ``scheduling.volcano.sh`` and the Commands to them."""

    name = "queue"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._queue = WorkQueue(self.name)
        self._queues = context.view(QUEUES)
        self._commands = context.view(COMMANDS)
        self._phases: dict[str, Counter[str]] = {}
        """For each queue how many PodGroups are in which phase."""
        self._queues.informer.on_change(self._queue_changed)
        self._commands.informer.on_change(self._commanded)
        self._groups = context.view(PODGROUPS)
        self._groups.informer.on_change(self._group_changed)

    async def run(self) -> None:
        for name in ALWAYS_THERE:
            self._queue.add(name)
        await self._context.work(self.name, self._queue, self._decide, self._queues, self._commands, self._groups)

    def _queue_changed(self, before: Queue | None, after: Queue | None) -> None:
        for queue in (before, after) if is_news(before, after) else ():
            if queue is None:
                continue
            name, parent = queue.metadata.name, parent_of(queue)
            self._queue.add(name)
            if parent:
                self._queue.add(parent)
            for child in children_of(name, self._queues.informer):
                self._queue.add(child.metadata.name)

    def _commanded(self, _: Command | None, after: Command | None) -> None:
        if after is None or after.target.kind != QUEUES.kind:
            return
        refused = is_overreach(after, self._context.queue_command_namespace)
        self._queue.add(after.metadata.key if refused else after.target.name)

    def _group_changed(self, before: PodGroup | None, after: PodGroup | None) -> None:
        for group, number in ((before, -1), (after, 1)):
            if group is not None:
                phases = self._phases.setdefault(group.spec.queue or "default", Counter())
                phases[group.status.phase or "Pending"] += number
                self._queue.add_after(group.spec.queue or "default", _CALM)

    async def _decide(self, key: str) -> tuple[ReconcileResult, About | None]:
        """A key is the name of a queue, or ``namespace/name`` of a Command that does not count."""
        if "/" in key:
            command = self._commands.get(key)
            return (refusal(command, self._context.queue_command_namespace) if command else ReconcileResult()), None
        known = {queue.metadata.name: queue for queue in self._queues}
        queue = known.get(key)
        if queue is None and key in self._queues.informer.malformed:
            return ReconcileResult(), None  # it is there; the scheduler says what is wrong with it
        if queue is not None and not queue.metadata.uid:
            return ReconcileResult(), None  # presumed (kube/scope.py): there is nothing to write to
        now = self._context.clock()
        space = self._context.queue_command_namespace
        meant = self._commands.by("target", f"{QUEUES.kind} {key}")
        commands = [command for command in meant if not is_overreach(command, space)]
        orders = orders_to(commands, QUEUES, key, queue.metadata.uid if queue else None, now)
        outcome = reconcile(ObservedQueue(key, queue, known, self._phases.get(key, {}), orders.meant, now))
        about = (QUEUES, queue.metadata) if queue else None
        return ReconcileResult([*outcome.writes, *orders.strays], orders.again), about
