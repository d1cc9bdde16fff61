"""Carry out the writes of controllers.

Writes are carried out in order, and the first failure ends the reconciliation; the next one decides on the current
state. Views show a write once the API server has confirmed it, even if watches lag.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import groupby
from typing import Any

from ...kube import (
    PODGROUPS,
    PODS,
    WARNING,
    AlreadyExists,
    ApiError,
    Client,
    Conflict,
    EventRecorder,
    Forbidden,
    Invalid,
    NotFound,
    Patch,
    Resource,
    ServerError,
    TooManyRequests,
)
from ...model.objects import ObjectMeta
from .pods import controller_of
from .write_through_cache import WriteThroughCache
from .writes import ApplyObject, CollectOrphans, Create, EmitEvent, Remove, Write

_AT_ONCE = 16
"""Maximum number of pods and PodGroups that one `carry_out` creates or deletes concurrently."""

About = tuple[Resource[Any], ObjectMeta]
"""The reconciled object, which receives the events about failed writes."""


class NameTaken(Conflict):
    """An object of this name exists and does not carry the owner reference of the object that needs it."""


class WriteExecutor:
    """Writes for controllers. `views` returns the views of a kind, which are notified of each confirmed write."""

    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        views: Callable[[Resource[Any]], Iterable[WriteThroughCache[Any]]],
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._views = views
        self.refused: dict[str, str] = {}
        """Kinds whose last change was refused, by id, with the refusal."""

    async def carry_out(self, writes: Iterable[Write], about: About | None = None) -> None:
        """Carry out writes in order (successive pods and PodGroups concurrently). Raises the first error."""
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
                await self._collect_orphans(write)
            case ApplyObject():
                await self._change_or_report(write, about)
            case Create():
                try:
                    await self._create(write)
                except AlreadyExists:
                    raise  # not visible yet: the next reconciliation sees it
                except NameTaken:
                    raise  # the next reconciliation reports it in the object's status
                except (Forbidden, Invalid, Conflict) as error:
                    if about is not None:
                        self._recorder.event(*about, WARNING, *self._failure(write, error))
                    raise

    async def _create(self, write: Create) -> None:
        namespace = write.body["metadata"].get("namespace", "")
        try:
            answer = await self._client.create(write.resource, write.body, namespace)
        except AlreadyExists as error:
            found = await self._existing(write, namespace, error)
            owner, wanted = controller_of(found.metadata), write.body["metadata"].get("ownerReferences") or [{}]
            if (owner.uid if owner else None) != wanted[0].get("uid"):
                text = f"{write.resource.kind} {write.name} exists and belongs to somebody else; delete or rename it"
                raise NameTaken(error.request, error.status, error.reason, text) from error
            if write.update:
                await self._update(write, found.metadata)
            return
        self._update_views(write.resource, lambda view: view.wrote(answer))

    async def _existing(self, write: Create, namespace: str, error: AlreadyExists) -> Any:
        """Return the object that has the name. Raises `error` if the views of the kind do not show it yet."""
        views = list(self._views(write.resource))
        if not views:
            return await self._client.get(write.resource, write.name, namespace)
        key = f"{namespace}/{write.name}" if namespace else write.name
        found = next((item for view in views if (item := view.get(key)) is not None), None)
        if found is None:
            raise error
        return found

    async def _update(self, write: Create, found: ObjectMeta) -> None:
        """Merge the body into the object, if it still has the version whose owner was checked."""
        meta = {**write.body["metadata"], "uid": found.uid, "resourceVersion": found.resource_version}
        body = {**write.body, "metadata": meta}
        await self._client.patch(write.resource, write.name, body, found.namespace, kind=Patch.MERGE)

    def _failure(self, write: Create, error: ApiError) -> tuple[str, str]:
        """Return reason and message of the event. Kinds without a view (objects of plugins) have another reason."""
        verb, word = ("creating", "Create") if any(self._views(write.resource)) else ("applying", "Apply")
        kind = write.resource.kind
        return f"Failed{word}{kind}", f"Error {verb} {kind} {write.name}: {error.message}"

    async def _change_or_report(self, write: ApplyObject, about: About | None) -> None:
        """Change an object. If the API server refuses, report that in an event, in the object and in readiness."""
        try:
            await self._change(write)
        except (Conflict, TooManyRequests):
            raise  # the next reconciliation decides on the current state
        except ApiError as error:
            self.refused[write.resource.id] = f"{write.resource.id} cannot be written: {error}"
            if isinstance(error, ServerError):
                raise  # the server is overloaded or restarts: there is nothing for users to do
            if about is not None:
                message = f"the API server refuses the update: {error.message}"
                self._recorder.event(*about, WARNING, "FailedUpdate", message)
            if write.on_refusal is not None:
                with contextlib.suppress(ApiError):
                    await self._change(replace(write, body=write.on_refusal(error.message), manager=""))
            raise
        self.refused.pop(write.resource.id, None)

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
            answer = await self._client.patch(
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
            return  # deleted meanwhile; the watch reports the deletion
        self._update_views(write.resource, lambda view: view.wrote(answer))

    async def _remove(self, write: Remove) -> None:
        try:
            await self._client.delete(
                write.resource, write.name, write.namespace, uid=write.uid, propagation=write.propagation
            )
        except NotFound:
            return
        except Conflict:
            if await self._client.exists(write.resource, write.name, write.namespace, write.uid):
                raise  # the cause is not a successor of the same name: reconcile again
            return
        self._update_views(write.resource, lambda view: view.removed(write.uid))

    async def _collect_orphans(self, write: CollectOrphans) -> None:
        owner: Resource[Any] = write.owner.bare
        found = await self._client.list(owner, write.namespace, fields=f"metadata.name={write.name}")
        if any(one.metadata.uid == write.uid for one in (*found.items, *found.malformed)):
            return  # the owner exists: the view lags behind
        await self.carry_out(write.left)

    def _update_views(self, resource: Resource[Any], update: Callable[[WriteThroughCache[Any]], None]) -> None:
        for view in self._views(resource):
            update(view)


def _together(write: Write) -> str | None:
    return type(write).__name__ if isinstance(write, Create | Remove) and write.resource in (PODS, PODGROUPS) else None
