"""Wrap a scheduler under test on a cluster where objects of scenarios have other real names.

The scheduler receives policies with the real names. Its messages, logs and recordings are returned with the names in
the scenarios.
"""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..api.errors import PolicyRefusedError, SchedulerDiedError
from ..api.names import Names
from .adapter import Scheduler


class RenamedScheduler(Scheduler):
    """A scheduler behind `names`. Not thread-safe."""

    def __init__(self, scheduler: Scheduler, names: Names) -> None:
        self._scheduler, self._names = scheduler, names

    def launch(self, policy: str) -> None:
        with self._plain_errors():
            self._scheduler.launch(self._names.policy(policy))

    def start(self, policy: str) -> None:
        with self._plain_errors():
            self._scheduler.start(self._names.policy(policy))

    def stop(self) -> None:
        self._scheduler.stop()

    def handle(self) -> dict[str, Any]:
        return self._scheduler.handle()

    def attach(self, handle: dict[str, Any]) -> None:
        self._scheduler.attach(handle)

    def check(self) -> None:
        with self._plain_errors():
            self._scheduler.check()

    def use_policy(self, text: str) -> str:
        with self._plain_errors():
            return self._scheduler.use_policy(self._names.policy(text))

    def keep_recording(self, since: float, to: Path) -> bool:
        kept = self._scheduler.keep_recording(since, to)
        for segment in to.glob("*.gz") if kept else ():
            segment.write_bytes(gzip.compress(self._names.plain(gzip.decompress(segment.read_bytes()))))
        return kept

    def last_lines(self, count: int) -> Sequence[str]:
        return [self._names.text(line) for line in self._scheduler.last_lines(count)]

    @contextlib.contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except PolicyRefusedError as problem:
            raise PolicyRefusedError(self._names.text(str(problem)), self._names.text(problem.message)) from None
        except SchedulerDiedError as problem:
            raise SchedulerDiedError(self._names.text(str(problem))) from None
