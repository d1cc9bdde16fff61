"""What the API server answers, as structs.

The one rule: an object of a list or a watch that the struct of its kind cannot read spoils nothing but itself: it comes
as Malformed, and those beside it are read. That holds for one that is nested deeper than any decoder goes, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast

import msgspec

from ..model.objects import ObjectMeta
from .resource import Bare, Resource, T

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises where bytes are not what they should be."""
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

    def add_page(self, resource: Resource[T], data: bytes) -> str:
        """Take in the next page; what to ask the one after it with, empty where it was the last.

        Raises one of UNREADABLE where the answer is no list.
        """
        try:
            page: _Page[T] = _decoder(_Page[resource.struct]).decode(data)  # type: ignore[name-defined]
        except UNREADABLE:
            raw = _raw_page(data)  # some object is malformed: find which
            for item in raw.items or ():
                self._add(decode(resource, item))
            meta = raw.metadata
        else:
            self.items.extend(page.items or ())
            meta = page.metadata
        self.resource_version = meta.resource_version
        return meta.continue_

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


def read(resource: Resource[T], data: bytes | msgspec.Raw) -> T:
    """The one object that was asked for. Raises one of UNREADABLE where the struct cannot read it."""
    if resource.struct is Bare:
        return cast("T", _bare_of(data))
    found: T = _decoder(resource.struct).decode(data)
    return found


def decode(resource: Resource[T], data: bytes | msgspec.Raw) -> T | Malformed:
    """One object of many; an unreadable one comes as Malformed, with as much of its metadata as can be read."""
    try:
        return read(resource, data)
    except UNREADABLE as error:
        try:
            metadata = _bare_of(data).metadata
        except UNREADABLE:
            metadata = ObjectMeta()
        return Malformed(metadata, TOO_DEEP if isinstance(error, RecursionError) else str(error))


def decode_event(line: bytes) -> Event:
    """One line of a watch. Raises one of UNREADABLE where it is no event."""

    def by_outline() -> Event:
        outline, cut = _outline(line, 1)
        event = _event_outlines.decode(outline)
        return Event(event.type, msgspec.Raw(cut[event.object]))

    return _at_any_depth(lambda: _events.decode(line), by_outline)


def _raw_page(data: bytes) -> _RawPage:
    def by_outline() -> _RawPage:
        outline, cut = _outline(data, 2)
        page = _page_outlines.decode(outline)
        return _RawPage(page.metadata, [msgspec.Raw(cut[index]) for index in page.items or ()])

    return _at_any_depth(lambda: _raw_pages.decode(data), by_outline)


def _bare_of(data: bytes | msgspec.Raw) -> Bare:
    """The metadata of an object: names, labels and owners lie at most four levels deep."""
    return _at_any_depth(lambda: _bare.decode(data), lambda: _bare.decode(_outline(bytes(data), 4)[0]))


_Found = TypeVar("_Found")


def _at_any_depth(decode_whole: Callable[[], _Found], decode_outline: Callable[[], _Found]) -> _Found:
    try:
        return decode_whole()
    except RecursionError:
        return decode_outline()


_STRUCTURE = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
"""Strings, to skip the brackets in them, and brackets."""


def _outline(data: bytes, depth: int) -> tuple[bytes, list[bytes]]:
    """A JSON text with an index in the place of each object or list that lies below ``depth`` others, and what was cut
    out, by index.

    >>> _outline(b'{"metadata": {}, "items": [{"a": 1}, {"b": {}}]}', 2)
    (b'{"metadata": {}, "items": [0, 1]}', [b'{"a": 1}', b'{"b": {}}'])

    Every decoder in the lock recurses, and skips what it does not keep by recursion, too; this one does not, at about
    50 ms a megabyte, for objects that nobody else can read.
    """
    outline: list[bytes] = []
    cut: list[bytes] = []
    level = begins = ended = 0
    for token in _STRUCTURE.finditer(data):
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
