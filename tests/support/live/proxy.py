"""A proxy between the scheduler and the API server that sees every request and injects faults.

Traffic without a fault is relayed byte by byte, watches included.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from schedspec.scheduler.kube import Connection, connect


@dataclass
class Call:
    """One request of the scheduler."""

    number: int
    """Counts all requests from 1."""
    method: str
    path: str
    """Without the query."""
    query: str
    body: bytes

    @property
    def is_watch(self) -> bool:
        return "watch=true" in self.query

    @property
    def is_bind(self) -> bool:
        return self.method == "POST" and self.path.endswith("/binding")

    @property
    def is_write(self) -> bool:
        return self.method != "GET"


@dataclass
class Answer:
    """Answer the call without relaying it to the API server."""

    status: int
    reason: str
    message: str = "injected by a test"
    headers: str = ""


@dataclass
class Body:
    """Answer the call with status 200 and these bytes."""

    data: bytes


class Lose:
    """Relay the call, and lose its answer together with the connection."""


class Ignore:
    """Neither relay nor answer."""


Handling = Answer | Body | Lose | Ignore | None
"""None: relay the call."""
Judge = Callable[[Call], Handling | Awaitable[Handling]]


class Proxy:
    """The proxy. `judge` decides how each call is handled; `calls` holds all calls so far."""

    def __init__(self, upstream: Connection) -> None:
        self.judge: Judge = lambda call: None
        self.calls: list[Call] = []
        self._upstream = upstream
        self._watches: set[asyncio.StreamWriter] = set()
        self._muted: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 24)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def cut_watches(self) -> int:
        """Cut every open watch; return their number."""
        watches = list(self._watches)
        for writer in watches:
            writer.transport.abort()
        return len(watches)

    def mute_watches(self) -> None:
        """Stop relaying the watches that are open now, and keep their connections open."""
        self._muted |= self._watches

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        back: asyncio.Task[None] | None = None
        up: asyncio.StreamWriter | None = None
        try:
            at = self._upstream
            upstream, up = await asyncio.open_connection(
                at.host, at.port, ssl=at.tls, server_hostname=at.host if at.tls else None, limit=1 << 24
            )
            lose = asyncio.Event()
            back = asyncio.create_task(self._back(upstream, writer, lose))
            while await self._one(reader, writer, up, lose):
                pass
        except (asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
            pass  # the connection has ended, or is cancelled
        finally:
            self._watches.discard(writer)
            self._muted.discard(writer)
            for each in (writer, up):
                if each is not None:
                    each.transport.abort()  # first, because a second cancellation may end any `await` below
            if back is not None:
                back.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.gather(back, return_exceptions=True)
            self._serving.discard(task)

    async def _back(self, upstream: asyncio.StreamReader, writer: asyncio.StreamWriter, lose: asyncio.Event) -> None:
        while piece := await upstream.read(1 << 18):
            if lose.is_set():
                break
            if writer in self._muted:
                continue
            writer.write(piece)
            await writer.drain()
        writer.transport.abort()

    async def _one(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        up: asyncio.StreamWriter,
        lose: asyncio.Event,
    ) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").strip().split("\r\n")
        length = next((int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length")), 0)
        body = await reader.readexactly(length)
        method, target, _ = first.split(" ")
        path, _, query = target.partition("?")
        call = Call(len(self.calls) + 1, method, path, query, body)
        self.calls.append(call)
        verdict = self.judge(call)
        if isinstance(verdict, Awaitable):
            verdict = await verdict
        if isinstance(verdict, Answer):
            content = {"kind": "Status", "code": verdict.status, "reason": verdict.reason, "message": verdict.message}
            data = json.dumps(content).encode()
            more = f"Content-Length: {len(data)}\r\n{verdict.headers}\r\n"
            writer.write(f"HTTP/1.1 {verdict.status} x\r\n{more}".encode("latin-1") + data)
            await writer.drain()
            return True
        if isinstance(verdict, Body):
            writer.write(b"HTTP/1.1 200 x\r\nContent-Length: %d\r\n\r\n" % len(verdict.data) + verdict.data)
            await writer.drain()
            return True
        if isinstance(verdict, Ignore):
            await reader.read()
            return False
        if isinstance(verdict, Lose):
            lose.set()
        if call.is_watch:
            self._watches.add(writer)
        up.write(head + body)
        await up.drain()
        return True


@asynccontextmanager
async def between(kubeconfig: Path, folder: Path) -> AsyncIterator[tuple[Proxy, Path]]:
    """Start a proxy in front of a cluster; yield the proxy, and a kubeconfig that connects through it."""
    proxy = Proxy(connect(kubeconfig))
    port = await proxy.start()
    through = folder / f"through-{port}"
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    through.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [cluster],
                "users": [{"name": "u", "user": {}}],
                "contexts": [context],
                "current-context": "x",
            }
        )
    )
    try:
        yield proxy, through
    finally:
        await proxy.stop()
