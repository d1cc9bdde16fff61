"""Run a program so that it ends quietly if nobody reads its standard output.

Standard output may be closed (`>&-`), its reader may have ended (`| head`), or its disk may be full. A program that
writes there would end with a traceback, and so would pytest. As a program, this module runs pytest like that.
"""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

_FD = 1
"""The file descriptor of standard output."""
_ENDED = "SCHEDSPEC_PYTEST_ENDED"
"""The environment variable that names the file in which the process of pytest confirms that pytest itself ended."""


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


def run_pytest(environment: dict[str, str], *words: str) -> int:
    """Run pytest with our plugin in a process; return its status, or 1 if the process ended before pytest did.

    `os._exit(0)` in a step, or `sys.exit(0)` in a conftest, ends the process with the status of success before all
    scenarios ran. So the process confirms pytest's own status in a file.
    """
    from ..schedulers.pdeathsig import dying_with_us  # noqa: PLC0415 - as a program, this file has no package

    with tempfile.NamedTemporaryFile() as confirmed:
        variables = {**environment, _ENDED: confirmed.name}
        status = subprocess.run(dying_with_us(*pytest_command(*words)), env=variables, check=False).returncode
        if ended := confirmed.read():
            return status or int(ended)  # a function of atexit can replace the status, too
    why = "a step, a conftest or a plugin called os._exit or sys.exit, or a signal ended the process"
    do_next = "see the last scenario above; the scenarios after it did not run"
    sys.stderr.write(f"pytest did not end its run (status {status}): {why}\n  do next: {do_next}\n")
    return status or 1


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


def _pytest() -> None:
    import pytest  # noqa: PLC0415 - only this process needs it

    file = os.environ.pop(_ENDED, "")  # a run that a step starts must not confirm this one
    sys.argv[0] = pytest.__file__
    status = pytest.main()
    if file:
        with open(file, "w", encoding="ascii") as confirmed:
            confirmed.write(str(int(status)))
    sys.exit(status)


if __name__ == "__main__":  # as a file, so that pytest imports this package first, and rewrites its assertions
    sys.path.insert(0, os.getcwd())
    run(_pytest)
