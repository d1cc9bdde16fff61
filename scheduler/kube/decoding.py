"""What the API server answers, as structs.

The one rule: an object of a list or a watch that the struct of its kind cannot read spoils nothing but itself: it comes
as Malformed, and those beside it are read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic

import msgspec

from ..model.objects import ObjectMeta
from .resource import Bare, Resource, T


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

        Raises msgspec.DecodeError where the answer is no list.
        """
        try:
            page: _Page[T] = _decoder(_Page[resource.struct]).decode(data)  # type: ignore[name-defined]
        except msgspec.ValidationError:
            raw = _raw_pages.decode(data)  # some object is malformed: find which
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
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct, Generic[T]):
    metadata: _ListMeta
    items: list[T] | None = None


class _RawPage(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


@lru_cache(maxsize=64)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


_raw_pages = msgspec.json.Decoder(_RawPage)
_bare = msgspec.json.Decoder(Bare)


def read(resource: Resource[T], data: bytes | msgspec.Raw) -> T:
    """The one object that was asked for. Raises msgspec.DecodeError where the struct cannot read it."""
    found: T = _decoder(resource.struct).decode(data)
    return found


def decode(resource: Resource[T], data: bytes | msgspec.Raw) -> T | Malformed:
    """One object of many; an unreadable one comes as Malformed, with as much of its metadata as can be read."""
    try:
        return read(resource, data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        try:
            metadata = _bare.decode(data).metadata
        except (msgspec.DecodeError, UnicodeDecodeError):
            metadata = ObjectMeta()
        return Malformed(metadata, str(error))
