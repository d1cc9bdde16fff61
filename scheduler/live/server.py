"""Serve health, metrics and the policy in force over HTTP.

The server runs in its own thread, so that it can report an event loop that hangs. It only reads.

aiohttp.web parses HTTP and limits the size of requests, but not the number of connections. Other servers do not solve
this, as measured with 995 connections that never finish their headers: hypercorn keeps all of them while descriptors
last; uvicorn's limit answers 503 to a probe; waitress's limit leaves the probe in the backlog. This server closes the
connection that has been silent longest: with 5,000 such connections, it answers a probe within 20 ms.
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
"""The parameters after the path's question mark."""
Endpoint = Callable[[Query], Answer]

TEXT, JSON, METRICS = "text/plain; charset=utf-8", "application/json", "text/plain; version=0.0.4; charset=utf-8"

_CONNECTIONS = 64
"""Maximum number of connections; a kubelet, some scrapers and a person need five."""
_SILENCE = 10.0
"""Seconds after which a connection without a request is closed."""
_CHECK_EVERY = 1.0
_MAX_BYTES = 4_096
"""The size limit of the request line, and of each header."""
_MAX_HEADERS = 32
_BACKLOG = 512
_SILENT = logging.getLogger(f"{__name__}.requests")
"""Malformed requests are not logged; each would be a traceback."""
_SILENT.setLevel(logging.CRITICAL)


class ListenError(Exception):
    """The server cannot listen on the address."""


def text(status: int, message: str) -> Answer:
    return status, TEXT, f"{message}\n".encode()


def data(value: object) -> Answer:
    return 200, JSON, json.dumps(value, indent=1).encode() + b"\n"


def _answer(endpoints: Mapping[str, Endpoint], target: str) -> Answer:
    path, _, query = target.partition("?")
    if path not in endpoints:
        return text(404, f"no such page; the pages are {', '.join(endpoints)}")
    try:
        return endpoints[path](parse_qs(query))
    except Exception as error:  # the data may change while an endpoint reads it
        log.exception("endpoint %s failed", path)
        return text(500, f"this page failed: {error!r}; try again")


class _Connections(web.Server):
    """The open connections, at most `_CONNECTIONS`. `drop_silent` closes connections without a request in time."""

    def __init__(self, endpoints: Mapping[str, Endpoint]) -> None:
        super().__init__(
            self._handle,
            access_log=None,
            logger=_SILENT,
            max_line_size=_MAX_BYTES,
            max_field_size=_MAX_BYTES,
            max_headers=_MAX_HEADERS,
            lingering_time=0.0,
        )
        self._endpoints = endpoints
        self._last_requests: dict[RequestHandler, tuple[float, asyncio.Transport]] = {}
        """When each connection was opened or sent its last request, and its transport; the longest silent first."""

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        handler = request.protocol
        if handler in self._last_requests:
            _, transport = self._last_requests.pop(handler)
            self._last_requests[handler] = self._loop.time(), transport
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405, text="only GET\n")
        status, kind, body = _answer(self._endpoints, request.raw_path)
        return web.Response(status=status, body=body, headers={"Content-Type": kind})

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._last_requests[handler] = self._loop.time(), transport
        if len(self._last_requests) > _CONNECTIONS:
            self._drop(next(iter(self._last_requests)))

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        self._last_requests.pop(handler, None)
        super().connection_lost(handler, exc)

    async def drop_silent(self) -> None:
        """Close silent connections until cancelled."""
        while True:
            await asyncio.sleep(_CHECK_EVERY)
            since = self._loop.time() - _SILENCE
            for handler, (at, _) in list(self._last_requests.items()):
                if at > since:
                    break
                self._drop(handler)

    def _drop(self, handler: RequestHandler) -> None:
        _, transport = self._last_requests.pop(handler)
        transport.abort()


class Server:
    """Serve endpoints by path. `address` is where the server listens; it is known before `start`.

    Raises:
        ListenError: The server cannot listen on the address.
    """

    def __init__(self, host: str, port: int, endpoints: Mapping[str, Endpoint]) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        except OSError as error:
            raise ListenError(f"cannot listen on {host}:{port}: {error.strerror}; choose another --listen") from error
        self.address = f"{host}:{self._socket.getsockname()[1]}"
        self._endpoints = endpoints
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
        connections = _Connections(self._endpoints)
        listening = await self._loop.create_server(connections, sock=self._socket)
        dropping = asyncio.create_task(connections.drop_silent())
        await self._closing.wait()
        listening.close()
        dropping.cancel()
        await connections.shutdown(0.1)
