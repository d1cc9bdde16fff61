"""Damage real files: cut, edited, mixed up, and with text that stands for more than it is."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from hypothesis import strategies as st

_DEEP: Any = {}
for _ in range(400):
    _DEEP = {"a": [_DEEP]}
_ESCAPES = "\x1b]0;title\x07\x1b[2J\r\u202e"
_ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**63,
    10**400,
    1e308,
    "",
    "²",
    "1e308",
    "\x00",
    _ESCAPES,
    "x" * 5_000,
    [],
    {},
    [[]],
    {"": None},
    _DEEP,
)
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)
"""A document of 600 bytes whose aliases stand for ten thousand million values."""
_INSERTS = ("[" * 500, "{", "&a ", "*a", "1e308", "-", "!!set ", "? ", "<<: *a\n", BOMB, _ESCAPES)


def _places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values in a JSON document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, item in inner for place in _places(item, (*at, key)))]


def _edited(data: st.DataObject, line: bytes) -> bytes:
    """Return a line with an odd value in some place, or without the place."""
    document = json.loads(line)
    place = data.draw(st.sampled_from(_places(document)[1:]))
    holder = document
    for key in place[:-1]:
        holder = holder[key]
    if data.draw(st.booleans()):
        holder[place[-1]] = data.draw(st.sampled_from(_ODD))
    else:
        del holder[place[-1]]
    return json.dumps(document).encode()


def damaged_lines(data: st.DataObject, content: bytes) -> bytes:
    """Return lines of JSON of which some are edited, moved, copied or dropped, or have other bytes."""
    lines = content.splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        at, to = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        match data.draw(st.sampled_from(("edit", "edit", "edit", "move", "copy", "drop", "bytes"))):
            case "edit":
                with contextlib.suppress(ValueError, RecursionError):  # damaged before
                    lines[at] = _edited(data, lines[at])
            case "move":
                lines[at], lines[to] = lines[to], lines[at]
            case "copy":
                lines.insert(to, lines[at])
            case "drop" if len(lines) > 1:
                del lines[at]
            case "bytes":
                cut = data.draw(st.integers(0, len(lines[at])))
                insert = data.draw(st.sampled_from((b"", b"\xff", b"[" * 50_000, b'"', b"{", b"\x00", b"1e999")))
                lines[at] = lines[at][:cut] + insert + lines[at][cut + data.draw(st.integers(0, 9)) :]
    return b"\n".join(lines) + b"\n"


def damaged_text(data: st.DataObject, text: str) -> str:
    """Return a text with parts replaced, and cut somewhere."""
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(at, min(at + 40, len(text))))
        text = text[:at] + data.draw(st.text(max_size=5) | st.sampled_from(_INSERTS)) + text[end:]
    return text[: data.draw(st.integers(0, len(text)))]
