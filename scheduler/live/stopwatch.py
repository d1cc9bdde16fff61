"""Measure the steps of one cycle.

There is one stopwatch per cycle. The deciding thread writes it, and it is read after the cycle.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import NamedTuple

from ..framework.tracing import Kind


class Lap(NamedTuple):
    """A finished step and its seconds."""

    kind: Kind
    name: str
    seconds: float


class Stopwatch:
    """The steps of one cycle.

    `laps` are actions and plugins in the order in which they ended; empty if the last decisions still hold. `jobs` is
    the total CPU time of all attempts of jobs, in seconds, which sets the budgets of later cycles. Wall time would be
    wrong there: while other processes keep the machine busy, jobs would be refused as too costly.
    """

    def __init__(self) -> None:
        self.laps: list[Lap] = []
        self.jobs = 0.0
        self.trying = ""
        """Key of the job that the cycle is trying; empty between attempts."""

    def step(self, kind: Kind, name: str, job: str = "", /) -> AbstractContextManager[object]:
        """Measure one step: a `scheduler.framework.tracing.Step`."""
        return _RunningStep(self, kind, name, job)


class _RunningStep:
    """A running step. It is a class instead of a generator for speed: every cycle has several steps per job."""

    __slots__ = ("_job", "_kind", "_name", "_started", "_watch")

    def __init__(self, watch: Stopwatch, kind: Kind, name: str, job: str) -> None:
        self._watch, self._kind, self._name, self._job = watch, kind, name, job

    def __enter__(self) -> None:
        self._watch.trying = self._job
        self._started = self._now()

    def __exit__(self, *_: object) -> None:
        took = self._now() - self._started
        self._watch.trying = ""
        if self._kind == "job":
            self._watch.jobs += took
        else:
            self._watch.laps.append(Lap(self._kind, self._name, took))

    def _now(self) -> float:
        return time.thread_time() if self._kind == "job" else time.perf_counter()
