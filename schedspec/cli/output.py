"""Run a program so that it ends quietly if nobody reads its standard output.

Standard output may be closed (`>&-`), its reader may have ended (`| head`), or its disk may be full. A program that
writes there would end with a traceback, and so would pytest. As a program, this module runs pytest like that.
"""

from __future__ import annotations

import errno
import io
import os
import runpy
import sys
from collections.abc import Callable
from typing import Any

_FD = 1
"""The file descriptor of standard output."""


class LostOutputError(OSError):
    """Standard output cannot be written."""


class _Output(io.FileIO):
    """Standard output: its errors are told from those of other files."""

    def write(self, data: Any) -> int:
        """Write bytes. Raises LostOutputError."""
        try:
            return super().write(data) or 0
        except OSError as problem:
            raise LostOutputError(problem.errno, f"standard output: {problem.strerror}") from None


def run(program: Callable[[], object]) -> None:
    """Run a program, and write out what it printed. If it cannot be written, exit with status 1.

    A full disk is named on standard error; a reader that has ended has seen what it wanted.
    """
    try:
        if sys.stdout is None:
            _discard()
        elif sys.stdout is sys.__stdout__:
            sys.stdout = _of_our_own(sys.stdout)
        try:
            program()
        finally:
            if not sys.stdout.closed:  # the language server closes it
                sys.stdout.flush()
    except LostOutputError as problem:
        _discard()
        if problem.errno != errno.EPIPE:
            sys.stderr.write(f"{problem.strerror}\n")
        sys.exit(1)


def pytest_command(*words: str) -> list[str]:
    """Return the command line of a run of pytest with our plugin."""
    return [sys.executable, "-P", __file__, "-p", "schedspec.plugin", *words]


def _of_our_own(stream: Any) -> io.TextIOWrapper:
    stream.flush()
    buffer = io.BufferedWriter(_Output(_FD, "w", closefd=False))
    return io.TextIOWrapper(
        buffer, stream.encoding, stream.errors, line_buffering=stream.line_buffering, write_through=stream.write_through
    )


def _discard() -> None:
    """Let this process and the programs that it starts write to nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _FD)
    if nowhere != _FD:
        os.close(nowhere)
    os.set_inheritable(_FD, True)
    sys.stdout = open(_FD, "w", closefd=False)  # noqa: SIM115 - it stays open until the process ends


if __name__ == "__main__":  # as a file, so that pytest imports this package first, and rewrites its assertions
    sys.path.insert(0, os.getcwd())
    run(lambda: runpy.run_module("pytest", run_name="__main__", alter_sys=True))
