"""One HTTP/1.1 connection: bytes out, one parsed answer in.

The one rule: a wire carries one exchange at a time and knows nothing of Kubernetes, retries or pools. The transport
hands over what it has read as soon as it has read it, and nothing here ever makes it stop reading: a watcher that
falls behind is cut off by the API server.
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
"""Bytes that the kernel keeps for us while the event loop is busy; said before the connection is made, or it counts
less.
"""
_READ_BUFFER = 64 << 10
"""Bytes that are read at a time. asyncio's own way, ``data_received``, takes 256 KB of memory anew for each record of
TLS: a sixth of what a bind costs.
"""


async def connected_socket(host: str, port: int) -> socket.socket:
    """A connection to the first address of ``host`` that takes one. Raises OSError."""
    loop = asyncio.get_running_loop()
    trouble = OSError(f"{host} has no address")
    try:  # an address needs no thread to be looked up in
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
    """Have the kernel find out within half a minute that the other side is gone: a silent watch looks like a quiet
    one.
    """
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):  # not everywhere
            raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


@dataclass(slots=True)
class Answer:
    """Status, header fields by lower-case name, and the whole body."""

    status: int
    headers: dict[str, str]
    body: bytes


class WireBroken(Exception):
    """The connection ended or spoke nonsense before the answer was complete. ``sent``: the server may have seen the
    request.
    """

    def __init__(self, why: str, *, sent: bool = True) -> None:
        super().__init__(why)
        self.sent = sent


@dataclass(slots=True)
class _Pieces:
    """What has come of a streamed body and was not taken yet."""

    waiting: list[bytes] = field(default_factory=list)
    ended: bool = False
    some: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, piece: bytes) -> None:
        self.waiting.append(piece)
        self.some.set()

    def end(self) -> None:
        self.ended = True
        self.some.set()


class Wire(asyncio.BufferedProtocol):
    """One connection. ``exchange`` or ``open_stream``, then again once the answer is complete and ``reusable``."""

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
        """Send a request, return the complete answer. Raises WireBroken."""
        return await self._send(request)

    async def open_stream(self, request: bytes) -> Answer:
        """Send a request, return as soon as the head is there (``body`` empty); the body comes by ``pieces``. Raises
        WireBroken.
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
        """The body of a stream, as it comes; all that has come since the last piece at once. Ends with the body or
        the connection.
        """
        pieces = self._pieces
        while pieces is not None:
            await pieces.some.wait()
            pieces.some.clear()
            if pieces.waiting:
                taken, pieces.waiting = pieces.waiting, []
                yield b"".join(taken)
            if pieces.ended and not pieces.waiting:
                return

    def close(self) -> None:
        """Give the connection up."""
        self.reusable = False
        if self._transport is not None:
            self._transport.abort()

    # ------------------------------------------------------------------------------------------ called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio asks so; it has no hint to give
        return self._read

    def buffer_updated(self, nbytes: int) -> None:
        if self._parser is None:
            self._break("the server spoke without being asked")
            return
        try:
            self._parser.feed_data(self._read[:nbytes])
        except httptools.HttpParserError as error:
            self._break(f"not HTTP: {error}")

    def eof_received(self) -> None:
        self._break("the server closed the connection")

    def connection_lost(self, exc: Exception | None) -> None:
        self._break(f"connection lost: {exc}" if exc else "connection lost")
        # Both refer to this connection: with the buffers of TLS it would be 0.3 MB that wait for a full collection,
        # which is hours away in a process that makes little garbage.
        self._transport = self._parser = None

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
