"""Run a program that may take long, tell how it goes, and never leave it behind.

The one rule: whatever else than its own end ends the wait (a deadline, Ctrl-C, the death of this process), the program
does not outlive it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Tick = Callable[[float], None]
"""Is called every five seconds with the seconds so far."""

_FRAME = re.compile(r"^\S+\n\t\S+:\d+(\n|$)", re.MULTILINE)
"""A frame of a stack trace of Go, which kubeadm prints below its error, longer than what anybody shows."""
_POLL = 0.02
_TICK = 5.0


def silent(_seconds: float) -> None:
    """A tick for nobody."""


@dataclass(frozen=True, slots=True)
class Finished:
    """`status` is None if the deadline or `give_up` ended it; `output` is the last 64 KB of both streams."""

    status: int | None
    output: str
    seconds: float

    @property
    def last_lines(self) -> str:
        """What says why, as a rule. Stack traces do not."""
        lines = [line for line in _FRAME.sub("", self.output).splitlines() if line.strip()]
        return "\n".join(lines[-15:])


def run(
    command: Sequence[str | Path],
    *,
    tick: Tick = silent,
    deadline: float | None = None,
    give_up: Callable[[], bool] = bool,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Finished:
    """Run to the end, to the deadline (seconds) or until `give_up` (asked every 20 ms) says that it is in vain.

    `env` is added to ours. Raises FileNotFoundError if there is no such program.
    """
    start = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [*dies_with_us(), *(str(word) for word in command)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            start_new_session=True,
        )
        status: int | None = None
        try:
            ticked = start
            while status is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    status = process.wait(_POLL)
                now = time.monotonic()
                if status is None and ((deadline is not None and now - start >= deadline) or give_up()):
                    break
                if now - ticked >= _TICK:
                    ticked = now
                    tick(now - start)
        finally:
            _end(process)
        size = output.seek(0, os.SEEK_END)
        output.seek(max(0, size - 65536))
        said = output.read().decode(errors="replace")
    return Finished(status, said, time.monotonic() - start)


def dies_with_us() -> list[str]:
    """The start of a command, on Linux: the kernel ends the program when this process is killed, kill -9 included."""
    return [setpriv, "--pdeathsig", "KILL", "--"] if (setpriv := shutil.which("setpriv")) else []


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
