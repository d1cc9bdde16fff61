"""Decode answers of the API server into structs.

An object that its struct cannot represent affects no other object of the list or watch. Such an object is returned as
`Malformed`, also if it is nested deeper than any decoder supports.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Generator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast

import msgspec

from ..model.footprint import SMALL_BYTES, TooLargeError, has_many_values, identity_in, identity_of
from ..model.objects import ObjectMeta
from .resource import Bare, Resource, T

R = TypeVar("R")
Stepwise = Generator[None, None, R]
"""A computation that yields wherever other tasks may run, because a cycle may hold the event loop for 4 ms only."""
CHUNK_BYTES = 128 * 1024
"""Bytes that are decoded in one turn of the event loop, unless an object is larger.

A thread would not help: a decoder holds the GIL until it returns.
"""
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors that decoding raises for invalid bytes."""
PAGE_BYTES = 1 << 20
"""Maximum size of a page that is decoded in one turn, in a few ms. The larger the objects of a list are, the fewer are
requested at a time.
"""
TOO_DEEP = "it is nested too deep to be read"


def run_now(work: Stepwise[R]) -> R:
    """Run all of the work in this turn of the event loop."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return cast("R", end.value)


async def run_yielding(work: Stepwise[R]) -> R:
    """Run the work; other tasks run wherever it yields."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return cast("R", end.value)
        await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class Malformed:
    """An object that the struct of its kind cannot read.

    `metadata` has the readable part of its metadata; `error` names the field.
    """

    metadata: ObjectMeta
    error: str


@dataclass(slots=True)
class Listing(Generic[T]):
    """All objects of a list, from all its pages, at one `resource_version`."""

    items: list[T] = field(default_factory=list)
    malformed: list[Malformed] = field(default_factory=list)
    resource_version: str = ""

    def add_page(self, resource: Resource[T], data: bytes) -> Stepwise[str]:
        """Add the next page. Return the token of the page after it, empty after the last page.

        Raises:
            UNREADABLE: One of these if the answer is not a list.
        """
        meta = self._add_whole(resource, data) if len(data) <= PAGE_BYTES else None
        if meta is None:
            meta = yield from self._add_one_by_one(resource, data)
        self.resource_version = meta.resource_version
        return meta.continue_

    def _add_whole(self, resource: Resource[T], data: bytes) -> _ListMeta | None:
        try:
            page: _Page[T] = _decoder(_Page[resource.struct]).decode(data)  # type: ignore[name-defined]
        except UNREADABLE:
            return None  # an object is malformed; the caller finds it
        if resource.trim is None:
            self.items.extend(page.items or ())
            return page.metadata
        for item in page.items or ():
            size = len(data) if len(data) <= SMALL_BYTES else len(_encode(item))
            self._add(trimmed(resource, item, size))
        return page.metadata

    def _add_one_by_one(self, resource: Resource[T], data: bytes) -> Stepwise[_ListMeta]:
        raw = yield from _raw_page(data)
        size = CHUNK_BYTES
        for item in raw.items or ():
            size += len(item)
            if size > CHUNK_BYTES:
                size = 0
                yield
            self._add((yield from decode(resource, item)))
        return raw.metadata

    def _add(self, found: T | Malformed) -> None:
        if isinstance(found, Malformed):
            self.malformed.append(found)
        else:
            self.items.append(found)


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct, Generic[T]):
    metadata: _ListMeta
    items: list[T] | None = None


class _RawPage(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _RawObject(msgspec.Struct):
    metadata: msgspec.Raw


class _PageOutline(msgspec.Struct):
    metadata: _ListMeta
    items: list[int] | None = None


class Event(msgspec.Struct):
    """One event of a watch. Its object is not decoded yet."""

    type: str
    object: msgspec.Raw


class _EventOutline(msgspec.Struct):
    type: str
    object: int


@lru_cache(maxsize=64)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


_raw_pages = msgspec.json.Decoder(_RawPage)
_page_outlines = msgspec.json.Decoder(_PageOutline)
_events = msgspec.json.Decoder(Event)
_event_outlines = msgspec.json.Decoder(_EventOutline)
_raw_objects = msgspec.json.Decoder(_RawObject)
_metas = msgspec.json.Decoder(ObjectMeta)
_encode = msgspec.json.Encoder().encode


def read(resource: Resource[T], data: bytes | msgspec.Raw) -> Stepwise[T]:
    """Return an object that was requested by name.

    Raises:
        UNREADABLE: One of these if the struct cannot read the object.
    """
    if resource.struct is Bare:
        return cast("T", Bare(_metas.decode((yield from _metadata_in(data)))))
    return _decoder(resource.struct).decode(data)  # type: ignore[no-any-return]


def decode(resource: Resource[T], data: bytes | msgspec.Raw) -> Stepwise[T | Malformed]:
    """Return an object of a list or watch; an unreadable one as Malformed, with the readable part of its metadata."""
    try:
        if resource.trim is not None and has_many_values(data):
            return resource.read_large(data)
        return trimmed(resource, (yield from read(resource, data)), len(data))
    except (*UNREADABLE, TooLargeError) as error:
        try:
            metadata = identity_of(identity_in((yield from _metadata_in(data))))
        except UNREADABLE:
            metadata = ObjectMeta()
        return Malformed(metadata, TOO_DEEP if isinstance(error, RecursionError) else str(error))


def trimmed(resource: Resource[T], item: T, size: int) -> T | Malformed:
    """Return the part of an object that is kept; Malformed where the object is too large."""
    if resource.trim is None:
        return item
    try:
        return resource.trim(item, size)
    except ValueError as error:
        return Malformed(identity_of(item.metadata), str(error))  # type: ignore[attr-defined]


def decode_event(line: bytes) -> Stepwise[Event]:
    """Return one line of a watch as an event.

    Raises:
        UNREADABLE: One of these if the line is not an event.
    """
    try:
        return _events.decode(line)
    except RecursionError:
        outline, cut = yield from _outline(line, 1)
        event = _event_outlines.decode(outline)
        return Event(event.type, msgspec.Raw(cut[event.object]))


def _raw_page(data: bytes) -> Stepwise[_RawPage]:
    try:
        return _raw_pages.decode(data)
    except RecursionError:
        outline, cut = yield from _outline(data, 2)
        page = _page_outlines.decode(outline)
        return _RawPage(page.metadata, [msgspec.Raw(cut[index]) for index in page.items or ()])


def _metadata_in(data: bytes | msgspec.Raw) -> Stepwise[msgspec.Raw]:
    """Return the metadata of an object. Names, labels and owners lie at most four levels deep."""
    try:
        return _raw_objects.decode(data).metadata
    except RecursionError:
        outline, _ = yield from _outline(bytes(data), 4)
        return _raw_objects.decode(outline).metadata


_STRUCTURE = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
"""Matches brackets and whole strings, so that brackets in strings are skipped."""
_TOKENS = 5_000
"""Tokens per turn of the event loop, at half a microsecond each."""


def _outline(data: bytes, depth: int) -> Stepwise[tuple[bytes, list[bytes]]]:
    """Replace each object or list inside `depth` others by an index; return the text and the parts that were cut out.

    >>> run_now(_outline(b'{"metadata": {}, "items": [{"a": 1}, {"b": {}}]}', 2))
    (b'{"metadata": {}, "items": [0, 1]}', [b'{"a": 1}', b'{"b": {}}'])

    Every decoder in the lock file recurses, also over values that it skips. This function does not recurse. It takes
    about 50 ms per megabyte, and only texts that no decoder can read need it.
    """
    outline: list[bytes] = []
    cut: list[bytes] = []
    level = begins = ended = 0
    for number, token in enumerate(_STRUCTURE.finditer(data), 1):
        if number % _TOKENS == 0:
            yield
        if token[0] in b"{[":
            level += 1
            if level == depth + 1:
                begins = token.start()
        elif token[0] in b"}]":
            if level == depth + 1:
                outline += [data[ended:begins], b"%d" % len(cut)]
                ended = token.end()
                cut.append(data[begins:ended])
            level -= 1
    return b"".join([*outline, data[ended:]]), cut
