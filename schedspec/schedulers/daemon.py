"""A program that runs beside the tests: with its log in a file, dead when they are, watched for its own death."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from ..api.errors import SchedulerDiedError
from . import pdeathsig

_TAIL = 25


class Daemon:
    """`title` is what messages call it; `readable` makes a line of its log one for people. Not thread-safe."""

    def __init__(self, title: str, log: Path, readable: Callable[[str], str] = str) -> None:
        self.title, self.log, self._readable = title, log, readable
        self._process: subprocess.Popen[bytes] | psutil.Process | None = None

    @property
    def launched(self) -> bool:
        return self._process is not None

    @property
    def pid(self) -> int:
        """Its process id; 0 when it does not run."""
        return self._process.pid if self._process is not None else 0

    def launch(self, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> None:
        """Start it; its log begins anew. `environment` is added to ours."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", pdeathsig.__file__, str(os.getpid()), *map(str, command)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,  # Ctrl-C is pytest's: the scheduler lives until the last clean-up
            )

    def adopt(self, pid: int) -> None:
        """Watch a process that another one has started; `stop` leaves it alone."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self._process = psutil.Process(pid)

    def stop(self) -> None:
        """End it, gently first. The second call does nothing, nor does one for another's process."""
        process, self._process = self._process, None
        if isinstance(process, subprocess.Popen):
            process.terminate()
            try:
                process.wait(5.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def check(self) -> None:
        """Raise SchedulerDiedError unless it runs."""
        if self._process is None:
            raise SchedulerDiedError(f"{self.title} was not started")
        how = _end_of(self._process)
        if how:
            raise SchedulerDiedError(
                f"{self.title} {how}; nothing is scheduled any more\n  log: {self.log}\n{self.last_words()}"
            )

    def last_lines(self, count: int) -> Sequence[str]:
        """The end of its log."""
        return self.text().splitlines()[-count:]

    def text(self) -> str:
        """All of its log; empty where there is none."""
        with contextlib.suppress(FileNotFoundError):
            return self.log.read_text("utf-8", errors="replace")
        return ""

    def last_words(self) -> str:
        """The end of its log, for people."""
        return "\n".join(f"  | {self._readable(line)}" for line in self.last_lines(_TAIL)) or "  | (its log is empty)"


def _end_of(process: subprocess.Popen[bytes] | psutil.Process) -> str:
    """How it ended; empty while it runs."""
    if isinstance(process, psutil.Process):
        alive = process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        return "" if alive else "has ended"
    status = process.poll()
    if status is None:
        return ""
    return f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
