"""Texts on a terminal: a progress line that is rewritten in place (in a log, written once), and short paths."""

from __future__ import annotations

import re
import shutil
import sys
import threading
import unicodedata
from pathlib import Path
from typing import TextIO

from .scheduler.model.printable import drawable, one_line, printable

__all__ = ["Lines", "cut", "drawable", "on_stderr", "one_line", "printable", "short_path", "top_of"]

_PASSING = re.compile(r",? \d+ s\b.*|; \d+ more after it.*")
"""The part of a progress line that changes with time alone."""
_CLEAR = "\r\x1b[K"


class Lines:
    """One writer of progress. Threads may call it: a ticker updates the line that another thread has begun.

    On a terminal (`live`), the next line about the same subject replaces the current line. In a log, each program,
    image or cluster gets one line for each step.
    """

    def __init__(self, stream: TextIO, *, live: bool) -> None:
        self._stream, self._live = stream, live
        self._lock = threading.Lock()
        self._open = ""
        """The subject of the line that has the cursor; empty at the beginning of a line."""
        self._written: set[str] = set()

    def show(self, text: str, subject: str = "") -> None:
        """Show a line of progress. It replaces the last line of its subject, by default the text before the colon."""
        subject = subject or text.partition(": ")[0]
        with self._lock:
            if self._live:
                again = self._open == subject
                self._write((_CLEAR if again else self._ended()) + cut(text, _width()))
                self._open = subject
            elif (line := _PASSING.sub("", text)) not in self._written:
                self._written.add(line)
                self._write(line + "\n")

    def update(self, text: str, subject: str) -> None:
        """Show a line if the line of its subject is still open: for tickers, which may be late."""
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
    """Return the progress lines of a command, on standard error; output for programs goes to standard output."""
    return Lines(drawable(sys.stderr), live=sys.stderr.isatty())


def short_path(path: str | Path) -> str:
    """Return a path for users: relative to the working directory if the path is below it."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else str(path)


def cut(text: str, columns: int) -> str:
    """Cut a text to a number of columns; Chinese letters have two each."""
    left = columns
    for at, letter in enumerate(text):
        left -= 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if left < 1 and (left < 0 or at + 1 < len(text)):
            return text[:at] + "…"
    return text


def _width() -> int:
    return shutil.get_terminal_size().columns - 1


def top_of(folder: Path) -> Path:
    """Return the root of the folder's git repository, or the folder itself outside of git."""
    folder = folder.absolute()
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), folder)
