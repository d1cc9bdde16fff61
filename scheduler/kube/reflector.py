"""Keep telling what is in the cluster: list once, watch from there, for ever.

The one rule: what the handler hears is gapless and in order. A watch is resumed where the last one ended (an end is
normal), and only where the server no longer knows that version is everything listed again, and the difference told.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Generic

import msgspec

from ..model.objects import ObjectMeta
from .backoff import Backoff, spread
from .changes import Absent, Change, Handler, Present, Unreadable
from .client import Client
from .decoding import UNREADABLE, Malformed, decode, decode_event
from .errors import ApiError, Forbidden, Gone, NotFound, Unreachable, error_of_status
from .resource import Resource, T
from .slices import SLICE, Turns, at_once, in_turns

log = logging.getLogger(__name__)

_EVENTS_A_TURN = 50
"""After so many events, or so many as are SLICE bytes together, the reader lets others run."""
_SHORT = 1.0
"""A watch that ends within this many seconds without an event is a sign of trouble: wait before the next."""
_LATE = 30.0
"""Seconds that a watch may outlive its time."""


class Reflector(Generic[T]):
    """One kind of objects, told to ``handler`` as it changes. ``synced`` is set once the first list was told.

    ``labels`` and ``fields`` are selectors; an object that stops matching is told as Absent. What the client's scope
    does not cover is not told at all.
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
        """How often everything was listed."""
        self.trouble = ""
        """What keeps it from listing or watching right now, for people; empty if nothing does."""
        self._client = client
        self._handlers = [handler]
        labels = ",".join(filter(None, (labels, client.scope.labels(resource))))
        self._query: dict[str, Any] = {"namespace": namespace, "labels": labels, "fields": fields}
        self._watch_seconds = watch_seconds
        self._known: dict[str, T | Malformed] = {}
        self._version = ""
        self._decoder = msgspec.json.Decoder(_typed(resource))
        self._heard = 0

    async def run(self) -> None:
        """List and watch until cancelled. Errors of the API server are waited out, whatever they are."""
        backoff, now = Backoff(), asyncio.get_running_loop().time
        while True:
            error: ApiError | Unreachable | None = None
            heard, watching_since = self._heard, float("inf")
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
            was_good = self._heard > heard or now() - watching_since > _SHORT
            if was_good:
                backoff.reset()
            if error is not None:
                await self._wait_out(error, backoff)
            elif not was_good:
                await asyncio.sleep(backoff.next())

    async def _wait_out(self, error: ApiError | Unreachable, backoff: Backoff) -> None:
        if isinstance(error, NotFound):
            self.trouble = f"{self.resource.id} is not served (is its CRD applied?)"
            self._version = ""
        elif isinstance(error, Forbidden):
            self.trouble = f"not permitted: {error}"
        else:
            self.trouble = str(error)
        pause = backoff.next()
        log.debug("waiting %.2f s: %s", pause, self.trouble)
        if isinstance(error, ApiError) and error.retry_after:
            pause = max(pause, error.retry_after)
        await asyncio.sleep(min(pause, 1.0) if isinstance(error, NotFound) else pause)

    # ------------------------------------------------------------------------------------------------------------- list

    async def _list(self) -> None:
        listing = await self._client.list(self.resource, **self._query)
        self.lists += 1
        missing = dict(self._known)
        told = 0
        for item in (*self._client.scope.presumed(self.resource), *listing.items):
            meta = item.metadata  # type: ignore[attr-defined]
            missing.pop(meta.key, None)
            if not self._is_known(meta):
                self._present(item)
                told += 1
                if told % _EVENTS_A_TURN == 0:
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
        seconds = spread(self._watch_seconds, self._watch_seconds * 1.25)
        try:
            # the server ends it after `seconds`; a connection that is still there a while later is dead
            async with asyncio.timeout(seconds + _LATE):
                await self._read(max(1, int(seconds)))
        except TimeoutError as error:
            what = f"watch of {self.resource.id}"
            raise Unreachable(what, f"the server did not end it {_LATE:g} s after its time", sent=True) from error

    async def _read(self, seconds: int) -> None:
        parts: list[bytes] = []
        told = size = 0
        asked = self._client.watch(self.resource, self._version, **self._query, seconds=seconds)
        async with asked as pieces:
            self.trouble = ""
            async for piece in pieces:
                parts.append(piece)
                if b"\n" not in piece:
                    continue
                *lines, tail = b"".join(parts).split(b"\n")
                parts = [tail]
                for line in lines:
                    if len(line) > SLICE:
                        await in_turns(self._hear_slowly(line))
                    elif line:
                        self._hear(line)
                    told, size = told + 1, size + len(line)
                    if told >= _EVENTS_A_TURN or size > SLICE:
                        told = size = 0
                        await asyncio.sleep(0)

    def _hear(self, line: bytes) -> None:
        try:
            event = self._decoder.decode(line)
        except UNREADABLE:
            event = None
        if event is None or event.type == "ERROR":
            at_once(self._hear_slowly(line))
            return
        if event.type == "BOOKMARK":
            self._version = event.object.metadata.resource_version
        elif event.type == "DELETED":
            meta = event.object.metadata
            self._absent(meta.key, meta.uid)
            self._version = meta.resource_version
        else:
            self._present(event.object)
            self._version = event.object.metadata.resource_version
        self._heard += 1

    def _hear_slowly(self, line: bytes) -> Turns[None]:
        """Any event: an error, a bookmark, a malformed object, a large one."""
        what = f"watch of {self.resource.id}"
        try:
            line.decode()  # what is no text is no answer of the API, whatever can be read of it
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
        self._heard += 1

    # ---------------------------------------------------------------------------------------------------------- telling

    def also(self, handler: Handler[T]) -> None:
        """Tell another handler, too: at once of all that is there, then as it changes."""
        for key, item in self._known.items():
            handler(Unreadable(key, item) if isinstance(item, Malformed) else Present(item))
        self._handlers.append(handler)

    def _tell(self, change: Change[T]) -> None:
        for handler in self._handlers:
            try:
                handler(change)
            except Exception:  # a bug met on one object must not stop the others
                log.exception("a change of %s was not handled", self.resource.id)

    def _is_known(self, meta: ObjectMeta) -> bool:
        """Whether this version of the object has been told."""
        known = self._known.get(meta.key)
        return known is not None and _version_of(known) == (meta.uid, meta.resource_version)

    def _present(self, item: T) -> None:
        meta = item.metadata  # type: ignore[attr-defined]
        if not self._client.scope.covers(self.resource, item):
            self._absent(meta.key, meta.uid)
            return
        before = self._known.get(meta.key)
        if before is not None and (uid := _version_of(before)[0]) != meta.uid:
            self._tell(Absent(meta.key, uid))
        self._known[meta.key] = item
        self._tell(Present(item))

    def _absent(self, key: str, uid: str) -> None:
        if self._known.pop(key, None) is not None:
            self._tell(Absent(key, uid))

    def _unreadable(self, malformed: Malformed) -> None:
        meta = malformed.metadata
        if not self._client.scope.covers(self.resource, malformed):
            self._absent(meta.key, meta.uid)
        elif not self._is_known(meta) or not meta.key:
            self._known[meta.key] = malformed
            self._tell(Unreadable(meta.key, malformed))


def _version_of(item: Any) -> tuple[str, str]:
    return item.metadata.uid, item.metadata.resource_version


def _typed(resource: Resource[Any]) -> Any:
    return msgspec.defstruct(f"{resource.kind}Event", [("type", str), ("object", resource.struct)])
