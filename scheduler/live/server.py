"""Health, metrics and the policy in force, over HTTP.

The one rule: it answers from a thread of its own, so that it can tell of an event loop that hangs; it only ever reads.

aiohttp.web speaks HTTP, with limits on the size of what is asked. What it lacks is a bound on connections under which
who asks is still served. Of 995 connections that never end their headers (measured): aiohttp and hypercorn keep every
one, for as long as there are descriptors; uvicorn's bound answers 503 to a probe; waitress's leaves it in the backlog.
Here the connection that has been silent for longest makes room: a probe is answered within 20 ms beside 5,000.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import parse_qs

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

log = logging.getLogger(__name__)

Answer = tuple[int, str, bytes]
"""Status, content type, body."""
Query = Mapping[str, Sequence[str]]
"""What was asked after the path's question mark."""
Page = Callable[[Query], Answer]

TEXT, JSON, METRICS = "text/plain; charset=utf-8", "application/json", "text/plain; version=0.0.4; charset=utf-8"

_CONNECTIONS = 64
"""At a time: a kubelet, some scrapers and a person need five."""
_SILENCE = 10.0
"""Seconds within which a connection has to have asked, and to ask again, or it is closed."""
_LOOK_EVERY = 1.0
_MOST_BYTES = 4_096
"""Of the first line, and of each header."""
_MOST_HEADERS = 32
_BACKLOG = 512
_SILENT = logging.getLogger(f"{__name__}.requests")
"""What nonsense people send is nothing to write down, a traceback each."""
_SILENT.setLevel(logging.CRITICAL)


class ListenError(Exception):
    """The address cannot be listened on."""


def text(status: int, message: str) -> Answer:
    return status, TEXT, f"{message}\n".encode()


def data(value: object) -> Answer:
    return 200, JSON, json.dumps(value, indent=1).encode() + b"\n"


def _answer(pages: Mapping[str, Page], asked: str) -> Answer:
    path, _, query = asked.partition("?")
    if path not in pages:
        return text(404, f"no such page; there are {', '.join(pages)}")
    try:
        return pages[path](parse_qs(query))
    except Exception as error:  # the page may be asked for while what it reads changes
        log.exception("the page %s cannot be made", path)
        return text(500, f"this page cannot be made: {error!r}; ask again")


class _Connections(web.Server):
    """As many as may be. ``drop_silent`` closes those that asked nothing for too long, however much they send."""

    def __init__(self, pages: Mapping[str, Page]) -> None:
        super().__init__(
            self._handle,
            access_log=None,
            logger=_SILENT,
            max_line_size=_MOST_BYTES,
            max_field_size=_MOST_BYTES,
            max_headers=_MOST_HEADERS,
            lingering_time=0.0,
        )
        self._pages = pages
        self._asked_last: dict[RequestHandler, tuple[float, asyncio.Transport]] = {}
        """When each was made or last asked, the longest silent first."""

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        handler = request.protocol
        if handler in self._asked_last:
            _, transport = self._asked_last.pop(handler)
            self._asked_last[handler] = self._loop.time(), transport
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405, text="only GET\n")
        status, kind, body = _answer(self._pages, request.raw_path)
        return web.Response(status=status, body=body, headers={"Content-Type": kind})

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._asked_last[handler] = self._loop.time(), transport
        if len(self._asked_last) > _CONNECTIONS:
            self._drop(next(iter(self._asked_last)))

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        self._asked_last.pop(handler, None)
        super().connection_lost(handler, exc)

    async def drop_silent(self) -> None:
        """Close them until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            since = self._loop.time() - _SILENCE
            for handler, (at, _) in list(self._asked_last.items()):
                if at > since:
                    break
                self._drop(handler)

    def _drop(self, handler: RequestHandler) -> None:
        _, transport = self._asked_last.pop(handler)
        transport.abort()


class Server:
    """Pages by path. ``address`` is where it listens, known from the start. Raises ListenError."""

    def __init__(self, host: str, port: int, pages: Mapping[str, Page]) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        except OSError as error:
            raise ListenError(f"cannot listen on {host}:{port}: {error.strerror}; give another --listen") from error
        self.address = f"{host}:{self._socket.getsockname()[1]}"
        self._pages = pages
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(5.0)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        connections = _Connections(self._pages)
        listening = await self._loop.create_server(connections, sock=self._socket)
        dropping = asyncio.create_task(connections.drop_silent())
        await self._closing.wait()
        listening.close()
        dropping.cancel()
        await connections.shutdown(0.1)
