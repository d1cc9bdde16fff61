"""The shell that all controllers share: what they see, their queue of keys, and an executor to write with.

The one rule: a controller's decision is pure; what it sees comes from here, what it wants goes to
:class:`scheduler.controllers.runtime.executor.WriteExecutor`.
"""

from __future__ import annotations

import asyncio
import logging
import time
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
from ...model.objects import Node
from .executor import About, WriteExecutor
from .ownership import INDEXES
from .slices import Capacity
from .write_through_cache import TRUST, WriteThroughCache
from .writes import EmitEvent, ReconcileResult

log = logging.getLogger(__name__)
R = TypeVar("R")

QUEUE_COMMAND_NAMESPACE = "kube-system"
_LOOK_AGAIN = 60.0
"""Seconds until it is asked again whether a kind is served that no version of the API server has by default."""
_MANY = 200
"""Pods that are looked at in one turn of the event loop, at some 10 to 15 microseconds each."""
_PATIENCE = 10.0
"""Seconds after which a controller says what it waits for."""


class Controller(Protocol):
    """One controller; ``run`` works until cancelled, once all that the context watches has been listed."""

    name: str

    async def run(self) -> None: ...


class Context:
    """What controllers are given: the API server, the recorder of events, the names of pods' schedulers, the time.

    ``scheduler_names``: objects that name another scheduler are left alone; one that names none gets the first of them.
    ``reflectors`` are those that run anyway: what one of them tells is not watched a second time.
    """

    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        scheduler_names: Sequence[str],
        *,
        clock: Callable[[], float] = time.time,
        reflectors: Iterable[Reflector[Any]] = (),
        queue_command_namespace: str = QUEUE_COMMAND_NAMESPACE,
        node_selector: Mapping[str, str] | None = None,
    ) -> None:
        self._client = client
        self._hands = WriteExecutor(client, recorder, self._views_of)
        self.scheduler_names = tuple(scheduler_names)
        self.queue_command_namespace = queue_command_namespace
        """Commands to queues count only here."""
        self.clock = clock
        self.queues: dict[str, WorkQueue] = {}
        """By controller, once it works."""
        self.capacity = Capacity(node_selector or {})
        """What the nodes have; followed once :meth:`watch_nodes` was called."""
        self._views: dict[str, WriteThroughCache[Any]] = {}
        self._capacity_listeners: list[Callable[[], None]] = []
        self._running = {reflector.resource: reflector for reflector in reflectors}

    def view(self, resource: Resource[Any], *, labels: str = "") -> WriteThroughCache[Any]:
        """What is seen of a kind, one for all controllers; looked up by :data:`~ownership.INDEXES`."""
        key = f"{resource.id} {labels}"
        if key not in self._views:
            follow = None if labels else self._running.get(resource)
            self._views[key] = WriteThroughCache(self._client, resource, INDEXES, labels=labels, follow=follow)
        found: WriteThroughCache[Any] = self._views[key]
        return found

    def watch_nodes(self, listener: Callable[[], None]) -> WriteThroughCache[Node]:
        """Follow what the nodes have; ``listener`` is called when that has changed."""
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
        """The first of some versions of a kind that the API server serves and that we may list; waits for one."""
        while True:
            for resource in versions:
                try:
                    await self._client.list(resource.bare)
                except NotFound:
                    continue
                except KubeError as error:
                    log.warning("%s of %s is not followed yet: %s", resource.id, resource.version, error)
                else:
                    return resource
            await asyncio.sleep(_LOOK_AGAIN)

    def unlisted(self) -> list[str]:
        """What has not been listed yet, and why: until there is nothing, some controller waits."""
        informers = [view.informer for view in self._views.values() if not view.informer.synced.is_set()]
        return [it.reflector.trouble or f"{it.reflector.resource.id} not yet listed" for it in informers]

    def is_ours(self, scheduler_name: str) -> bool:
        return not scheduler_name or scheduler_name in self.scheduler_names

    async def work(
        self,
        name: str,
        queue: WorkQueue,
        decide: Callable[[str], Awaitable[tuple[ReconcileResult, About | None]]],
        *needs: WriteThroughCache[Any],
    ) -> None:
        """Work a queue of keys: decide, carry out, look again when told to. Begins once ``needs`` have been listed."""
        self.queues[name] = queue
        await _listed(name, needs)

        async def turn(key: str) -> None:
            outcome, about = await decide(key)
            await self._hands.carry_out(outcome.writes, about)
            if outcome.again is not None:
                queue.add_after(key, outcome.again)
            elif any(view.is_ahead for view in needs):
                queue.add_after(key, TRUST + 0.1)  # should the watch never show it

        await queue.run(turn)

    async def think(self, pods: int, decide: Callable[[], R]) -> R:
        """A pure decision on so many pods, there or wanted; in a thread where it would hold the event loop for long."""
        return await asyncio.to_thread(decide) if pods > _MANY else decide()

    def _views_of(self, resource: Resource[Any]) -> list[WriteThroughCache[Any]]:
        return [view for view in self._views.values() if view.resource.id == resource.id]


async def _listed(name: str, views: Sequence[WriteThroughCache[Any]]) -> None:
    """Wait until every kind has been listed; a controller whose kinds are not served waits alone, and says so."""
    for view in views:
        while not view.informer.synced.is_set():
            try:
                async with asyncio.timeout(_PATIENCE):
                    await view.informer.synced.wait()
            except TimeoutError:
                trouble = view.informer.reflector.trouble or f"{view.resource.id} is not listed yet"
                log.warning("controller %s waits: %s", name, trouble)


def unreadable(view: WriteThroughCache[Any], key: str) -> ReconcileResult | None:
    """What to tell of an object that exists and cannot be read; nothing else is done about it."""
    found = view.informer.malformed.get(key)
    if found is None:
        return None
    told = f"cannot be read and is left alone: {found.error}"
    return ReconcileResult([EmitEvent(view.resource, found.metadata, WARNING, "Malformed", told)])
