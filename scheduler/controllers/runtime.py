"""The shell that all controllers share: what they see, their queue of keys, and the carrying out of what they want.

The one rule: a controller's decision is pure; only this module writes to the API server for it. Writes are carried out
in their order, and the first that fails ends the turn: the next turn decides anew from what is there then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, Protocol

from scheduler.controllers.pods import controller_of
from scheduler.controllers.view import View
from scheduler.controllers.wanted import Change, Create, Outcome, Reap, Remove, Tell, Write
from scheduler.kube import (
    PODGROUPS,
    PODS,
    WARNING,
    AlreadyExists,
    Client,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Patch,
    Recorder,
    Resource,
    WorkQueue,
)
from scheduler.kube.informer import Index
from scheduler.model.objects import ObjectMeta, Pod, PodGroup

_CALM = 0.05
_AT_ONCE = 16
"""Pods of one object created or deleted at a time."""


class Controller(Protocol):
    """One controller; ``run`` works until cancelled, once all that the context watches has been listed."""

    name: str

    async def run(self) -> None: ...


class Context:
    """What controllers are given: the API server, the recorder of events, the names of pods' schedulers, the time.

    ``scheduler_names``: objects that name another scheduler are left alone; one that names none gets the first of them.
    """

    def __init__(
        self,
        client: Client,
        recorder: Recorder,
        scheduler_names: Sequence[str],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.client = client
        self.recorder = recorder
        self.scheduler_names = tuple(scheduler_names)
        self.clock = clock
        self._views: dict[str, View[Any]] = {}

    def view(self, resource: Resource[Any], *, labels: str = "") -> View[Any]:
        """What is seen of a kind, one for all controllers.

        To be looked up by ``uid``, ``owner`` (the controller's uid) and ``owner name`` (``Kind namespace/name``).
        """
        key = f"{resource.id} {labels}"
        if key not in self._views:
            indexes: dict[str, Index[Any]] = {"uid": _by_uid, "owner": _by_owner, "owner name": _by_owner_name}
            self._views[key] = View(self.client, resource, indexes, labels=labels)
        found: View[Any] = self._views[key]
        return found

    async def watch(self) -> None:
        """Follow the cluster until cancelled; run it beside the controllers."""
        async with asyncio.TaskGroup() as group:
            for view in self._views.values():
                group.create_task(view.informer.run(), name=f"watch {view.resource.id} for controllers")

    async def synced(self) -> None:
        """Wait until every kind has been listed."""
        for view in self._views.values():
            await view.informer.synced.wait()

    def obstacles(self) -> list[str]:
        """What keeps a watch from listing right now, for people."""
        return [v.informer.reflector.trouble for v in self._views.values() if v.informer.reflector.trouble]

    def is_ours(self, scheduler_name: str) -> bool:
        return not scheduler_name or scheduler_name in self.scheduler_names

    async def work(self, queue: WorkQueue, decide: Callable[[str], tuple[Outcome, About | None]]) -> None:
        """Work a queue of keys: decide, carry out, look again when told to."""
        await self.synced()

        async def turn(key: str) -> None:
            outcome, about = decide(key)
            await self.carry_out(outcome.writes, about)
            if outcome.again is not None:
                queue.add_after(key, outcome.again)

        await queue.run(turn)

    # ---------------------------------------------------------------------------------------------------- carrying out

    async def carry_out(self, writes: Iterable[Write], about: About | None = None) -> None:
        """Carry out writes in order, equal writes of pods together. Raises the KubeError of the first that fails."""
        for together, group in groupby(writes, key=_together):
            some = list(group)
            if together is None:
                for write in some:
                    await self._carry_out_one(write, about)
                continue
            for start in range(0, len(some), _AT_ONCE):
                part = some[start : start + _AT_ONCE]
                done = await asyncio.gather(*(self._carry_out_one(w, about) for w in part), return_exceptions=True)
                for failed in done:
                    if isinstance(failed, BaseException):
                        raise failed

    async def _carry_out_one(self, write: Write, about: About | None) -> None:
        match write:
            case Tell():
                self.recorder.event(write.resource, write.about, write.kind, write.reason, write.message)
            case Remove():
                await self._remove(write)
            case Reap():
                await self._reap(write)
            case Change():
                await self._change(write)
            case Create():
                try:
                    await self._create(write)
                except (Forbidden, Invalid, Conflict) as error:
                    if about is not None:
                        told = f"Error creating {write.resource.kind} {write.name}: {error.message}"
                        self.recorder.event(*about, WARNING, f"FailedCreate{write.resource.kind}", told)
                    raise

    async def _create(self, write: Create) -> None:
        namespace = write.body["metadata"].get("namespace", "")
        try:
            made = await self.client.create(write.resource, write.body, namespace)
        except AlreadyExists as error:
            made = await self.client.get(write.resource, write.name, namespace)
            owners = write.body["metadata"].get("ownerReferences") or [{}]
            owner = controller_of(made.metadata)
            if (owner.uid if owner else None) != owners[0].get("uid"):
                told = f"{write.resource.kind} {write.name} exists and belongs to somebody else; delete or rename it"
                raise Conflict(error.request, error.status, error.reason, told) from error
        self._knows(write.resource, lambda view: view.wrote(made))

    async def _change(self, write: Change) -> None:
        if write.manager:
            meta = {**write.body.get("metadata", {}), "name": write.name}
            if write.namespace:
                meta["namespace"] = write.namespace
            if write.version:
                meta["resourceVersion"] = write.version
            head = {"apiVersion": write.resource.api_version, "kind": write.resource.kind}
            body = {**write.body, **head, "metadata": meta}
            kind, force = Patch.APPLY, True
        else:
            meta = dict(write.body.get("metadata", {}))
            if write.version:
                meta["resourceVersion"] = write.version
            if write.uid:
                meta["uid"] = write.uid
            body = {**write.body, "metadata": meta} if meta else dict(write.body)
            kind, force = Patch.MERGE, False
        try:
            made = await self.client.patch(
                write.resource,
                write.name,
                body,
                write.namespace,
                kind=kind,
                sub=write.sub,
                manager=write.manager,
                force=force,
            )
        except NotFound:
            return  # it went meanwhile; its going is told to us
        self._knows(write.resource, lambda view: view.wrote(made))

    async def _remove(self, write: Remove) -> None:
        try:
            await self.client.delete(
                write.resource, write.name, write.namespace, uid=write.uid, propagation=write.propagation
            )
        except (NotFound, Conflict):
            return  # it went meanwhile, or a successor has its name
        self._knows(write.resource, lambda view: view.removed(write.uid))

    async def _reap(self, write: Reap) -> None:
        try:
            found = await self.client.get(write.owner, write.name, write.namespace)
        except NotFound:
            pass
        else:
            if found.metadata.uid == write.uid:
                return  # what we see lags behind: the owner is only younger than that
        await self.carry_out(write.left)

    def _knows(self, resource: Resource[Any], learn: Callable[[View[Any]], None]) -> None:
        for view in self._views.values():
            if view.resource.id == resource.id:
                learn(view)


About = tuple[Resource[Any], ObjectMeta]
"""The object that a turn is about; events of failed writes go there."""


def _together(write: Write) -> str | None:
    return type(write).__name__ if isinstance(write, Create | Remove) and write.resource in (PODS, PODGROUPS) else None


def _by_uid(item: Any) -> list[str]:
    return [item.metadata.uid]


def _by_owner(item: Any) -> list[str]:
    owner = controller_of(item.metadata)
    return [owner.uid] if owner else []


def owner_key(owner: Resource[Any], item: Pod | PodGroup | None) -> str:
    """The key of the object of a kind that manages a pod or PodGroup; empty if none of that kind does."""
    found = controller_of(item.metadata) if item is not None else None
    if item is None or found is None or (found.kind, found.api_version) != (owner.kind, owner.api_version):
        return ""
    return f"{item.metadata.namespace}/{found.name}"


def patience(before: Pod | None, after: Pod | None) -> float:
    """In how many seconds to look at the owner of a pod that changed: at once where it ended, failed or is going.

    What is only on its way (created, bound, running) is gathered: a job of a thousand pods does not write a thousand
    times that one more runs while the scheduler still binds.
    """
    if after is None or after.metadata.deletion_timestamp is not None or after.status.phase in ("Succeeded", "Failed"):
        return 0.0
    if before is not None and before.status.phase in ("Succeeded", "Failed"):
        return 0.0
    return _CALM


def _by_owner_name(item: Any) -> list[str]:
    owner = controller_of(item.metadata)
    return [f"{owner.kind} {item.metadata.namespace}/{owner.name}"] if owner else []


def left_behind(owner: Resource[Any], key: str, *views: View[Any]) -> Outcome:
    """What there is to do when the owner of this key is gone: what it owned goes too."""
    namespace, _, name = key.partition("/")
    left: dict[str, list[Remove]] = {}
    for view in views:
        for item in view.by("owner name", f"{owner.kind} {key}"):
            meta, found = item.metadata, controller_of(item.metadata)
            if found is not None and found.api_version == owner.api_version and meta.deletion_timestamp is None:
                left.setdefault(found.uid, []).append(Remove(view.resource, namespace, meta.name, meta.uid))
    return Outcome([Reap(owner, namespace, name, uid, removes) for uid, removes in left.items()])
