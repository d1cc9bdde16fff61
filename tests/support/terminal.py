"""A program on a pseudo-terminal: what it prints and what a user types."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

PATIENCE = 600.0
"""Seconds after which a program hangs, however much else the machine has to do."""
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Terminal:
    """Runs a command; `shown` is all that it has written, colours left out. A context manager: it ends the command."""

    def __init__(self, command: Sequence[str | Path], *, cwd: Path, env: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        environment = {**env, "TERM": "xterm", "COLUMNS": "200"}
        self._process = subprocess.Popen(
            command, cwd=cwd, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        self._raw = b""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait(10)
        os.close(self._ours)

    @property
    def shown(self) -> str:
        """What was written so far, with carriage returns where lines were written anew."""
        return _CONTROL.sub("", self._raw.decode(errors="replace"))

    def wait_for(self, pattern: str, seconds: float = PATIENCE) -> re.Match[str]:
        """Until that was shown. Raises AssertionError with all that was."""
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self.shown)):
            assert self._read(deadline - time.monotonic()), f"never shown: {pattern}\n{self.shown}"
        return found

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._ours, text.encode())

    def interrupt(self) -> None:
        """Ctrl-C."""
        self._process.send_signal(signal.SIGINT)

    def ended(self) -> int:
        """The exit status, once the program has ended. Raises AssertionError with all that was shown if it does not."""
        deadline = time.monotonic() + PATIENCE
        while self._read(deadline - time.monotonic()):
            pass
        try:
            return self._process.wait(max(1.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it has not ended\n{self.shown}") from None

    def _read(self, seconds: float) -> bool:
        """Take what is there; False when nothing comes any more or the time is over."""
        if not select.select([self._ours], [], [], max(0.0, seconds))[0]:
            return False
        try:
            got = os.read(self._ours, 65536)
        except OSError:  # the last one has closed the terminal
            return False
        self._raw += got
        return bool(got)
