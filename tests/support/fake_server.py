"""An HTTP server with scripted answers, for faults that a real API server does not produce on demand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from schedspec.scheduler.kube import Client, Connection, Http

R = TypeVar("R")


@dataclass
class Request:
    """A request that the server received."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Reply:
    """One answer. `chunks` is a streamed body, sent one chunk after the other; `then` follows the last chunk."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    chunks: list[bytes] | None = None
    then: str = ""
    """After the chunks: "" ends the body, `cut` closes the connection, `hang` sends nothing more."""
    pause: float = 0.0
    """Seconds after each chunk."""


class Cut:
    """Close the connection instead of answering."""


class Hang:
    """Never answer."""


class Garbage:
    """Answer with something that is not HTTP."""


Answer = Reply | Cut | Hang | Garbage
Handler = Callable[[Request], Answer]


class FakeServer:
    """The server. `requests` holds every request so far."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.requests: list[Request] = []
        self.connections = 0
        self.together = 0
        self.most_together = 0
        self.pause = 0.0
        """Seconds until the answer."""
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def still_open(self) -> int:
        """Return the number of connections that are open now; `connections` counts all so far."""
        return len(self._writers)

    async def start(self) -> Connection:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        return Connection("127.0.0.1", port)

    async def stop(self) -> None:
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.sleep(0.01)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        method, path, _ = first.split(" ")
        request = Request(method, path, headers, body)
        self.requests.append(request)
        self.together += 1
        self.most_together = max(self.most_together, self.together)
        try:
            await asyncio.sleep(self.pause)
            return await self._answer(self.handler(request), reader, writer)
        finally:
            self.together -= 1

    async def _answer(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if isinstance(answer, Cut):
            return False
        if isinstance(answer, Hang):
            await reader.read()
            return False
        if isinstance(answer, Garbage):
            writer.write(b"\x00\x01 this is not the web\r\n\r\n")
            await writer.drain()
            return False
        head = "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items())
        if answer.chunks is None:
            data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body or {}).encode()
            writer.write(f"HTTP/1.1 {answer.status} x\r\n{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
            await writer.drain()
            return True
        writer.write(f"HTTP/1.1 {answer.status} x\r\n{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        for chunk in answer.chunks:
            writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            await writer.drain()
            await asyncio.sleep(answer.pause)
        if answer.then == "hang":
            await reader.read()
        if not answer.then:
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        return not answer.then


@asynccontextmanager
async def serving(handler: Handler, *, once: bool = False, **options: Any) -> AsyncIterator[tuple[FakeServer, Client]]:
    """Yield a server and a client of it."""
    server = FakeServer(handler)
    http = Http(await server.start(), **options)
    try:
        yield server, Client(http, once=once)
    finally:
        await http.close()
        await server.stop()


LOADED = 10
"""Factor by which a test may exceed its deadline, because deadlines are for an idle machine."""


def run_until_complete(test: Callable[[], Coroutine[Any, Any, R]], seconds: float = 20.0) -> R:
    """Run a coroutine in an event loop of its own and cancel it after `LOADED` times `seconds`."""

    async def bounded() -> R:
        async with asyncio.timeout(LOADED * seconds):
            return await test()

    return asyncio.run(bounded())


SAFETY_NET = 120.0
"""Seconds after which a wait fails. No test judges promptness by it: a loaded machine must not make a test fail."""
PROMPT = 25.0
"""Seconds; less than the 30 s after which the client gives up a request without an answer. Work that waits behind such
requests takes longer.
"""


async def until(condition: Callable[[], bool], seconds: float = SAFETY_NET) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.002)


async def cancelled(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait for its end."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def status(code: int, reason: str, message: str = "no") -> Reply:
    """Return a Status object of Kubernetes as an answer."""
    return Reply(code, {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message})


def scripted(*answers: Answer | Callable[[Request], Answer]) -> Handler:
    """Return a handler that gives these answers in order, and the last one for ever."""
    left = list(answers)

    def handle(request: Request) -> Answer:
        answer = left.pop(0) if len(left) > 1 else left[0]
        return answer(request) if callable(answer) else answer

    return handle


Work = Callable[[], Awaitable[None]]
