"""Typed operations on API objects.

The one rule: bodies are plain mappings (our structs name only the fields that we read, so writing one back would drop
the others), answers are structs, and the kind of a patch is always said.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any
from urllib.parse import urlencode

import msgspec

from .decoding import PAGE_BYTES, UNREADABLE, Listing, read
from .errors import UnreadableAnswer
from .http import Http
from .resource import PODS, Resource, T
from .scope import EVERYTHING, Scope
from .slices import in_turns
from .wire import Answer

PAGE = 1000
"""Objects a page of a list at most, so that a long list never blocks the others."""
_FIRST_PAGE = 100
"""Of the first, before it is known how large they are."""

Body = Mapping[str, Any] | Sequence[Any]


class Patch(enum.Enum):
    """Kinds of patches, by content type. Custom resources do not know STRATEGIC."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


_encode = msgspec.json.Encoder().encode


class Client:
    """Operations on one API server. Every method raises ApiError (by its subclasses) or Unreachable.

    ``once``: nothing but the page of a list is tried a second time; for callers that have a queue in which what is to
    be repeated waits. ``scope`` is what reflectors tell of.
    """

    def __init__(self, http: Http, *, once: bool = False, scope: Scope = EVERYTHING) -> None:
        self.http = http
        self.scope = scope
        self._once = once

    # -------------------------------------------------------------------------------------------------------- reading

    async def get(self, resource: Resource[T], name: str, namespace: str = "") -> T:
        """One object. Raises NotFound; UnreadableAnswer where the struct cannot read it."""
        path = resource.path(namespace, name)
        answer = await self.http.request("GET", path, once=self._once)
        return await _read(resource, f"GET {path}", answer)

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
        """All objects, page by page. Raises Gone where the list took longer than the server keeps its pages,
        UnreadableAnswer where the answer is no list.
        """
        listing: Listing[T] = Listing()
        size = min(page, _FIRST_PAGE)
        query = {"limit": str(size), "labelSelector": labels, "fieldSelector": fields}
        while True:
            asked = urlencode({key: value for key, value in query.items() if value})
            path = f"{resource.path(namespace)}?{asked}"
            answer = await self.http.request("GET", path, deadline=deadline)
            try:
                more = await in_turns(listing.add_page(resource, answer.body))
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
        """The bytes of a watch from a version on, bookmarks included. For
        :class:`scheduler.kube.reflector.Reflector`.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(seconds),
            "labelSelector": labels,
            "fieldSelector": fields,
        }
        asked = urlencode({key: value for key, value in query.items() if value})
        return self.http.stream(f"{resource.path(namespace)}?{asked}")

    # -------------------------------------------------------------------------------------------------------- writing

    async def create(self, resource: Resource[T], body: Body, namespace: str = "", *, deadline: float = 30.0) -> T:
        """Create an object; ``apiVersion`` and ``kind`` are filled in. Not repeated if its answer is lost
        (Unreachable, ``sent``).
        """
        full = {"apiVersion": resource.api_version, "kind": resource.kind, **_mapping(body)}
        return await self._write(resource, "POST", resource.path(namespace), full, deadline=deadline)

    async def update(
        self,
        resource: Resource[T],
        name: str,
        body: Body,
        namespace: str = "",
        *,
        sub: str = "",
        deadline: float = 30.0,
    ) -> T:
        """Replace an object (or its ``sub`` = ``status``). Give its resourceVersion; raises Conflict where it is not
        the last.
        """
        full = {"apiVersion": resource.api_version, "kind": resource.kind, **_mapping(body)}
        path = resource.path(namespace, name, sub)
        return await self._write(resource, "PUT", path, full, deadline=deadline, repeatable=True)

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
        deadline: float = 30.0,
    ) -> T:
        """Change an object (or its ``sub`` = ``status``). APPLY needs a ``manager`` (field manager) and creates what
        is missing.

        Repeated if its answer is lost, so do not send what adds up (a JSON patch that appends to a list).
        """
        path = resource.path(namespace, name, sub)
        query = {"fieldManager": manager, "force": "true" if force else ""}
        if asked := urlencode({key: value for key, value in query.items() if value}):
            path = f"{path}?{asked}"
        return await self._write(resource, "PATCH", path, body, kind.value, deadline=deadline, repeatable=True)

    async def delete(
        self,
        resource: Resource[T],
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        grace: int | None = None,
        propagation: str = "",
        deadline: float = 30.0,
    ) -> None:
        """Delete an object. With ``uid`` only that one, never a successor of the same name (Conflict).

        ``grace`` in seconds; None leaves the object's own. ``propagation`` is Background, Foreground or Orphan.
        Raises NotFound.
        """
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if propagation:
            options["propagationPolicy"] = propagation
        path, body = resource.path(namespace, name), _encode(options)
        await self.http.request("DELETE", path, body, deadline=deadline, repeatable=bool(uid), once=self._once)

    async def bind(self, namespace: str, name: str, uid: str, node: str, *, deadline: float = 30.0) -> None:
        """Put a pod onto a node. Conflict: it is bound already, or another pod has its name now. Repeated if its
        answer is lost.
        """
        body = _encode(
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": name, "namespace": namespace, "uid": uid},
                "target": {"kind": "Node", "name": node},
            }
        )
        path = PODS.path(namespace, name, "binding")
        await self.http.request("POST", path, body, deadline=deadline, repeatable=True, once=self._once)

    async def _write(
        self,
        resource: Resource[T],
        method: str,
        path: str,
        body: Body,
        content_type: str = "application/json",
        *,
        deadline: float,
        repeatable: bool = False,
    ) -> T:
        answer = await self.http.request(
            method, path, _encode(body), content_type, deadline=deadline, repeatable=repeatable, once=self._once
        )
        return await _read(resource, f"{method} {path}", answer)


async def _read(resource: Resource[T], request: str, answer: Answer) -> T:
    try:
        return await in_turns(read(resource, answer.body))
    except UNREADABLE as error:
        raise UnreadableAnswer(request, error) from error


def _mapping(body: Body) -> Mapping[str, Any]:
    if not isinstance(body, Mapping):
        raise TypeError(f"an object is a mapping, not {type(body).__name__}")
    return body
