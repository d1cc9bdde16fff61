"""Report a failure as plain text: no traceback, with terminal markup, through xdist and JUnit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from _pytest._code.code import ExceptionChainRepr, ReprEntryNative, ReprFileLocation, ReprTraceback
from _pytest._io import TerminalWriter

from ..terminal import one_line


def failure_of(text: Sequence[str], headline: str, path: str, line: int) -> Any:
    """Return a report's `longrepr` that prints only `text`, without a traceback, and survives xdist and JUnit.

    The short summary shows the headline. Rows contain messages of other schedulers and of tenants: their control
    characters are shown, and no message begins a line of its own.
    """
    body = ReprTraceback([ReprEntryNative([one_line(row) + "\n" for row in text])], None, style="native")
    return ExceptionChainRepr([(body, ReprFileLocation(path, line, one_line(headline)), None)])


def paint(longrepr: Any, markup: Callable[[str, int], dict[str, bool]]) -> None:
    """Add terminal markup to the lines of a failure that `failure_of` made; other failures are unchanged."""
    if isinstance(longrepr, ExceptionChainRepr):
        for trace, _, _ in longrepr.chain:
            trace.reprentries = [
                _Painted(entry.lines, markup) if isinstance(entry, ReprEntryNative) else entry
                for entry in trace.reprentries
            ]


class _Painted(ReprEntryNative):
    """A traceback entry with a markup for each line."""

    def __init__(self, lines: Sequence[str], markup: Callable[[str, int], dict[str, bool]]) -> None:
        super().__init__(lines)
        self._markup = markup

    def toterminal(self, tw: TerminalWriter) -> None:
        for number, row in enumerate(self.lines):
            tw.write(row, **self._markup(row.rstrip("\n"), number))
