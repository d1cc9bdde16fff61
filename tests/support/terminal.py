"""Run a program on a pseudo-terminal: read its output, and type as a user."""

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

TIMEOUT = 600.0
"""Seconds after which a program is taken to hang, even on a busy machine."""
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Terminal:
    """Run a command; `shown` is its output without colours. The context manager ends the command."""

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
        """Return the output so far, with carriage returns where a line was rewritten."""
        return _CONTROL.sub("", self._raw.decode(errors="replace"))

    def wait_for(self, pattern: str, seconds: float = TIMEOUT) -> re.Match[str]:
        """Wait until the output matches a pattern. Raises AssertionError with the whole output."""
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self.shown)):
            assert self._read(deadline - time.monotonic()), f"never shown: {pattern}\n{self.shown}"
        return found

    def type(self, text: str) -> None:
        """Type a text."""
        os.write(self._ours, text.encode())

    def interrupt(self) -> None:
        """Send SIGINT, as Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)

    def ended(self) -> int:
        """Wait for the end of the program; return its exit status. Raises AssertionError with the whole output."""
        deadline = time.monotonic() + TIMEOUT
        while self._read(deadline - time.monotonic()):
            pass
        try:
            return self._process.wait(max(1.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the program has not ended\n{self.shown}") from None

    def _read(self, seconds: float) -> bool:
        """Read available output. Return False at the end of the output, or after `seconds` without output."""
        if not select.select([self._ours], [], [], max(0.0, seconds))[0]:
            return False
        try:
            got = os.read(self._ours, 65536)
        except OSError:  # the last process has closed the terminal
            return False
        self._raw += got
        return bool(got)
