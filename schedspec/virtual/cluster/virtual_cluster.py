"""The interface of a virtual cluster: requests, a watch, a policy, and a clock to advance.

Between two calls of `advance`, only requests change the cluster. No clock of the machine influences it: a step of the
core has a fixed duration, and each wait is in virtual time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import selectors
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from ...scheduler.controllers import KNOWN, run_controllers
from ...scheduler.kube import Client, EventRecorder
from ...scheduler.kube.errors import error_of
from ...scheduler.kube.wire import Answer
from ...scheduler.live.loop import CycleLoop
from ...scheduler.live.metrics import Metrics
from ...scheduler.live.pace import FixedPace
from ...scheduler.live.policy_file import InForce
from ...scheduler.live.record import RunningRecord
from ...scheduler.live.state_feed import StateFeed
from ...scheduler.live.status_builder import StatusBuilder
from ...scheduler.live.status_writer import StatusWriter
from ...scheduler.live.writer import Writer
from ...scheduler.model.cluster import Cluster
from ...scheduler.policy.loader import DEFAULT_TEXT, load_policy
from . import store
from .kubelets import Kubelets
from .owners import Owners
from .server import ApiServer, ResourcePath, selector
from .store import Kind, Object, RefusedError, Store

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


class _NeverWaits(selectors.SelectSelector):
    """A selector that records the requested timeout and returns at once."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("a task waits for ever: no timer and no callback is left in the virtual loop")
        self.passed += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time: waiting costs nothing, and everything happens in one thread.

    `time()` is virtual and begins at 0; `wall()` is the virtual time in seconds since the epoch. Where a real loop
    would sleep until its next timer, this loop sets its clock to that timer. It runs the work of executors at once.
    Coroutines of the live scheduler run unchanged, and equal calls cause equal orders of events.

    `random` draws the delays of retries (`scheduler.kube.backoff`); its seed is fixed.
    """

    def __init__(self, start: float) -> None:
        self._clock = _NeverWaits()
        super().__init__(self._clock)
        self._start = start
        self.random = random.Random(0)

    def time(self) -> float:
        return self._clock.passed

    def wall(self) -> float:
        """Return the virtual time, in seconds since the epoch."""
        return self._start + self._clock.passed

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Run `func` now, whatever the executor."""
        del executor
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - raised where the future is awaited
            future.set_exception(error)
        return future


log = logging.getLogger(__name__)

_BATCH = 0.02
"""Seconds for which changes are collected before waiting callers are woken."""
_SEGMENT_BYTES = 1 << 20
"""Maximum size of a file of the recording: a scenario's part is cut from the last files."""
START = 1_790_000_000.0
Watcher = Callable[[str, str, Object], None]
"""Receives the kind as `v1/pods`, the change (ADDED, MODIFIED, DELETED) and the object."""


class VirtualCluster:
    """The cluster and our scheduler on it; `close` stops both."""

    def __init__(
        self,
        scheduler_names: Sequence[str] = ("schedspec",),
        *,
        node_selector: dict[str, str] | None = None,
        record: Path | None = None,
    ) -> None:
        """Start the cluster; with `record`, the scheduler records its cycles in this folder, for explain and replay."""
        self._loop = VirtualLoop(START)
        self._store = Store(self._loop.wall)
        self._server = ApiServer(self._store, self._later)
        self._kubelets = Kubelets(self._store, self._later)
        self._owners = Owners(self._server, self._later)
        self._names, self._selector = tuple(scheduler_names), dict(node_selector or {})
        self._policy = InForce(load_policy(DEFAULT_TEXT, "default"), "", DEFAULT_TEXT)
        self._pause: asyncio.Future[None] = self._loop.create_future()
        self._until_change = False
        self._record = RunningRecord(record, _SEGMENT_BYTES) if record is not None else None
        self._cycles: CycleLoop | None = None
        self._work: asyncio.Task[None] | None = None
        self._store.add_listener(self._on_change)
        for name in ("default", "kube-system"):
            self._server.create(store.NAMESPACES, "", {"metadata": {"name": name}})
        self._work = self._loop.create_task(self._run())

    # --------------------------------------------------------------------------------------------------------- time

    def now(self) -> float:
        """Return the virtual seconds since the cluster was made."""
        return self._loop.time()

    def wall(self) -> float:
        """Return the virtual time, in seconds since the epoch."""
        return self._loop.wall()

    def advance(self, seconds: float, *, until_change: bool = False) -> None:
        """Let virtual time pass; with `until_change`, at most until the next change of any object.

        Raises the error that ended the scheduler.
        """
        self._pause = pause = self._loop.create_future()
        self._until_change = until_change
        timer = self._loop.call_later(max(seconds, 0.0), self._end_pause)
        try:
            self._loop.run_until_complete(pause)
        finally:
            timer.cancel()
        self._check()

    def _end_pause(self) -> None:
        if not self._pause.done():
            self._pause.set_result(None)

    def _check(self) -> None:
        if self._work is not None and self._work.done():
            self._work.result()
            raise RuntimeError("the scheduler of the virtual cluster has ended")

    def _later(self, seconds: float, action: Callable[[], None]) -> object:
        return self._loop.call_later(max(seconds, 0.0), action)

    def _on_change(self, kind: Kind, change: str, item: Object) -> None:
        del kind, change, item
        if self._until_change and not self._pause.done():
            self._until_change = False
            self._loop.call_later(_BATCH, self._end_pause)

    # ------------------------------------------------------------------------------------------------------ the API

    def request(self, method: str, target: str, body: bytes = b"", content_type: str = "") -> tuple[int, bytes]:
        """Send a request to the API server; return status and body of its answer."""
        return self._server.request(method, target, body, content_type)

    def watch(self, watcher: Watcher) -> None:
        """Notify `watcher` of every existing object, and of each later change."""
        for kind in store.SERVED:
            for item in self._store.all(kind):
                watcher(f"{kind.api_version}/{kind.plural}", "ADDED", item)
        self._store.add_listener(lambda kind, change, item: watcher(f"{kind.api_version}/{kind.plural}", change, item))

    # ---------------------------------------------------------------------------------------------------- scheduler

    def use_policy(self, text: str) -> str:
        """Put a policy into force and return its sha256. Raises ValueError (a PolicyError) if it is refused."""
        self._policy = InForce(load_policy(text, "policy"), "policy", text)
        if self._cycles is not None:
            self._loop.call_soon(self._cycles.request_cycle)
        return self._policy.sha256

    async def _run(self) -> None:
        """Run the scheduler and its controllers, assembled as in `scheduler.live.app`."""
        client = Client(VirtualHttp(self._server), once=True)  # type: ignore[arg-type]
        on_input = self._record.add if self._record is not None else None
        feed = StateFeed(Cluster(self._names, self._selector), client, on_input=on_input)
        metrics = Metrics()
        writer = Writer(client, feed.inbox, metrics)
        events = EventRecorder(client, self._names[0], urgent=writer.urgent)
        statuses = StatusWriter(client, writer.urgent)
        builder = StatusBuilder(feed, statuses, events, metrics)
        self._cycles = CycleLoop(
            feed,
            writer,
            builder,
            policy=lambda: self._policy,
            metrics=metrics,
            record=self._record,
            pace=FixedPace(),
        )
        parts: list[Coroutine[Any, Any, Any]] = [feed.run(), writer.run(), statuses.run(), events.run()]
        parts.append(self._cycles.run())
        parts.append(
            run_controllers(
                client,
                events,
                list(KNOWN),
                scheduler_names=self._names,
                queue_command_namespace="kube-system",
                node_selector=self._selector,
                reflectors=feed.reflectors,
            )
        )
        async with asyncio.TaskGroup() as group:
            for part in parts:
                group.create_task(part)

    def close(self) -> None:
        """Stop the cluster. A second call does nothing."""
        if self._work is None:
            return
        work, self._work = self._work, None
        work.cancel()
        self._loop.run_until_complete(asyncio.gather(work, return_exceptions=True))
        if self._cycles is not None:
            self._cycles.close()
        if self._record is not None:
            self._record.close()
        self._loop.close()
