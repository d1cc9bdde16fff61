"""Run a program that may take long, report its progress, and never leave it running.

No program outlives `run`: it exits by itself, or is killed at its deadline, at Ctrl-C or at the death of this process.

A cluster's programs are found by name and arguments: no process id is stored on disk, because it could belong to
another process by now.
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

import psutil

_PROGRAMS = frozenset({"etcd", "kube-apiserver", "kube-controller-manager", "kwok", "kwok-controller", "kwokctl"})

_END_SECONDS = 5.0


def end_programs(home: Path) -> None:
    """Kill the cluster's programs that were started with this directory in their arguments.

    They need no graceful end.
    """
    found = programs_of(home)
    for process in found:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    end = time.monotonic() + _END_SECONDS
    while any(runs(process.pid) for process in found) and time.monotonic() < end:
        time.sleep(0.01)


def runs(pid: int) -> bool:
    """Whether the process runs.

    A zombie whose last thread has ended holds no port, memory or file and does not count.
    """
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1
    except psutil.NoSuchProcess:  # includes psutil.ZombieProcess
        return False


def programs_of(home: Path) -> list[psutil.Process]:
    """Return the running programs that have this directory in their arguments."""
    path_prefix = f"{home}/"
    return [
        process
        for process in psutil.process_iter(["name", "cmdline"])
        if Path((process.info["cmdline"] or [""])[0]).name in _PROGRAMS
        and any(path_prefix in word for word in process.info["cmdline"])
    ]


Tick = Callable[[float], None]
"""Called every five seconds with the seconds since the start."""

_FRAME = re.compile(r"^\S+\n\t\S+:\d+(\n|$)", re.MULTILINE)
"""A frame of a Go stack trace. kubeadm prints a trace below its error that would hide the error."""
_POLL = 0.02
_TICK = 5.0


def silent(_seconds: float) -> None:
    """Ignore a tick."""


@dataclass(frozen=True, slots=True)
class Finished:
    """Result: `status` is None after a deadline or `give_up`; `output` is the last 64 KB of both streams."""

    status: int | None
    output: str
    seconds: float

    @property
    def last_lines(self) -> str:
        """The last lines of the output, which usually state the reason, without stack traces."""
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
    """Run a program until it ends, until the deadline, or until `give_up` returns True.

    Args:
        command: Program and arguments.
        tick: Called every five seconds.
        deadline: Seconds; None for no deadline.
        give_up: Called every 20 ms.
        env: Variables added to ours.
        cwd: Working directory.

    Raises:
        FileNotFoundError: the program does not exist.
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
        text = output.read().decode(errors="replace")
    return Finished(status, text, time.monotonic() - start)


def dies_with_us() -> list[str]:
    """Return a command prefix: on Linux the kernel kills the program when this process dies, even by kill -9."""
    return [setpriv, "--pdeathsig", "KILL", "--"] if (setpriv := shutil.which("setpriv")) else []


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
