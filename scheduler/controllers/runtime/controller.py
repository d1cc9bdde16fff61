"""The runtime that all controllers share: views of the cluster, queues of keys, and the executor of writes.

A controller's decision is pure. Its input comes from here, and its writes go to `executor.WriteExecutor`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from ...kube import (
    NODES,
    WARNING,
    Client,
    EventRecorder,
    KubeError,
    NotFound,
    Reflector,
    Resource,
    WorkQueue,
)
from ...kube.clock import wall_time
from ...model.objects import Node
from .executor import About, NameTaken, WriteExecutor
from .ownership import INDEXES
from .pod_batches import Capacity
from .write_through_cache import TRUST, WriteThroughCache
from .writes import EmitEvent, ReconcileResult

log = logging.getLogger(__name__)
R = TypeVar("R")

QUEUE_COMMAND_NAMESPACE = "kube-system"
_CHECK_AGAIN = 60.0
"""Seconds between two checks whether the API server serves a kind that needs a feature gate."""
_MANY = 200
"""Maximum pods of a decision in the event loop, at 10 to 15 microseconds each; larger decisions run in a thread."""
_REPORT_AFTER = 10.0
"""Seconds after which a controller logs what it waits for."""


class Controller(Protocol):
    """One controller. `run` waits until the kinds that it needs are listed, and works until cancelled."""

    name: str

    async def run(self) -> None: ...


class Context:
    """What controllers share: the API server, the event recorder, the names of our schedulers, the clock.

    Args:
        client: The API server.
        recorder: Writes events.
        scheduler_names: Objects that name another scheduler are left alone; objects that name none get the first.
        clock: Returns seconds since the epoch.
        reflectors: Running reflectors; their kinds are not watched a second time.
        queue_command_namespace: Namespace of valid Commands to queues.
        node_selector: Labels of the nodes whose capacity counts.
    """

    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        scheduler_names: Sequence[str],
        *,
        clock: Callable[[], float] = wall_time,
        reflectors: Iterable[Reflector[Any]] = (),
        queue_command_namespace: str = QUEUE_COMMAND_NAMESPACE,
        node_selector: Mapping[str, str] | None = None,
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._executor = WriteExecutor(client, recorder, self._views_of)
        self.scheduler_names = tuple(scheduler_names)
        self.queue_command_namespace = queue_command_namespace
        """Commands to queues count only here."""
        self.clock = clock
        self.queues: dict[str, WorkQueue] = {}
        """The queues of running controllers, by name."""
        self.capacity = Capacity(node_selector or {})
        """Capacity of the nodes, tracked after a call of `watch_nodes`."""
        self._views: dict[str, WriteThroughCache[Any]] = {}
        self._capacity_listeners: list[Callable[[], None]] = []
        self._names_taken: dict[tuple[str, str], str] = {}
        """By controller and key, the message about an object of another owner that the last reconciliation found."""
        self._running = {reflector.resource: reflector for reflector in reflectors}

    def view(self, resource: Resource[Any], *, labels: str = "") -> WriteThroughCache[Any]:
        """Return the view of a kind, which all controllers share. Its indexes are `ownership.INDEXES`."""
        key = f"{resource.id} {labels}"
        if key not in self._views:
            resource = resource.bounded(self.scheduler_names)
            follow = None if labels else self._running.get(resource)
            self._views[key] = WriteThroughCache(self._client, resource, INDEXES, labels=labels, follow=follow)
            if follow is None:
                self._views[key].informer.reflector.add_handler(self._recorder.on_object)
        found: WriteThroughCache[Any] = self._views[key]
        return found

    def watch_nodes(self, listener: Callable[[], None]) -> WriteThroughCache[Node]:
        """Track the capacity of the nodes. `listener` is called after each change of the capacity."""
        if not self._capacity_listeners:
            self.view(NODES).informer.on_change(self._node_changed)
        self._capacity_listeners.append(listener)
        return self.view(NODES)

    def _node_changed(self, before: Node | None, after: Node | None) -> None:
        if self.capacity.changed(before, after):
            for listener in self._capacity_listeners:
                listener()

    async def watch(self) -> None:
        """Follow the cluster until cancelled; run it beside the controllers."""
        async with asyncio.TaskGroup() as group:
            for view in self._views.values():
                group.create_task(view.informer.run(), name=f"watch {view.resource.id} for controllers")

    async def first_served(self, versions: Sequence[Resource[Any]]) -> Resource[Any]:
        """Wait until one of the API versions of a kind is served and may be listed, and return it."""
        while True:
            for resource in versions:
                try:
                    await self._client.list(resource.bare)
                except NotFound:
                    continue
                except KubeError as error:
                    log.warning("%s of %s is not watched yet: %s", resource.id, resource.version, error)
                else:
                    return resource
            await asyncio.sleep(_CHECK_AGAIN)

    def unready(self) -> list[str]:
        """Return why the controllers are not ready: objects of a kind may be missing or stale, or cannot be written."""
        unlisted = [view.informer.reflector.unready for view in self._views.values()]
        return [*(reason for reason in unlisted if reason), *self._executor.refused.values()]

    def lacks(self, resource: Resource[Any], *path: str) -> bool:
        """Whether the API server's definition of a kind is known to lack a field."""
        return self._client.served.lacks(resource, *path)

    def name_taken(self, controller: str, key: str) -> str:
        """Return the message about an object of another owner that has a name the key needs, or empty."""
        return self._names_taken.get((controller, key), "")

    def is_ours(self, scheduler_name: str) -> bool:
        return not scheduler_name or scheduler_name in self.scheduler_names

    async def work(
        self,
        name: str,
        queue: WorkQueue,
        decide: Callable[[str], Awaitable[tuple[ReconcileResult, About | None]]],
        *needs: WriteThroughCache[Any],
    ) -> None:
        """Process a queue of keys once `needs` are listed: decide, write, and requeue if the decision requests it.

        If an object of another owner has a name that the key needs, the next decision receives this as `name_taken`,
        and the key is retried with backoff.
        """
        self.queues[name] = queue
        await _listed(name, needs)

        async def process(key: str) -> None:
            outcome, about = await decide(key)
            try:
                await self._executor.carry_out(outcome.writes, about)
            except NameTaken as error:
                if self._names_taken.get((name, key)) == error.message:
                    raise
                self._names_taken[name, key] = error.message
                queue.add(key)
                return
            if self._names_taken.pop((name, key), None):
                queue.add(key)
            if outcome.again is not None:
                queue.add_after(key, outcome.again)
            elif any(view.is_ahead for view in needs):
                queue.add_after(key, TRUST + 0.1)  # in case the watch never shows the write

        await queue.run(process)

    async def run_decision(self, pods: int, decide: Callable[[], R]) -> R:
        """Run a pure decision about `pods` existing and wanted pods. A large one runs in a thread."""
        return await asyncio.to_thread(decide) if pods > _MANY else decide()

    def _views_of(self, resource: Resource[Any]) -> list[WriteThroughCache[Any]]:
        return [view for view in self._views.values() if view.resource.id == resource.id]


async def _listed(name: str, views: Sequence[WriteThroughCache[Any]]) -> None:
    """Wait until every kind has been listed. A controller that waits for a kind logs this and delays no other."""
    for view in views:
        while not view.informer.synced.is_set():
            try:
                async with asyncio.timeout(_REPORT_AFTER):
                    await view.informer.synced.wait()
            except TimeoutError:
                trouble = view.informer.reflector.trouble or f"{view.resource.id} is not listed yet"
                log.warning("controller %s waits: %s", name, trouble)


def unreadable(view: WriteThroughCache[Any], key: str) -> ReconcileResult | None:
    """Return the event for an object that exists and cannot be read; it is otherwise left alone."""
    found = view.informer.malformed.get(key)
    if found is None:
        return None
    message = f"cannot be read and is left alone: {found.error}"
    return ReconcileResult([EmitEvent(view.resource, found.metadata, WARNING, "Malformed", message)])
