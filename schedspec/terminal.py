"""Lines for a person who waits: rewritten in place on a terminal, said once in a log."""

from __future__ import annotations

import re
import shutil
import sys
import threading
import unicodedata
from typing import TextIO

_PASSING = re.compile(r",? \d+ s\b.*|; \d+ more after it.*")
"""What of a line only says how long it takes."""
_CLEAR = "\r\x1b[K"


class Lines:
    """One writer of progress. Threads may call it: a ticker updates the line that another thread has begun.

    On a terminal (`live`) a line stays open and is written anew by whatever comes next on the same subject; in a log
    each program, image or cluster has one line for each thing that is done with it.
    """

    def __init__(self, stream: TextIO, *, live: bool) -> None:
        self._stream, self._live = stream, live
        self._lock = threading.Lock()
        self._open = ""
        """The subject of the line that the cursor stands on; empty at the beginning of a line."""
        self._told: set[str] = set()

    def tell(self, text: str, subject: str = "") -> None:
        """What goes on now. Lines of one subject, by default what stands before the colon, replace each other."""
        subject = subject or text.partition(": ")[0]
        with self._lock:
            if self._live:
                again = self._open == subject
                self._write((_CLEAR if again else self._ended()) + cut(text, _width()))
                self._open = subject
            elif (said := _PASSING.sub("", text)) not in self._told:
                self._told.add(said)
                self._write(said + "\n")

    def update(self, text: str, subject: str) -> None:
        """As `tell`, only where the line of this subject is still the open one: for tickers, which may be late."""
        with self._lock:
            if self._live and self._open == subject:
                self._write(_CLEAR + cut(text, _width()))

    def close(self) -> None:
        """Leave the cursor at the beginning of a line."""
        with self._lock:
            self._write(self._ended())
            self._open = ""

    def _ended(self) -> str:
        return "\n" if self._open else ""

    def _write(self, text: str) -> None:
        if text:
            self._stream.write(text)
            self._stream.flush()


def on_stderr() -> Lines:
    """Lines of a command: what it prints for programs goes to standard output."""
    return Lines(sys.stderr, live=sys.stderr.isatty())


def cut(text: str, columns: int) -> str:
    """As much of a text as fits into so many columns; Chinese letters take two each."""
    left = columns
    for at, letter in enumerate(text):
        left -= 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if left < 1 and (left < 0 or at + 1 < len(text)):
            return text[:at] + "…"
    return text


def _width() -> int:
    return shutil.get_terminal_size().columns - 1
