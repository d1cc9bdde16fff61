"""Typed operations on API objects.

Request bodies are plain mappings, because our structs name only the fields that we read; to write a struct back would
drop the other fields. Answers are structs. A patch is a merge patch unless the caller names another kind.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any
from urllib.parse import urlencode

import msgspec

from .decoding import PAGE_BYTES, UNREADABLE, Listing, read, run_yielding
from .errors import KubeError, UndeclaredField, UnreadableAnswer
from .http import Http
from .resource import PODS, Resource, T
from .scope import EVERYTHING, Scope
from .wire import Answer

log = logging.getLogger(__name__)
Schema = Mapping[str, Any]

_VERSION_KIND = "x-kubernetes-group-version-kind"


class ServedFields:
    """The schemas of the kinds for which an apply was refused, so that a body is written without what they lack.

    Another version of a definition, such as Volcano's own, may lack fields that we write. The API server refuses a
    whole server-side apply because of one such field (500, `field not declared in schema`). After the first such
    refusal, the schema of the kind is read from the API server, once, and every later apply of that kind leaves these
    fields out.
    """

    def __init__(self, http: Http) -> None:
        self._http = http
        self._schemas: dict[str, Schema] = {}
        """By the id of a resource."""

    def lacks(self, resource: Resource[Any], *path: str) -> bool:
        """Whether the served definition is known to lack the field at a path."""
        schema: Any = self._schemas.get(resource.id)
        for name in path:
            if not isinstance(schema, Mapping) or "properties" not in schema:
                return False
            if name not in schema["properties"]:
                return True
            schema = schema["properties"][name]
        return False

    def of(self, resource: Resource[Any], body: Any) -> Any:
        """Return the part of a body that the definition has; the whole body where no schema is known."""
        schema = self._schemas.get(resource.id)
        return body if schema is None else _declared(msgspec.to_builtins(body), schema)

    async def read(self, resource: Resource[Any]) -> bool:
        """Read the schema of a kind. Return False if it was known already, or if the API server does not tell it."""
        if resource.id in self._schemas:
            return False
        path = f"/openapi/v3/apis/{resource.api_version}"
        try:
            answer = await self._http.request("GET", path)
            schemas = msgspec.json.decode(answer.body)["components"]["schemas"].values()
        except (KubeError, msgspec.DecodeError, LookupError, TypeError, AttributeError) as error:
            log.warning("the schema of %s is unknown: %s", resource.id, error)
            return False
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        found = [schema for schema in schemas if kind in schema.get(_VERSION_KIND, ())]
        if found:
            self._schemas[resource.id] = found[0]
            log.warning("the definition of %s lacks fields that are written here; they are left out", resource.id)
        return bool(found)


def _declared(value: Any, schema: Any) -> Any:
    """Return the part of a value that a schema declares."""
    if not isinstance(schema, Mapping) or schema.get("x-kubernetes-preserve-unknown-fields"):
        return value
    if isinstance(value, list):
        return [_declared(item, schema.get("items")) for item in value]
    if not isinstance(value, dict):
        return value
    if fields := schema.get("properties"):
        return {name: _declared(item, fields[name]) for name, item in value.items() if name in fields}
    return {name: _declared(item, schema.get("additionalProperties")) for name, item in value.items()}


PAGE = 1000
"""Maximum number of objects in a page of a list, so that a long list does not block other requests."""
_FIRST_PAGE = 100
"""Objects in the first page, before their size is known."""
_EXISTS_SECONDS = 10.0

Body = Mapping[str, Any] | Sequence[Any]


class Patch(enum.Enum):
    """Kinds of patches, by content type. Custom resources do not support STRATEGIC."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


_encode = msgspec.json.Encoder().encode


class Client:
    """Operations on one API server. Every method raises a subclass of ApiError, or Unreachable.

    Args:
        once: Retry no request except for pages of a list. For callers that requeue failed requests themselves.
        scope: The objects that reflectors report.
    """

    def __init__(self, http: Http, *, once: bool = False, scope: Scope = EVERYTHING) -> None:
        self.http = http
        self.scope = scope
        self.served = ServedFields(http)
        self._once = once

    # -------------------------------------------------------------------------------------------------------- reading

    async def get(self, resource: Resource[T], name: str, namespace: str = "") -> T:
        """Return one object.

        Raises:
            NotFound: No such object.
            UnreadableAnswer: The struct cannot read the object.
        """
        path = resource.path(namespace, name)
        answer = await self.http.request("GET", path, once=self._once)
        return await _read(resource, f"GET {path}", answer)

    async def exists(self, resource: Resource[Any], name: str, namespace: str, uid: str) -> bool:
        """Return True if the API server has the object with this uid; a successor of the same name does not count.

        The request is a list by name, so that it needs no right to `get`.
        """
        found = await self.list(resource.bare, namespace, fields=f"metadata.name={name}", deadline=_EXISTS_SECONDS)
        uids = {item.metadata.uid for item in found.items} | {item.metadata.uid for item in found.malformed}
        return uid in uids

    async def list(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        page: int = PAGE,
        deadline: float = 60.0,
    ) -> Listing[T]:
        """Return all objects, read page by page.

        Raises:
            Gone: The list took longer than the server keeps its pages.
            UnreadableAnswer: The answer is not a list.
        """
        listing: Listing[T] = Listing()
        size = min(page, _FIRST_PAGE)
        query = {"limit": str(size), "labelSelector": labels, "fieldSelector": fields}
        while True:
            encoded = urlencode({key: value for key, value in query.items() if value})
            path = f"{resource.path(namespace)}?{encoded}"
            answer = await self.http.request("GET", path, deadline=deadline)
            try:
                more = await run_yielding(listing.add_page(resource, answer.body))
            except UNREADABLE as error:
                raise UnreadableAnswer(f"list of {resource.id}", error) from error
            if not more:
                return listing
            size = min(page, 4 * size, max(size * PAGE_BYTES // len(answer.body), 1))
            query |= {"continue": more, "limit": str(size)}

    def watch(
        self,
        resource: Resource[T],
        resource_version: str,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        seconds: int = 300,
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a watch from a version on, with bookmarks, and return its bytes. For `reflector.Reflector`."""
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(seconds),
            "labelSelector": labels,
            "fieldSelector": fields,
        }
        encoded = urlencode({key: value for key, value in query.items() if value})
        return self.http.stream(f"{resource.path(namespace)}?{encoded}")

    # -------------------------------------------------------------------------------------------------------- writing

    async def create(self, resource: Resource[T], body: Body, namespace: str = "") -> T:
        """Create an object.

        `apiVersion` and `kind` are filled in. A create is not repeated if its answer is lost (Unreachable, `sent`).
        """
        full = {"apiVersion": resource.api_version, "kind": resource.kind, **_mapping(body)}
        return await self._write(resource, "POST", resource.path(namespace), full)

    async def update(self, resource: Resource[T], name: str, body: Body, namespace: str = "") -> T:
        """Replace an object. The body has to contain the resourceVersion.

        Raises:
            Conflict: The resourceVersion is not the latest.
        """
        full = {"apiVersion": resource.api_version, "kind": resource.kind, **_mapping(body)}
        return await self._write(resource, "PUT", resource.path(namespace, name), full, repeatable=True)

    async def patch(
        self,
        resource: Resource[T],
        name: str,
        body: Body,
        namespace: str = "",
        *,
        kind: Patch = Patch.MERGE,
        sub: str = "",
        manager: str = "",
        force: bool = False,
    ) -> T:
        """Change an object, or its subresource `sub` (`status`).

        APPLY needs a field `manager` and creates a missing object. It leaves out fields that the API server's
        definition of the kind lacks (`ServedFields`). A patch is repeated if its answer is lost, so it
        must be idempotent: do not append to a list by a JSON patch.
        """
        path = resource.path(namespace, name, sub)
        query = {"fieldManager": manager, "force": "true" if force else ""}
        if encoded := urlencode({key: value for key, value in query.items() if value}):
            path = f"{path}?{encoded}"

        async def send(part: Body) -> T:
            return await self._write(resource, "PATCH", path, part, kind.value, repeatable=True)

        if kind is not Patch.APPLY:
            return await send(body)
        try:
            return await send(self.served.of(resource, body))
        except UndeclaredField:
            if not await self.served.read(resource):
                raise
        return await send(self.served.of(resource, body))

    async def delete(
        self,
        resource: Resource[T],
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        grace: int | None = None,
        propagation: str = "",
    ) -> None:
        """Delete an object.

        With `uid`, only the object with this uid is deleted, never a successor of the same name (Conflict). `grace` is
        in seconds; None keeps the object's own grace period. `propagation` is Background, Foreground or Orphan.

        Raises:
            NotFound: No such object.
        """
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if propagation:
            options["propagationPolicy"] = propagation
        path, body = resource.path(namespace, name), _encode(options)
        await self.http.request("DELETE", path, body, repeatable=bool(uid), once=self._once)

    async def bind(
        self,
        namespace: str,
        name: str,
        uid: str,
        node: str,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Bind a pod to a node. The request is repeated if its answer is lost.

        The API server adds the annotations to the pod in the same write.

        Raises:
            Conflict: The pod is bound already, or another pod has its name now.
        """
        more = {"annotations": annotations} if annotations else {}
        body = _encode(
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": name, "namespace": namespace, "uid": uid, **more},
                "target": {"kind": "Node", "name": node},
            }
        )
        path = PODS.path(namespace, name, "binding")
        await self.http.request("POST", path, body, repeatable=True, once=self._once)

    async def _write(
        self,
        resource: Resource[T],
        method: str,
        path: str,
        body: Body,
        content_type: str = "application/json",
        *,
        repeatable: bool = False,
    ) -> T:
        answer = await self.http.request(
            method, path, _encode(body), content_type, repeatable=repeatable, once=self._once
        )
        return await _read(resource, f"{method} {path}", answer)


async def _read(resource: Resource[T], request: str, answer: Answer) -> T:
    try:
        return await run_yielding(read(resource, answer.body))
    except UNREADABLE as error:
        raise UnreadableAnswer(request, error) from error


def _mapping(body: Body) -> Mapping[str, Any]:
    if not isinstance(body, Mapping):
        raise TypeError(f"an object is a mapping, not {type(body).__name__}")
    return body
