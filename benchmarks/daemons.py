"""Run another scheduler as a process of its own, for comparison."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from schedspec.schedulers.daemon import Daemon


@contextlib.contextmanager
def running(title: str, log: Path, command: Sequence[str | Path]) -> Iterator[psutil.Process]:
    """Run a program; yield its process at once, before its caches are filled.

    Raises:
        SchedulerDiedError: the program ended before the block did.
    """
    daemon = Daemon(title, log)
    daemon.launch(command)
    try:
        yield psutil.Process(daemon.pid)
        daemon.check()
    finally:
        daemon.stop()
