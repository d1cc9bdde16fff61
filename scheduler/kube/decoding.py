"""What the API server answers, as structs.

The one rule: an object of a list or a watch that the struct of its kind cannot read spoils nothing but itself: it comes
as Malformed, and those beside it are read. That holds for one that is nested deeper than any decoder goes, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, cast

import msgspec

from ..model.objects import ObjectMeta
from .resource import Bare, Resource, T
from .slices import SLICE, Turns, decoded

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises where bytes are not what they should be."""
PAGE_BYTES = 1 << 20
"""Up to this size a page of a list is decoded in one turn, in a few ms; the larger its objects, the fewer are asked
for at a time.
"""
TOO_DEEP = "it is nested too deep to be read"


@dataclass(frozen=True, slots=True)
class Malformed:
    """An object that the struct of its kind cannot read. ``metadata`` has what could be read of it; ``error`` names
    the field.
    """

    metadata: ObjectMeta
    error: str


@dataclass(slots=True)
class Listing(Generic[T]):
    """All objects of a list, every page of it, at one ``resource_version``."""

    items: list[T] = field(default_factory=list)
    malformed: list[Malformed] = field(default_factory=list)
    resource_version: str = ""

    def add_page(self, resource: Resource[T], data: bytes) -> Turns[str]:
        """Take in the next page; what to ask the one after it with, empty where it was the last.

        Raises one of UNREADABLE where the answer is no list.
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
            return None  # some object is malformed: find which
        self.items.extend(page.items or ())
        return page.metadata

    def _add_one_by_one(self, resource: Resource[T], data: bytes) -> Turns[_ListMeta]:
        raw = yield from _raw_page(data)
        size = SLICE
        for item in raw.items or ():
            size += len(item)
            if size > SLICE:
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


class _PageOutline(msgspec.Struct):
    metadata: _ListMeta
    items: list[int] | None = None


class Event(msgspec.Struct):
    """One event of a watch; its object is not decoded yet."""

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
_bare = msgspec.json.Decoder(Bare)


def read(resource: Resource[T], data: bytes | msgspec.Raw) -> Turns[T]:
    """The one object that was asked for. Raises one of UNREADABLE where the struct cannot read it."""
    if resource.struct is Bare:
        return cast("T", (yield from _bare_of(data)))
    found: T = yield from decoded(resource.struct, data)
    return found


def decode(resource: Resource[T], data: bytes | msgspec.Raw) -> Turns[T | Malformed]:
    """One object of many; an unreadable one comes as Malformed, with as much of its metadata as can be read."""
    try:
        return (yield from read(resource, data))
    except UNREADABLE as error:
        try:
            metadata = (yield from _bare_of(data)).metadata
        except UNREADABLE:
            metadata = ObjectMeta()
        return Malformed(metadata, TOO_DEEP if isinstance(error, RecursionError) else str(error))


def decode_event(line: bytes) -> Turns[Event]:
    """One line of a watch. Raises one of UNREADABLE where it is no event."""
    try:
        return _events.decode(line)
    except RecursionError:
        outline, cut = yield from _outline(line, 1)
        event = _event_outlines.decode(outline)
        return Event(event.type, msgspec.Raw(cut[event.object]))


def _raw_page(data: bytes) -> Turns[_RawPage]:
    try:
        return _raw_pages.decode(data)
    except RecursionError:
        outline, cut = yield from _outline(data, 2)
        page = _page_outlines.decode(outline)
        return _RawPage(page.metadata, [msgspec.Raw(cut[index]) for index in page.items or ()])


def _bare_of(data: bytes | msgspec.Raw) -> Turns[Bare]:
    """The metadata of an object: names, labels and owners lie at most four levels deep."""
    try:
        return _bare.decode(data)
    except RecursionError:
        outline, _ = yield from _outline(bytes(data), 4)
        return _bare.decode(outline)


_STRUCTURE = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
"""Strings, to skip the brackets in them, and brackets."""
_TOKENS = 5_000
"""Of which so many are looked at in one turn, at half a microsecond each."""


def _outline(data: bytes, depth: int) -> Turns[tuple[bytes, list[bytes]]]:
    """A JSON text with an index in the place of each object or list that lies below ``depth`` others, and what was cut
    out, by index.

    >>> at_once(_outline(b'{"metadata": {}, "items": [{"a": 1}, {"b": {}}]}', 2))
    (b'{"metadata": {}, "items": [0, 1]}', [b'{"a": 1}', b'{"b": {}}'])

    Every decoder in the lock recurses, and skips what it does not keep by recursion, too; this one does not, at about
    50 ms a megabyte, for objects that nobody else can read.
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
