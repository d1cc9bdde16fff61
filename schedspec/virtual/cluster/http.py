"""Connect `scheduler.kube.Client` to the API server of a virtual cluster, without HTTP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import parse_qsl, urlsplit

import msgspec

from ...scheduler.kube.errors import error_of
from ...scheduler.kube.wire import Answer
from .server import ApiServer, ResourcePath, selector
from .store import Kind, Object, RefusedError

_encode = msgspec.json.Encoder().encode
_BOOKMARKS = 60.0
"""Seconds between two bookmarks."""


class VirtualHttp:
    """Replaces `scheduler.kube.Http`."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self.throttled = 0
        self.writes_answered = 0
        self._streams: dict[asyncio.Queue[bytes], Kind] = {}
        self._loop = asyncio.get_running_loop()
        self._loop.call_later(_BOOKMARKS, self._bookmark)

    async def request(
        self, method: str, path: str, body: bytes = b"", content_type: str = "application/json", **_: object
    ) -> Answer:
        """Send a request and return the answer. Raises ApiError."""
        status, answer = self._server.request(method, path, body, content_type)
        if status >= 400:
            raise error_of(f"{method} {path}", status, answer)
        self.writes_answered += method != "GET"
        await asyncio.sleep(0)
        return Answer(status, {}, answer)

    @contextlib.asynccontextmanager
    async def stream(self, path: str, *, deadline: float = 30.0) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield the events of a watch: every change after the version that the path names. Raises ApiError."""
        del deadline
        split = urlsplit(path)
        query, place = dict(parse_qsl(split.query)), ResourcePath(split.path)
        if place.kind is None:
            raise error_of(f"GET {path}", 404, b"not found")
        wanted, changes = selector(query), asyncio.Queue[bytes]()

        def on_change(_: Kind, change: str, item: Object) -> None:
            if wanted(item):
                changes.put_nowait(_encode({"type": change, "object": item}) + b"\n")

        async def pieces() -> AsyncIterator[bytes]:
            while True:
                yield await changes.get()

        try:
            for change, item in self._server.store.since(place.kind, query.get("resourceVersion", "")):
                on_change(place.kind, change, item)
        except RefusedError as refused:
            body = _encode({"reason": refused.reason, "message": refused.message})
            raise error_of(f"GET {path}", refused.status, body) from refused
        self._server.store.add_listener(on_change, place.kind)
        self._streams[changes] = place.kind
        try:
            yield pieces()
        finally:
            self._server.store.remove_listener(on_change, place.kind)
            del self._streams[changes]

    def _bookmark(self) -> None:
        """Send a bookmark to every watch, as the API server does once a minute."""
        for changes, kind in self._streams.items():
            meta = {"resourceVersion": self._server.store.version}
            item = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}
            changes.put_nowait(_encode({"type": "BOOKMARK", "object": item}) + b"\n")
        self._loop.call_later(_BOOKMARKS, self._bookmark)

    async def close(self) -> None:
        """Do nothing: no connection is open."""
