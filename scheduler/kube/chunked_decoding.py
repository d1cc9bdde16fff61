"""Decode large JSON texts in chunks, so that a decoder never blocks the event loop for long.

Values and errors are equal to msgspec's for the whole text. Other tasks run between two chunks of `CHUNK_BYTES`, or of
one scan over the rest.

A thread would not help: a decoder holds the interpreter until it ends. The largest pods that the API server stores (1.4
MB of small parts) take 30 to 50 ms of CPU in one piece; a cycle may hold the event loop for 4 ms.
"""

from __future__ import annotations

import asyncio
import re
import types
from collections.abc import Generator, Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec

CHUNK_BYTES = 128 * 1024
"""Bytes that are decoded in one turn of the event loop."""
R = TypeVar("R")
Stepwise = Generator[None, None, R]
"""Work that lets other tasks run wherever it yields."""
_Parts = dict[str, msgspec.Raw]


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


def decoded(kind: Any, data: bytes | msgspec.Raw, path: str = "$") -> Stepwise[Any]:
    """Decode a JSON text as a type. Raises the errors of msgspec."""
    if len(data) <= CHUNK_BYTES:
        return _decode(kind, data, path)
    first, inner = bytes(memoryview(data)[:1]), _without_none(kind)
    if first == b"{" and isinstance(inner, type) and issubclass(inner, msgspec.Struct):
        return (yield from _struct(inner, data, path))
    if first == b"[" and (inner is Any or get_origin(inner) is list):
        return (yield from _list(next(iter(get_args(inner)), Any), data, path))
    if first == b"{" and (inner is Any or (get_origin(inner) is dict and get_args(inner)[0] is str)):
        return (yield from _dict(get_args(inner)[1] if get_args(inner) else Any, data, path))
    return _decode(kind, data, path)


def _struct(kind: type[msgspec.Struct], data: bytes | msgspec.Raw, path: str) -> Stepwise[Any]:
    """Decode a struct without its large fields, then the large fields one by one."""
    parts: _Parts = _decode(_Parts, data, path)
    yield
    fields = [it for it in msgspec.structs.fields(kind) if len(parts.get(it.encode_name, b"")) > CHUNK_BYTES]
    large = {it.encode_name: parts.pop(it.encode_name) for it in fields if not it.required}
    known = {it.encode_name for it in msgspec.structs.fields(kind)}
    found = _decode(kind, _object((key, parts[key]) for key in parts if key in known), path)
    for field in fields:
        if field.encode_name in large:
            yield
            value = yield from decoded(field.type, large[field.encode_name], f"{path}.{field.encode_name}")
            msgspec.structs.force_setattr(found, field.name, value)
    return found


def _list(kind: Any, data: bytes | msgspec.Raw, path: str) -> Stepwise[list[Any]]:
    items: list[msgspec.Raw] = _decode(list[msgspec.Raw], data, path)
    found: list[Any] = []
    for start, end in _batches([len(item) + 1 for item in items]):
        yield
        if end == start + 1:
            found.append((yield from decoded(kind, items[start], f"{path}[{start}]")))
        else:
            found += _decode(list[kind], b"[" + b",".join(map(bytes, items[start:end])) + b"]", path, start)
    return found


def _dict(kind: Any, data: bytes | msgspec.Raw, path: str) -> Stepwise[dict[str, Any]]:
    parts: _Parts = _decode(_Parts, data, path)
    names = list(parts)
    found: dict[str, Any] = {}
    for start, end in _batches([len(name) + len(parts[name]) + 4 for name in names]):
        yield
        if end == start + 1:
            found[names[start]] = yield from decoded(kind, parts[names[start]], f"{path}[...]")
        else:
            found |= _decode(dict[str, kind], _object((name, parts[name]) for name in names[start:end]), path)
    return found


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
    others = [it for it in get_args(kind) if it is not type(None)]
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
