"""Decode what is large in slices, so that whoever decodes on the event loop never holds it for long.

The one rule: what comes of it, values and errors, is what msgspec makes of the whole. Between two slices, of SLICE
bytes or one scan over the rest, others have their turn. (A thread would not help: a decoder holds the interpreter until
it is done, at 10 to 30 ms a megabyte of small parts.)
"""

from __future__ import annotations

import asyncio
import re
import types
from collections.abc import Generator, Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec

SLICE = 128 * 1024
"""Bytes that are decoded in one turn."""
R = TypeVar("R")
Turns = Generator[None, None, R]
"""Work that lets others have a turn wherever it yields."""
_Parts = dict[str, msgspec.Raw]


def at_once(work: Turns[R]) -> R:
    """Do all of it in this turn."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: R = end.value
            return result


async def in_turns(work: Turns[R]) -> R:
    """Do it slice by slice; the event loop turns in between."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: R = end.value
            return result
        await asyncio.sleep(0)


def decoded(kind: Any, data: bytes | msgspec.Raw, path: str = "$") -> Turns[Any]:
    """A JSON text as the type says. Raises what msgspec raises."""
    if len(data) <= SLICE:
        return _decode(kind, data, path)
    first, inner = bytes(memoryview(data)[:1]), _without_none(kind)
    if first == b"{" and isinstance(inner, type) and issubclass(inner, msgspec.Struct):
        return (yield from _struct(inner, data, path))
    if first == b"[" and (inner is Any or get_origin(inner) is list):
        return (yield from _list(next(iter(get_args(inner)), Any), data, path))
    if first == b"{" and (inner is Any or (get_origin(inner) is dict and get_args(inner)[0] is str)):
        return (yield from _dict(get_args(inner)[1] if get_args(inner) else Any, data, path))
    return _decode(kind, data, path)


def _struct(kind: type[msgspec.Struct], data: bytes | msgspec.Raw, path: str) -> Turns[Any]:
    """The struct without its large parts, then those, one after the other."""
    parts: _Parts = _decode(_Parts, data, path)
    yield
    fields = [it for it in msgspec.structs.fields(kind) if len(parts.get(it.encode_name, b"")) > SLICE]
    large = {it.encode_name: parts.pop(it.encode_name) for it in fields if not it.required}
    known = {it.encode_name for it in msgspec.structs.fields(kind)}
    found = _decode(kind, _object((key, parts[key]) for key in parts if key in known), path)
    for field in fields:
        if field.encode_name in large:
            yield
            value = yield from decoded(field.type, large[field.encode_name], f"{path}.{field.encode_name}")
            msgspec.structs.force_setattr(found, field.name, value)
    return found


def _list(kind: Any, data: bytes | msgspec.Raw, path: str) -> Turns[list[Any]]:
    items: list[msgspec.Raw] = _decode(list[msgspec.Raw], data, path)
    found: list[Any] = []
    for start, end in _batches([len(item) + 1 for item in items]):
        yield
        if end == start + 1:
            found.append((yield from decoded(kind, items[start], f"{path}[{start}]")))
        else:
            found += _decode(list[kind], b"[" + b",".join(map(bytes, items[start:end])) + b"]", path, start)
    return found


def _dict(kind: Any, data: bytes | msgspec.Raw, path: str) -> Turns[dict[str, Any]]:
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
    """Where slices begin and end; one that is larger than a slice is by itself."""
    start = total = 0
    for index, size in enumerate(sizes):
        if index > start and total + size > SLICE:
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
    """``path`` is where in the whole these bytes are; ``start`` the index of the first item of a list's slice."""
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
