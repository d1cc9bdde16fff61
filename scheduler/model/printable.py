"""Text for people: names, annotations and messages of tenants are shown, and never control a terminal.

A tenant's text may contain an escape sequence that clears the screen or sets the title, a line break that begins a
line with a command of a CI system, or a mark that reverses the direction of writing. Each such character is shown as
its code.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO

import click

OUTPUT = click.Option(
    ["-o", "--output"],
    type=click.Choice(["text", "json"]),
    default="text",
    help="Text for people, json for programs.",
)
"""The option of a command that can print its answer for programs."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_BREAKS = re.compile(r"[\n\t]")


def _code(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def printable(text: str) -> str:
    r"""Return the text with its control characters as codes (`\x1b`); line breaks and tabs stay."""
    return _CONTROL.sub(_code, text)


def one_line(text: str) -> str:
    """Return the text as one line, with line breaks and tabs as codes, too."""
    return _BREAKS.sub(_code, printable(text))


class PrintableStream:
    """A stream for people: it writes `printable` text to another stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text without its control characters. Return its length."""
        self._stream.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts without their control characters."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def printable_streams() -> Iterator[None]:
    """Write without control characters to both standard streams within this context."""
    with redirect_stdout(PrintableStream(sys.stdout)), redirect_stderr(PrintableStream(sys.stderr)):
        yield


def drawable(stream: Any) -> Any:
    """Return the stream on which this program itself draws, such as a progress line: it controls the terminal."""
    return stream._stream if isinstance(stream, PrintableStream) else stream
