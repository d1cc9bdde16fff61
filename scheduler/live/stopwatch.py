"""How long each step of one cycle took.

The one rule: one for each cycle; it is written in the thread that decides, and read when the cycle has ended.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
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

    def step(self, kind: Kind, name: str, /) -> AbstractContextManager[object]:
        """Measure one step: a :class:`scheduler.framework.tracing.Step`."""
        return _Running(self, kind, name)


class _Running:
    """A step that runs. A class and no generator: there are several a job in every cycle."""

    __slots__ = ("_kind", "_name", "_started", "_watch")

    def __init__(self, watch: Stopwatch, kind: Kind, name: str) -> None:
        self._watch, self._kind, self._name = watch, kind, name

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        took = time.perf_counter() - self._started
        if self._kind == "job":
            self._watch.jobs += took
        else:
            self._watch.laps.append(Lap(self._kind, self._name, took))
