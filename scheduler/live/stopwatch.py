"""How long each step of one cycle took.

The one rule: one for each cycle; it is written in the thread that decides, and read when the cycle has ended.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..framework.tracing import Kind


@dataclass(frozen=True, slots=True)
class Lap:
    """One step that ended, and its seconds."""

    kind: Kind
    name: str
    seconds: float


class Stopwatch:
    """``laps`` are actions and plugins in the order in which they ended; none where a cycle had nothing to decide anew.
    ``jobs`` is how many seconds all attempts of jobs took together.
    """

    def __init__(self) -> None:
        self.laps: list[Lap] = []
        self.jobs = 0.0

    @contextmanager
    def step(self, kind: Kind, name: str, /) -> Iterator[None]:
        """Measure one step: a :class:`scheduler.framework.tracing.Step`."""
        started = time.perf_counter()
        try:
            yield
        finally:
            took = time.perf_counter() - started
            if kind == "job":
                self.jobs += took
            else:
                self.laps.append(Lap(kind, name, took))
