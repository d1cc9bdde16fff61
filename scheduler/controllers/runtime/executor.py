"""The carrying out of what controllers want.

The one rule: writes are carried out in their order, and the first that fails ends the turn: the next turn decides anew
from what is there then. What the API server has confirmed is known at once, whatever the watches lag behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

from ...kube import (
    PODGROUPS,
    PODS,
    WARNING,
    AlreadyExists,
    Client,
    Conflict,
    EventRecorder,
    Forbidden,
    Invalid,
    NotFound,
    Patch,
    Resource,
)
from ...model.objects import ObjectMeta
from .pods import controller_of
from .write_through_cache import WriteThroughCache
from .writes import ApplyObject, CollectOrphans, Create, EmitEvent, Remove, Write

_AT_ONCE = 16
"""Pods of one object created or deleted at a time."""

About = tuple[Resource[Any], ObjectMeta]
"""The object that a turn is about; events of failed writes go there."""


class WriteExecutor:
    """Writes for controllers. ``views`` finds what shows objects of a kind, so that it learns of the writes."""

    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        views: Callable[[Resource[Any]], Iterable[WriteThroughCache[Any]]],
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._views = views

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
            case EmitEvent():
                self._recorder.event(write.resource, write.about, write.kind, write.reason, write.message)
            case Remove():
                await self._remove(write)
            case CollectOrphans():
                await self._reap(write)
            case ApplyObject():
                try:
                    await self._change(write)
                except (Forbidden, Invalid) as error:
                    if about is not None and write.manager and not write.sub:
                        told = f"Error applying {write.resource.kind} {write.name}: {error.message}"
                        self._recorder.event(*about, WARNING, f"FailedApply{write.resource.kind}", told)
                    raise
            case Create():
                try:
                    await self._create(write)
                except AlreadyExists:
                    raise  # not seen yet: the next turn sees it
                except (Forbidden, Invalid, Conflict) as error:
                    if about is not None:
                        told = f"Error creating {write.resource.kind} {write.name}: {error.message}"
                        self._recorder.event(*about, WARNING, f"FailedCreate{write.resource.kind}", told)
                    raise

    async def _create(self, write: Create) -> None:
        namespace = write.body["metadata"].get("namespace", "")
        try:
            made = await self._client.create(write.resource, write.body, namespace)
        except AlreadyExists as error:
            self._check_ours(write, f"{namespace}/{write.name}" if namespace else write.name, error)
            return
        self._knows(write.resource, lambda view: view.wrote(made))

    def _check_ours(self, write: Create, key: str, error: AlreadyExists) -> None:
        """What exists is what was wanted if it has the same owner; raises where it has another, or is not seen yet."""
        owners = write.body["metadata"].get("ownerReferences") or [{}]
        for view in self._views(write.resource):
            found = view.get(key)
            if found is None:
                continue
            owner = controller_of(found.metadata)
            if (owner.uid if owner else None) == owners[0].get("uid"):
                return
            told = f"{write.resource.kind} {write.name} exists and belongs to somebody else; delete or rename it"
            raise Conflict(error.request, error.status, error.reason, told) from error
        raise error

    async def _change(self, write: ApplyObject) -> None:
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
            made = await self._client.patch(
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
            await self._client.delete(
                write.resource, write.name, write.namespace, uid=write.uid, propagation=write.propagation
            )
        except (NotFound, Conflict):
            return  # it went meanwhile, or a successor has its name
        self._knows(write.resource, lambda view: view.removed(write.uid))

    async def _reap(self, write: CollectOrphans) -> None:
        owner: Resource[Any] = write.owner.bare
        found = await self._client.list(owner, write.namespace, fields=f"metadata.name={write.name}")
        if any(one.metadata.uid == write.uid for one in (*found.items, *found.malformed)):
            return  # what we see lags behind
        await self.carry_out(write.left)

    def _knows(self, resource: Resource[Any], learn: Callable[[WriteThroughCache[Any]], None]) -> None:
        for view in self._views(resource):
            learn(view)


def _together(write: Write) -> str | None:
    return type(write).__name__ if isinstance(write, Create | Remove) and write.resource in (PODS, PODGROUPS) else None
