"""Run a program beside the tests: it logs to a file, dies with the tests, and its death is detected."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from ..api import timeouts
from ..api.errors import SchedulerDiedError
from . import pdeathsig
from .adapter import Scheduler, Site, sha256

_TAIL = 25


class Daemon:
    """A program. `readable` formats a line of its log for users. Not thread-safe."""

    def __init__(self, title: str, log: Path, readable: Callable[[str], str] = str) -> None:
        self.title, self.log, self._readable = title, log, readable
        self._process: subprocess.Popen[bytes] | psutil.Process | None = None

    @property
    def launched(self) -> bool:
        return self._process is not None

    @property
    def runs(self) -> bool:
        """Whether the program was started and has not ended."""
        return self._process is not None and not _end_of(self._process)

    @property
    def pid(self) -> int:
        """Process id; 0 if the program was not started, or was stopped."""
        return self._process.pid if self._process is not None else 0

    def launch(self, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> None:
        """Start the program with an empty log. `environment` is added to ours."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                pdeathsig.dying_with_us(*command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,  # Ctrl-C goes to pytest: the scheduler lives until the last clean-up
            )

    def adopt(self, pid: int) -> None:
        """Watch a process that another process started. `stop` does not end it."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self._process = psutil.Process(pid)

    def stop(self) -> None:
        """Stop the program, gracefully first. Does nothing on a second call or for an adopted process."""
        process, self._process = self._process, None
        if isinstance(process, subprocess.Popen):
            process.terminate()
            try:
                process.wait(5.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def check(self) -> None:
        """Check that the program runs."""
        if self._process is None:
            raise SchedulerDiedError(f"{self.title} was not started")
        how = _end_of(self._process)
        if how:
            raise SchedulerDiedError(
                f"{self.title} {how}; scheduling has stopped\n  log: {self.log}\n{self.log_tail()}"
            )

    def last_lines(self, count: int) -> Sequence[str]:
        return self.text().splitlines()[-count:]

    def text(self) -> str:
        """Return the whole log; empty without one."""
        with contextlib.suppress(FileNotFoundError):
            return self.log.read_text("utf-8", errors="replace")
        return ""

    def log_tail(self) -> str:
        """Return the last lines of the log for users."""
        return "\n".join(f"  | {self._readable(line)}" for line in self.last_lines(_TAIL)) or "  | (its log is empty)"


class ProgramScheduler(Scheduler):
    """A scheduler whose programs run beside the cluster. A new policy restarts the first program, which decides.

    `logs`: the programs that run → file names of their logs.
    """

    def __init__(self, site: Site, programs: Mapping[str, Path], logs: Mapping[str, str]) -> None:
        self._site, self._programs = site, programs
        self._daemons = [Daemon(name, site.folder / log) for name, log in logs.items()]
        self._scheduler = self._daemons[0]
        self._sha256 = ""

    def restart(self, policy: str) -> None:
        """Stop the first program; return when it runs with this policy.

        Raises:
            PolicyRefusedError: the scheduler rejected the policy.
            UnsuitableClusterError: the scheduler has no such policy here.
            SchedulerDiedError: the scheduler ended.
        """
        raise NotImplementedError

    def use_policy(self, text: str) -> str:
        """Restart the first program, unless it runs with this policy already. Raises what `restart` raises."""
        wanted = sha256(text)
        if wanted != self._sha256 or not self._scheduler.runs:
            self._sha256 = ""
            self.restart(text)
            self._sha256 = wanted
        return wanted

    def stop(self) -> None:
        for daemon in self._daemons:
            daemon.stop()
        self._sha256 = ""

    def handle(self) -> dict[str, Any]:
        return {"sha256": self._sha256, **{daemon.title: daemon.pid for daemon in self._daemons}}

    def attach(self, handle: dict[str, Any]) -> None:
        for daemon in self._daemons:
            daemon.adopt(handle[daemon.title])
        self._sha256 = handle["sha256"]

    def check(self) -> None:
        """Check that all programs run."""
        for daemon in self._daemons:
            daemon.check()

    def last_lines(self, count: int) -> Sequence[str]:
        return self._scheduler.last_lines(count)

    @property
    def timeout(self) -> float:
        """Seconds that a program may take to become ready."""
        return timeouts.READY * max(self._site.scale, 1.0)


def _end_of(process: subprocess.Popen[bytes] | psutil.Process) -> str:
    """Describe how the process ended; empty while it runs."""
    if isinstance(process, psutil.Process):
        alive = process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        return "" if alive else "has ended"
    status = process.poll()
    if status is None:
        return ""
    return f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"


def free_port() -> int:
    """Return a port of this machine on which no process listens now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
