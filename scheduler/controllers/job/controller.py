"""The Job controller's shell: which Job to look at when something changes.

The one rule: it only gathers what :func:`.reconcile.reconcile` looks at; every decision is made there.
"""

from __future__ import annotations

from functools import partial

from ...kube import NAMESPACES, PODGROUPS, PODS, PRIORITY_CLASSES, WorkQueue
from ...model.objects import Pod, PodGroup, Queue
from ..queue.state import is_news, limits_above, queue_for, usability
from ..runtime.commands import orders_to
from ..runtime.controller import Context, unreadable
from ..runtime.executor import About
from ..runtime.objects import COMMANDS, JOBS, QUEUES, Command, Job
from ..runtime.ownership import delay_of, left_behind, owner_key
from ..runtime.slices import RoomLimits
from ..runtime.writes import ReconcileResult
from .reconcile import reconcile
from .state import JobPhase, ObservedJob


class JobController:
    """Jobs of ``batch.volcano.sh`` and the Commands to them."""

    name = "job"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._queue = WorkQueue(self.name)
        self._jobs = context.view(JOBS)
        self._pods = context.view(PODS)
        self._groups = context.view(PODGROUPS)
        self._commands = context.view(COMMANDS)
        self._queues = context.view(QUEUES)
        self._classes = context.view(PRIORITY_CLASSES)
        self._homes = context.view(NAMESPACES)
        nodes = context.watch_nodes(self._room_changed)
        others = (self._commands, self._queues, self._classes, self._homes, nodes)
        self._needs = (self._jobs, self._pods, self._groups, *others)
        self._jobs.informer.on_key(self._queue.add)
        self._pods.informer.on_change(self._pod_changed)
        self._groups.informer.on_change(self._group_changed)
        self._commands.informer.on_change(self._commanded)
        self._queues.informer.on_change(self._of_queue)

    async def run(self) -> None:
        await self._context.work(self.name, self._queue, self._decide, *self._needs)

    def _pod_changed(self, before: Pod | None, after: Pod | None) -> None:
        if key := owner_key(JOBS, after or before):
            self._queue.add_after(key, delay_of(before, after))

    def _group_changed(self, before: PodGroup | None, after: PodGroup | None) -> None:
        if key := owner_key(JOBS, after or before):
            self._queue.add(key)

    def _commanded(self, before: Command | None, after: Command | None) -> None:
        command = after or before
        if command is not None and command.target.kind == JOBS.kind:
            self._queue.add(f"{command.metadata.namespace}/{command.target.name}")

    def _of_queue(self, before: Queue | None, after: Queue | None) -> None:
        queue = after or before
        if queue is None or not is_news(before, after):
            return
        for job in self._jobs:
            if job.status.state.phase in ("", JobPhase.PENDING):  # whatever queue: its child may have come or gone
                self._queue.add(job.metadata.key)

    def _room_changed(self) -> None:
        for job in self._jobs:
            if job.status.state.reason == "GangTooLarge":
                self._queue.add(job.metadata.key)

    async def _decide(self, key: str) -> tuple[ReconcileResult, About | None]:
        job: Job | None = self._jobs.get(key)
        if job is None and (problem := unreadable(self._jobs, key)):
            return problem, None
        now = self._context.clock()
        orders = orders_to(
            self._commands.by("target", f"{JOBS.kind} {key}"), JOBS, key, job.metadata.uid if job else None, now
        )
        if job is None:
            left = left_behind(JOBS, key, self._groups, self._pods)
            return ReconcileResult([*left, *orders.strays], orders.again), None
        if not self._context.is_ours(job.spec.scheduler_name):
            return ReconcileResult(), None
        uid = job.metadata.uid
        group = next(iter(self._groups.by("owner", uid)), None)
        queue = queue_for(job.spec.queue, group, self._homes.get(job.metadata.namespace))
        seen = ObservedJob(
            job=job,
            pods=self._pods.by("owner", uid),
            group=group,
            commands=orders.meant,
            classes=list(self._classes),
            queue=queue,
            place=RoomLimits(self._context.capacity.total, limits_above(queue, self._queues)),
            queue_problem=usability(queue, list(self._queues), group),
            scheduler_name=self._context.scheduler_names[0],
            now=now,
        )
        outcome = await self._context.think(
            len(seen.pods) + sum(task.replicas for task in job.spec.tasks), partial(reconcile, seen)
        )
        return ReconcileResult([*outcome.writes, *orders.strays], outcome.again), (JOBS, job.metadata)
