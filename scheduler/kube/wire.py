"""One HTTP/1.1 connection: bytes out, one parsed answer in.

A wire carries one exchange at a time and has no notion of Kubernetes, retries or pools. The transport never stops
reading, because the API server cuts off a watcher that falls behind.
"""

# ruff: noqa: N818 - the words of the API, not of Python
from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, cast

import httptools

_RECEIVE_BUFFER = 4 << 20
"""Bytes that the kernel buffers while the event loop is busy. Set before the connection is made: otherwise the kernel
offers a smaller window.
"""
_READ_BUFFER = 64 << 10
"""Bytes per read. `data_received` of asyncio allocates 256 KB for each TLS record, which is a sixth of the cost of a
bind.
"""


async def connected_socket(host: str, port: int) -> socket.socket:
    """Connect to the first address of `host` that accepts. Raises OSError."""
    loop = asyncio.get_running_loop()
    trouble = OSError(f"{host} has no address")
    try:  # a numeric address needs no thread for its lookup
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for family, kind, protocol, _, address in found:
        raw = socket.socket(family, kind, protocol)
        try:
            raw.setblocking(False)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
            _keep_alive(raw)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.sock_connect(raw, address)
        except OSError as error:
            raw.close()
            trouble = error
        except BaseException:
            raw.close()
            raise
        else:
            return raw
    raise trouble


def _keep_alive(raw: socket.socket) -> None:
    """Let the kernel detect within half a minute that the peer is gone: a dead watch looks like a quiet one."""
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):  # some platforms lack these options
            raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


@dataclass(slots=True)
class Answer:
    """Status, header fields by lower-case name, and the whole body."""

    status: int
    headers: dict[str, str]
    body: bytes


class WireBroken(Exception):
    """The connection ended, or sent no HTTP, before the answer was complete.

    With `sent`, the server may have seen the request.
    """

    def __init__(self, why: str, *, sent: bool = True) -> None:
        super().__init__(why)
        self.sent = sent


@dataclass(slots=True)
class _Pieces:
    """Received pieces of a streamed body that the reader has not taken yet."""

    waiting: list[bytes] = field(default_factory=list)
    ended: bool = False
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, piece: bytes) -> None:
        self.waiting.append(piece)
        self.arrived.set()

    def end(self) -> None:
        self.ended = True
        self.arrived.set()


class Wire(asyncio.BufferedProtocol):
    """One connection. `exchange` and `open_stream` may be called again once the answer is complete, if `reusable`."""

    def __init__(self) -> None:
        self.reusable = True
        self._transport: asyncio.Transport | None = None
        self._read = memoryview(bytearray(_READ_BUFFER))
        self._parser: Any = None
        self._waiter: asyncio.Future[Answer] | None = None
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._pieces: _Pieces | None = None

    # ------------------------------------------------------------------------------------------------------ exchange

    async def exchange(self, request: bytes) -> Answer:
        """Send a request and return the complete answer. Raises WireBroken."""
        return await self._send(request)

    async def open_stream(self, request: bytes) -> Answer:
        """Send a request and return once the head has arrived, with an empty `body`.

        Raises WireBroken. `pieces` returns the body.
        """
        self._pieces = _Pieces()
        return await self._send(request)

    async def _send(self, request: bytes) -> Answer:
        if self._transport is None or self._transport.is_closing():
            raise WireBroken("closed before the request was sent", sent=False)
        self._parser = httptools.HttpResponseParser(self)
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            return await self._waiter
        except asyncio.CancelledError:
            self.close()
            raise
        finally:
            self._waiter = None

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body of a stream as it arrives; each piece has all bytes since the last one.

        Ends with the body or the connection.
        """
        pieces = self._pieces
        while pieces is not None:
            await pieces.arrived.wait()
            pieces.arrived.clear()
            if pieces.waiting:
                taken, pieces.waiting = pieces.waiting, []
                yield b"".join(taken)
            if pieces.ended and not pieces.waiting:
                return

    def close(self) -> None:
        """Abort the connection."""
        self.reusable = False
        if self._transport is not None:
            self._transport.abort()

    # ------------------------------------------------------------------------------------------ called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - part of asyncio's signature
        return self._read

    def buffer_updated(self, nbytes: int) -> None:
        if self._parser is None:
            self._break("the server sent bytes without a request")
            return
        try:
            self._parser.feed_data(self._read[:nbytes])
        except httptools.HttpParserError as error:
            self._break(f"not HTTP: {error}")

    def eof_received(self) -> None:
        self._break("the server closed the connection")

    def connection_lost(self, exc: Exception | None) -> None:
        self._break(f"connection lost: {exc}" if exc else "connection lost")
        # Break the reference cycles with this connection. Otherwise 0.3 MB with the buffers of TLS would wait for a
        # full garbage collection, which is hours away in a process that makes little garbage.
        self._transport = self._parser = None
        self._read = memoryview(b"")  # the connection may be listed as idle for long

    def _break(self, why: str) -> None:
        self.close()
        if self._pieces is not None:
            self._pieces.end()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(WireBroken(why))

    # --------------------------------------------------------------------------------------------- called by the parser

    def on_message_begin(self) -> None:
        self._headers = {}
        self._body = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._pieces is not None:
            self._answer()

    def on_body(self, body: bytes) -> None:
        if self._pieces is not None:
            self._pieces.put(body)
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        self.reusable = self.reusable and self._parser.should_keep_alive()
        if self._pieces is not None:
            self._pieces.end()
        else:
            self._answer()

    def _answer(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
            self._waiter.set_result(Answer(self._parser.get_status_code(), self._headers, body))
        self._headers, self._body = {}, []  # an idle connection keeps no answer
