"""Decode large JSON texts in chunks, so that a decoder never blocks the event loop for long.

Values and errors are those of msgspec for the whole text. Other tasks run after each chunk of `CHUNK_BYTES`, and after
each scan that splits a text into its parts.

A thread would not help: a decoder holds the GIL until it returns. The largest pods that the API server stores (1.4
MB of small parts) take 30 to 50 ms of CPU in one piece; a cycle may hold the event loop for 4 ms.

With `Extent.most`, decoding ends at the first list or mapping that takes more memory. Otherwise a text of 1.4 MB would
take 10 MB while it is decoded, and objects that other tasks create meanwhile would keep the allocator from returning
parts of that memory.
"""

from __future__ import annotations

import asyncio
import re
import types
from collections.abc import Collection, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec

from ..model.footprint import TooLargeError, memory_of

CHUNK_BYTES = 128 * 1024
"""Bytes that are decoded in one turn of the event loop."""
R = TypeVar("R")
Stepwise = Generator[None, None, R]
"""A computation that yields wherever other tasks may run."""
_Parts = dict[str, msgspec.Raw]


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of a large text is decoded."""

    most: int | None = None
    """Maximum bytes of memory for one list or mapping; None for no limit."""
    unread: Collection[str] = ()
    """Paths of fields that are not decoded if they are large, such as `$.spec.tolerations`."""


WHOLE = Extent()


def run_now(work: Stepwise[R]) -> R:
    """Run all of the work in this turn of the event loop."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: R = end.value
            return result


async def run_yielding(work: Stepwise[R]) -> R:
    """Run the work; other tasks run wherever it yields."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: R = end.value
            return result
        await asyncio.sleep(0)


def decoded(kind: Any, data: bytes | msgspec.Raw, path: str = "$", extent: Extent = WHOLE) -> Stepwise[Any]:
    """Decode a JSON text as a type.

    Raises:
        msgspec.DecodeError: As msgspec raises it for the whole text.
        TooLargeError: A list or mapping takes more than `extent.most` bytes of memory.
    """
    if len(data) <= CHUNK_BYTES:
        return _decode(kind, data, path)
    first, inner = bytes(memoryview(data)[:1]), _without_none(kind)
    if first == b"{" and isinstance(inner, type) and issubclass(inner, msgspec.Struct):
        return (yield from _struct(inner, data, path, extent))
    if first == b"[" and (inner is Any or get_origin(inner) is list):
        return (yield from _list(next(iter(get_args(inner)), Any), data, path, extent))
    if first == b"{" and (inner is Any or (get_origin(inner) is dict and get_args(inner)[0] is str)):
        return (yield from _dict(get_args(inner)[1] if get_args(inner) else Any, data, path, extent))
    return _decode(kind, data, path)


def _struct(kind: type[msgspec.Struct], data: bytes | msgspec.Raw, path: str, extent: Extent) -> Stepwise[Any]:
    """Decode a struct without its large fields, then the large fields one by one."""
    parts: _Parts = _decode(_Parts, data, path)
    yield
    fields = [field for field in msgspec.structs.fields(kind) if len(parts.get(field.encode_name, b"")) > CHUNK_BYTES]
    large = {field.encode_name: parts.pop(field.encode_name) for field in fields if not field.required}
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    found = _decode(kind, _object((key, parts[key]) for key in parts if key in known), path)
    for field in fields:
        place = f"{path}.{field.encode_name}"
        if field.encode_name in large and place not in extent.unread:
            yield
            value = yield from decoded(field.type, large[field.encode_name], place, extent)
            msgspec.structs.force_setattr(found, field.name, value)
    return found


def _list(kind: Any, data: bytes | msgspec.Raw, path: str, extent: Extent) -> Stepwise[list[Any]]:
    found: list[Any] = []
    size = 0
    for start, end, text in _chunks_of_list(data, path):
        yield
        if end == start + 1:
            some = [(yield from decoded(kind, text, f"{path}[{start}]", extent))]
        else:
            some = _decode(list[kind], text, path, start)
        size = _checked(size, some, path, extent)
        found += some
    return found


def _dict(kind: Any, data: bytes | msgspec.Raw, path: str, extent: Extent) -> Stepwise[dict[str, Any]]:
    found: dict[str, Any] = {}
    size = 0
    for name, text in _chunks_of_dict(data, path):
        yield
        if name is not None:
            some = {name: (yield from decoded(kind, text, f"{path}[...]", extent))}
        else:
            some = _decode(dict[str, kind], text, path)
        size = _checked(size, some, path, extent)
        found |= some
    return found


def _chunks_of_list(data: bytes | msgspec.Raw, path: str) -> list[tuple[int, int, bytes]]:
    """Return start, end and text of each chunk; the text is a list, or the item if there is only one.

    The raw items are freed before another task runs: there may be many thousands of them.
    """
    items: list[msgspec.Raw] = _decode(list[msgspec.Raw], data, path)
    return [
        (start, end, bytes(items[start]) if end == start + 1 else b"[" + b",".join(map(bytes, items[start:end])) + b"]")
        for start, end in _batches([len(item) + 1 for item in items])
    ]


def _chunks_of_dict(data: bytes | msgspec.Raw, path: str) -> list[tuple[str | None, bytes]]:
    """Return name and text of each chunk: a mapping without a name, or a single value with its name."""
    parts: _Parts = _decode(_Parts, data, path)
    names = list(parts)
    return [
        (names[start], bytes(parts[names[start]]))
        if end == start + 1
        else (None, _object((name, parts[name]) for name in names[start:end]))
        for start, end in _batches([len(name) + len(parts[name]) + 4 for name in names])
    ]


def _checked(size: int, some: Any, path: str, extent: Extent) -> int:
    """Add the bytes of the items `some` to the `size` of a list or mapping; return the sum. Raises TooLargeError."""
    if extent.most is None:
        return 0
    size += memory_of(some, extent.most)
    if size > extent.most:
        raise TooLargeError(".".join(part.partition("[")[0] for part in path.split(".")[1:3]), extent.most)
    return size


def _batches(sizes: list[int]) -> Iterator[tuple[int, int]]:
    """Return start and end of each chunk. An item larger than a chunk is a chunk of its own."""
    start = total = 0
    for index, size in enumerate(sizes):
        if index > start and total + size > CHUNK_BYTES:
            yield start, index
            start, total = index, 0
        total += size
    if sizes:
        yield start, len(sizes)


def _object(pairs: Iterable[tuple[str, msgspec.Raw]]) -> bytes:
    return b"{" + b",".join(msgspec.json.encode(name) + b":" + bytes(raw) for name, raw in pairs) + b"}"


def _without_none(kind: Any) -> Any:
    if get_origin(kind) not in (Union, types.UnionType):
        return kind
    others = [member for member in get_args(kind) if member is not type(None)]
    return others[0] if len(others) == 1 else kind


def _decode(kind: Any, data: bytes | msgspec.Raw, path: str, start: int = 0) -> Any:
    """Decode one chunk. `path` is its place in the whole text; `start` is the index of its first item in a list."""
    try:
        return _decoder(kind).decode(data)
    except msgspec.ValidationError as error:
        if path == "$" and not start:
            raise
        text, at, place = str(error).partition(" - at `$")
        if start:
            place = re.sub(r"^\[(\d+)\]", lambda found: f"[{int(found[1]) + start}]", place)
        raise msgspec.ValidationError(f"{text} - at `{path}{place if at else '`'}") from None


@lru_cache(maxsize=256)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)
