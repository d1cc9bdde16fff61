"""A thin HTTP client: a bounded number of kept-alive connections, deadlines, and retries.

The one rule: a request that the server may have carried out is sent again only if the caller declares it `repeatable`.
A pause that the server requests (429, Retry-After) delays only the refused request.

`wire` implements HTTP because aiohttp takes twice the CPU time: 0.80 ms per bind and 78 binds per second with aiohttp
3.14, 0.40 ms and 94 with `wire` (medians of five alternating rounds of 1,000 binds on one cluster, 64 in flight, two
busy cores). Against a server that only answers, a bind takes 0.45 and 0.18 ms.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable

from .backoff import Backoff
from .config import Connection
from .errors import ApiError, LeadershipLost, ServerError, TooManyRequests, Unauthorized, Unreachable, error_of
from .wire import Answer, Wire, WireBroken, connected_socket

CONNECT_SECONDS = 5.0
IDLE_SECONDS = 30.0
"""Seconds after which an idle connection is closed. A burst of writes opens up to `limit` connections, which take 0.1
to 0.6 MB each with their buffers.
"""
_KEPT = 4
"""Idle connections that stay open, so that a pod on an idle cluster does not wait for a handshake."""
_TOKEN_SECONDS = 10.0


class Http:
    """Requests to one API server.

    Args:
        limit: Maximum number of requests in flight; streams do not count.
        agent: The User-Agent.
        may_write: Checked right before each request except for GETs.
        idle_seconds: A connection is closed after this time without a request, while more than four are idle.
    """

    def __init__(
        self,
        connection: Connection,
        limit: int = 80,
        agent: str = "schedspec",
        may_write: Callable[[], bool] = lambda: True,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._connection = connection
        self._may_write = may_write
        self._idle_seconds = idle_seconds
        self._idle: deque[tuple[float, Wire]] = deque()
        """Idle connections, each with the loop time at which it became idle; the one used last is at the end."""
        self._closing: asyncio.TimerHandle | None = None
        self._open: set[Wire] = set()
        self._slots = asyncio.Semaphore(limit)
        self._fixed_headers = f"Host: {connection.netloc}\r\nUser-Agent: {agent}\r\nAccept: application/json\r\n"
        self._token: str | None = None
        self._token_until = -1.0
        self._refused_token: str | None = None
        self.throttled = 0
        """Number of answers with status 429."""
        self.writes_answered = 0
        """Number of writes that were answered, with any status."""

    # ------------------------------------------------------------------------------------------------------- requests

    async def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        content_type: str = "application/json",
        *,
        deadline: float = 30.0,
        repeatable: bool = False,
        once: bool = False,
        attempt_seconds: float = 10.0,
    ) -> Answer:
        """Send a request and return an answer with a status below 400.

        `deadline` limits the whole call in seconds, retries included. GETs and `repeatable` requests are sent again if
        no answer arrives. With `once`, no request is sent again, because the caller has its own queue. An attempt of a
        `repeatable` or `once` request ends after `attempt_seconds` without an answer.

        Raises:
            ApiError: The answer has another status.
            Unreachable: There was no answer.
        """
        what = f"{method} {path}"
        may_repeat = (repeatable or method == "GET") and not once
        loop = asyncio.get_running_loop()
        until = loop.time() + deadline
        backoff = Backoff(first=0.05, most=2.0)
        while True:
            try:
                attempt_until = min(until, loop.time() + attempt_seconds) if repeatable or once else until
                answer = await self._exchange(method, path, body, content_type, attempt_until)
            except Unreachable as error:
                wait = backoff.next()
                if once or (error.sent and not may_repeat) or loop.time() + wait >= until:
                    raise
                await asyncio.sleep(wait)
                continue
            if answer.status < 400:
                return answer
            refusal = error_of(what, answer.status, answer.body, answer.headers.get("retry-after"))
            pause = self._pause_after(refusal, backoff, may_repeat=may_repeat, once=once)
            if pause is None or loop.time() + pause >= until:
                try:
                    raise refusal
                finally:
                    del refusal  # otherwise its traceback keeps it and the answer until a full garbage collection
            await asyncio.sleep(pause)

    @contextlib.asynccontextmanager
    async def stream(self, path: str, *, deadline: float = 30.0) -> AsyncIterator[AsyncIterator[bytes]]:
        """Request a body of unknown length by GET, on a connection of its own.

        `deadline` limits the seconds until the head has arrived. The caller limits the time of the body.

        Raises:
            ApiError: The status is not 200.
            Unreachable: There was no answer.
        """
        what = f"GET {path}"
        await self._refresh_token()
        wire = await self._connect(what)
        try:
            try:
                async with asyncio.timeout(deadline):
                    answer = await wire.open_stream(self._message("GET", path, b"", ""))
                    if answer.status != 200:
                        body = b"".join([piece async for piece in wire.pieces()])
                        raise error_of(what, answer.status, body, answer.headers.get("retry-after"))
            except (TimeoutError, WireBroken) as error:
                raise Unreachable(what, str(error) or f"no answer within {deadline:g} s", sent=True) from error
            yield wire.pieces()
        finally:
            self._drop(wire)

    async def close(self) -> None:
        """Close all connections. Requests in flight fail."""
        if self._closing is not None:
            self._closing.cancel()
        for wire in list(self._open):
            wire.close()
        self._open.clear()
        self._idle.clear()
        await asyncio.sleep(0)  # the transports close in the next turn of the event loop

    # ----------------------------------------------------------------------------------------------------- one exchange

    async def _exchange(self, method: str, path: str, body: bytes, content_type: str, until: float) -> Answer:
        what = f"{method} {path}"
        await self._refresh_token()
        wire: Wire | None = None
        try:
            async with asyncio.timeout_at(until), self._slots:
                try:
                    wire = self._take_idle() or await self._connect(what)
                    if method != "GET" and not self._may_write():
                        raise LeadershipLost(what, "not sent: this replica does not lead")
                    answer = await wire.exchange(self._message(method, path, body, content_type))
                    self.writes_answered += method != "GET"
                    return answer
                finally:
                    if wire is not None:
                        self._release(wire)
        except TimeoutError as error:
            raise Unreachable(what, "no answer in time", sent=wire is not None) from error
        except WireBroken as error:
            raise Unreachable(what, str(error), sent=error.sent) from error

    def _message(self, method: str, path: str, body: bytes, content_type: str) -> bytes:
        head = f"{method} {self._connection.base}{path} HTTP/1.1\r\n{self._fixed_headers}"
        if self._token is not None:
            head += f"Authorization: {self._token}\r\n"
        if body or method not in ("GET", "DELETE"):
            head += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        return f"{head}\r\n".encode("latin-1") + body

    # ------------------------------------------------------------------------------------------------------ connections

    def _take_idle(self) -> Wire | None:
        while self._idle:
            _, wire = self._idle.pop()
            if wire.reusable:
                return wire
            self._open.discard(wire)
        return None

    def _release(self, wire: Wire) -> None:
        if not wire.reusable:
            self._drop(wire)
            return
        self._idle.append((asyncio.get_running_loop().time(), wire))
        if self._closing is None:
            self._close_idle()

    def _close_idle(self) -> None:
        """Close the connections that have been idle for long, except for a few, and schedule the next check."""
        loop, self._closing = asyncio.get_running_loop(), None
        while len(self._idle) > _KEPT:
            closes_at = self._idle[0][0] + self._idle_seconds
            if closes_at > loop.time():
                self._closing = loop.call_at(closes_at, self._close_idle)
                return
            self._drop(self._idle.popleft()[1])

    def _drop(self, wire: Wire) -> None:
        self._open.discard(wire)
        wire.close()

    async def _connect(self, what: str) -> Wire:
        loop = asyncio.get_running_loop()
        at, wire = self._connection, Wire()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                raw = await connected_socket(at.host, at.port)
                name = (at.server_name or at.host) if at.tls else None
                await loop.create_connection(lambda: wire, sock=raw, ssl=at.tls, server_hostname=name)
            self._open.add(wire)
            return wire
        except TimeoutError as error:
            message = f"{at.netloc} does not accept a connection within {CONNECT_SECONDS:g} s"
            raise Unreachable(what, message, sent=False) from error
        except OSError as error:  # ssl.SSLError is one
            raise Unreachable(what, f"cannot connect to {at.netloc}: {error}", sent=False) from error
        finally:
            if wire not in self._open:  # asyncio would wait 30 s for the peer's close if cancelled after the handshake
                wire.close()

    # ----------------------------------------------------------------------------------------------------------- token

    async def _refresh_token(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() < self._token_until:
            return
        self._token = await loop.run_in_executor(None, self._connection.authorization)
        # a client without a token at the start (client certificates) never needs one
        self._token_until = loop.time() + _TOKEN_SECONDS if self._token is not None else float("inf")

    def _pause_after(self, error: ApiError, backoff: Backoff, *, may_repeat: bool, once: bool) -> float | None:
        """Return the seconds until the request may be sent again; None if it may not."""
        if isinstance(error, Unauthorized) and self._token is not None and self._token != self._refused_token:
            # the token may have been rotated: read it again, once
            self._refused_token, self._token_until = self._token, -1.0
            return 0.0
        if isinstance(error, TooManyRequests):
            self.throttled += 1
            if not once:
                return error.retry_after if error.retry_after is not None else backoff.next()
        return backoff.next() if isinstance(error, ServerError) and may_repeat else None
