"""Report all changes of one kind of objects: list once, then watch.

The one rule: a handler receives all changes without a gap and in order.

1. Watches end regularly; a new watch resumes at the last version of the previous one.
2. If the server no longer has that version, all objects are listed again and the differences are reported.
3. A watch without an event or a bookmark for `SILENCE` seconds is replaced, and its successor may be silent for twice
   that time: a loaded server sends bookmarks late. Only if the successor is silent too, objects may be stale.

A change describes the current state of an object, not an action: a handler may receive it several times.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic

import msgspec

from ..model.objects import ObjectMeta
from .backoff import Backoff, spread
from .client import Client
from .decoding import CHUNK_BYTES, UNREADABLE, Malformed, Stepwise, decode, decode_event, run_now, run_yielding, trimmed
from .errors import ApiError, Forbidden, Gone, NotFound, Unreachable, error_of_status
from .resource import Resource, T


@dataclass(frozen=True, slots=True)
class Present(Generic[T]):
    """The object exists and has this content."""

    object: T


@dataclass(frozen=True, slots=True)
class Absent:
    """The object with this key (`namespace/name`, or the name) and uid no longer exists."""

    key: str
    uid: str
    last: Any = field(default=None, compare=False)
    """The object's last version, if a watch reported the deletion; it is not trimmed."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The object exists and cannot be read. Its previous content no longer holds."""

    key: str
    malformed: Malformed


Change = Present[T] | Absent | Unreadable
Handler = Callable[[Change[T]], None]


log = logging.getLogger(__name__)

_EVENTS_A_TURN = 50
"""Maximum number of events between two turns of other tasks; CHUNK_BYTES limits their bytes as well."""
_SHORT = 1.0
"""A watch that ends within this many seconds without an event is a failure; a pause follows."""
_LATE = 30.0
"""Seconds that a watch may exceed its timeout."""
SILENCE = 90.0
"""Seconds without an event after which a watch is replaced. The API server sends a bookmark each minute, even without
changes. A watch without one is dead, or its state is stale.
"""


class Reflector(Generic[T]):
    """Report one kind of objects to `handler`.

    `synced` is set once the first list is reported. `labels` and `fields` are selectors. An object that stops matching
    is reported as Absent. Objects outside of the client's scope are not reported.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        handler: Handler[T],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        watch_seconds: float = 240.0,
    ) -> None:
        self.resource = resource
        self.synced = asyncio.Event()
        self.lists = 0
        """Number of complete lists. It grows before the differences of a list are reported."""
        self.events = 0
        """Number of complete events and bookmarks of watches."""
        self.is_served = True
        """Whether the API server serves the kind, by its last answer."""
        self.trouble = ""
        """The present problem with listing or watching, for people; empty without one."""
        self._silent = 0
        """Number of watches in a row that were replaced for their silence."""
        self._client = client
        self._handlers = [handler]
        labels = ",".join(filter(None, (labels, client.scope.labels(resource))))
        self._query: dict[str, Any] = {"namespace": namespace, "labels": labels, "fields": fields}
        self._watch_seconds = watch_seconds
        self._known: dict[str, T | Malformed] = {}
        self._version = ""
        self._decoder = msgspec.json.Decoder(_typed(resource))

    @property
    def unready(self) -> str:
        """Return why objects may be missing or stale, for people; empty if they are current."""
        if not self.synced.is_set():
            return self.trouble or f"{self.resource.id} not yet listed"
        if self._silent < 2:
            return ""
        return f"watch of {self.resource.id}: no event and no bookmark from {self._silent} watches in a row"

    @property
    def _patience(self) -> float:
        """Seconds without an event after which the present watch is replaced."""
        return SILENCE * (2 if self._silent else 1)

    async def run(self) -> None:
        """List and watch until cancelled. After a failed request, pause and try again; after `Gone`, list again."""
        backoff, now = Backoff(), asyncio.get_running_loop().time
        while True:
            error: ApiError | Unreachable | None = None
            events_before, watching_since = self.events, float("inf")
            try:
                if not self._version:
                    await self._list()
                watching_since = now()
                await self._watch()
                self.trouble = ""
            except Gone:
                self._version = ""
            except (ApiError, Unreachable) as caught:
                error = caught
            was_good = self.events > events_before or now() - watching_since > _SHORT
            if was_good:
                backoff.reset()
            if error is not None:
                await self._wait_out(error, backoff)
            elif not was_good:
                await asyncio.sleep(backoff.next())

    async def _wait_out(self, error: ApiError | Unreachable, backoff: Backoff) -> None:
        if isinstance(error, NotFound):
            self.trouble = f"{self.resource.id} is not served (is its CRD applied?)"
            self.is_served = False
            self._version = ""
            if self.resource.optional:
                self._not_served()
        elif isinstance(error, Forbidden):
            self.trouble = f"not permitted: {error}"
        else:
            self.trouble = str(error)
        pause = backoff.next()
        log.debug("waiting %.2f s: %s", pause, self.trouble)
        if isinstance(error, ApiError) and error.retry_after:
            pause = max(pause, error.retry_after)
        is_expected = isinstance(error, NotFound) and not self.resource.optional
        await asyncio.sleep(min(pause, 1.0) if is_expected else pause)

    def _not_served(self) -> None:
        """Treat a kind that is not served as one without objects."""
        for key, gone in list(self._known.items()):
            self._absent(key, _version_of(gone)[0])
        self.synced.set()

    # ------------------------------------------------------------------------------------------------------------- list

    async def _list(self) -> None:
        listing = await self._client.list(self.resource, **self._query)
        self.lists += 1
        self.is_served = True
        missing = dict(self._known)
        reported = 0
        for item in (*self._client.scope.presumed(self.resource), *listing.items):
            meta = item.metadata  # type: ignore[attr-defined]
            missing.pop(meta.key, None)
            if not self._is_known(meta):
                self._present(item)
                reported += 1
                if reported % _EVENTS_A_TURN == 0:
                    await asyncio.sleep(0)
        for malformed in listing.malformed:
            missing.pop(malformed.metadata.key, None)
            self._unreadable(malformed)
        for key, gone in missing.items():
            self._absent(key, _version_of(gone)[0])
        self._version = listing.resource_version
        self.trouble = ""
        self.synced.set()

    # ------------------------------------------------------------------------------------------------------------ watch

    async def _watch(self) -> None:
        now = asyncio.get_running_loop().time
        seconds = spread(self._watch_seconds, self._watch_seconds * 1.25)
        # the server ends the watch after `seconds`; a connection that still exists `_LATE` seconds later is dead
        ends = now() + seconds + _LATE
        try:
            async with asyncio.timeout_at(min(ends, now() + self._patience)) as limit:
                await self._read(max(1, int(seconds)), lambda: limit.reschedule(min(ends, now() + self._patience)))
        except TimeoutError as error:
            what = f"watch of {self.resource.id}"
            if now() >= ends:
                raise Unreachable(what, f"not ended by the server {_LATE:g} s after its timeout", sent=True) from error
            silence = f"no event and no bookmark for {self._patience:g} s"
            self._silent += 1
            log.warning("%s: %s; replaced by a new watch", what, silence)
            raise Unreachable(what, silence, sent=True) from error

    async def _read(self, seconds: int, on_events: Callable[[], None]) -> None:
        """Read a watch to its end. `on_events` is called for each batch of complete events."""
        parts: list[bytes] = []
        reported = size = 0
        stream = self._client.watch(self.resource, self._version, **self._query, seconds=seconds)
        async with stream as pieces:
            self.trouble = ""
            async for piece in pieces:
                parts.append(piece)
                if b"\n" not in piece:
                    continue
                self._silent = 0
                on_events()
                *lines, tail = b"".join(parts).split(b"\n")
                parts = [tail]
                for line in lines:
                    if len(line) > CHUNK_BYTES:
                        await run_yielding(self._on_line_in_chunks(line))
                    elif line:
                        self._on_line(line)
                    reported, size = reported + 1, size + len(line)
                    if reported >= _EVENTS_A_TURN or size > CHUNK_BYTES:
                        reported = size = 0
                        await asyncio.sleep(0)

    def _on_line(self, line: bytes) -> None:
        try:
            event = self._decoder.decode(line)
        except UNREADABLE:
            event = None
        if event is None or event.type == "ERROR":
            run_now(self._on_line_in_chunks(line))
            return
        if event.type == "BOOKMARK":
            self._version = event.object.metadata.resource_version
        elif event.type == "DELETED":
            meta = event.object.metadata
            self._absent(meta.key, meta.uid, event.object)
            self._version = meta.resource_version
        else:
            version = event.object.metadata.resource_version
            found = trimmed(self.resource, event.object, len(line))
            if isinstance(found, Malformed):
                self._unreadable(found)
            else:
                self._present(found)
            self._version = version
        self.events += 1

    def _on_line_in_chunks(self, line: bytes) -> Stepwise[None]:
        """Decode and report any event: an error, a bookmark, a malformed object, a large object."""
        what = f"watch of {self.resource.id}"
        try:
            line.decode()  # reject bytes that are not UTF-8, even where JSON can be decoded from them
            event = yield from decode_event(line)
            error = error_of_status(what, bytes(event.object)) if event.type == "ERROR" else None
        except UNREADABLE as unreadable:
            self._version = ""
            raise Unreachable(what, f"not a watch event: {unreadable}", sent=True) from unreadable
        if error is not None:
            raise error
        found = yield from decode(self.resource, event.object)
        metadata = found.metadata  # type: ignore[union-attr]
        if event.type == "DELETED":
            self._absent(metadata.key, metadata.uid)
        elif event.type == "BOOKMARK":
            pass
        elif isinstance(found, Malformed):
            self._unreadable(found)
        else:
            self._present(found)
        if metadata.resource_version:
            self._version = metadata.resource_version
        self.events += 1

    # -------------------------------------------------------------------------------------------------------- reporting

    def add_handler(self, handler: Handler[T]) -> None:
        """Add a handler. It receives all existing objects at once, then all changes."""
        for key, item in self._known.items():
            handler(Unreadable(key, item) if isinstance(item, Malformed) else Present(item))
        self._handlers.append(handler)

    def _notify(self, change: Change[T]) -> None:
        for handler in self._handlers:
            try:
                handler(change)
            except Exception:  # a defect that one object triggers must not stop the others
                log.exception("handler failed for a change of %s", self.resource.id)

    def _is_known(self, meta: ObjectMeta) -> bool:
        """Return True if this version of the object has been reported."""
        known = self._known.get(meta.key)
        return known is not None and _version_of(known) == (meta.uid, meta.resource_version)

    def _present(self, item: T) -> None:
        meta = item.metadata  # type: ignore[attr-defined]
        if not self._client.scope.covers(self.resource, item):
            self._absent(meta.key, meta.uid)
            return
        before = self._known.get(meta.key)
        if before is not None and (uid := _version_of(before)[0]) != meta.uid:
            self._notify(Absent(meta.key, uid))
        self._known[meta.key] = item
        self._notify(Present(item))

    def _absent(self, key: str, uid: str, last: T | None = None) -> None:
        if self._known.pop(key, None) is not None:
            self._notify(Absent(key, uid, last))

    def _unreadable(self, malformed: Malformed) -> None:
        meta = malformed.metadata
        if not self._client.scope.covers(self.resource, malformed):
            self._absent(meta.key, meta.uid)
        elif not self._is_known(meta) or not meta.key:
            self._known[meta.key] = malformed
            self._notify(Unreadable(meta.key, malformed))


def _version_of(item: Any) -> tuple[str, str]:
    return item.metadata.uid, item.metadata.resource_version


def _typed(resource: Resource[Any]) -> Any:
    return msgspec.defstruct(f"{resource.kind}Event", [("type", str), ("object", resource.struct)])
