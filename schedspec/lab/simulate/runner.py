"""Run a load through a `Simulation`, and write its records while it runs."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import IO, Any, Protocol

import msgspec

from ...scheduler.inputs import Input
from ...scheduler.model.cluster import Cluster
from ...scheduler.model.times import timestamp
from ...scheduler.policy.model import Policy
from ...virtual import Arrival, Settings, Simulation, SimulationError
from .bookkeeping import Bookkeeping
from .columns import LAST
from .errors import InputError
from .metrics import Metrics
from .records import End, Finding, Run
from .scene import Scene

_REDRAW = 0.2
"""Seconds between two progress lines."""
_BAR = 20
"""Characters of the bar."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: its last record, and why it could not continue (`problem`)."""

    end: End
    problem: str = ""
    stuck: int = 0
    """Jobs that wait at the end."""
    examples: tuple[str, ...] = ()
    """Some of the jobs that wait, with their reasons."""


class Monitor(Protocol):
    """A judge of a run that is independent of the scheduler."""

    def observe(self, happened: object) -> None:
        """Judge the next input of the core or outcome of the simulation."""

    def close(self) -> Sequence[Finding]:
        """Finish, and return all findings."""


def run(
    policy: Policy,
    scene: Scene,
    load: Iterable[Arrival],
    header: Run,
    *,
    settings: Settings,
    out: Path,
    start: float,
    until: float,
    begin: Callable[[Simulation], object] | None = None,
    cluster: Cluster | None = None,
    monitor: Monitor | None = None,
    on_input: Callable[[Input], None] | None = None,
) -> Outcome:
    """Simulate a load.

    `begin` shows a state to the simulation first, on a `cluster` made for it. `monitor` judges every input and
    outcome, and `on_input` receives every input of the core.

    Raises InputError if the result file cannot be written.
    """

    def see(given: Input) -> None:
        for receive in (monitor.observe if monitor is not None else None, on_input):
            if receive is not None:
                receive(given)

    try:
        with out.open("wb") as file:
            simulation = partial(Simulation, policy, settings=settings, start=start, cluster=cluster, on_input=see)
            return _run(
                simulation,
                scene,
                load,
                header,
                file=file,
                until=until,
                begin=begin or (lambda _: None),
                monitor=monitor,
            )
    except OSError as error:
        raise InputError(str(out), f"cannot be written: {error.strerror}", "name another file with --out") from error


def _run(
    make: Callable[..., Simulation],
    scene: Scene,
    load: Iterable[Arrival],
    header: Run,
    *,
    file: IO[bytes],
    until: float,
    begin: Callable[[Simulation], object],
    monitor: Monitor | None,
) -> Outcome:
    encode = msgspec.json.Encoder().encode

    def write(record: Any) -> None:
        file.write(encode(record) + b"\n")

    write(header)
    metrics = Metrics(header.cards)
    books = Bookkeeping(write, metrics, header.resource, sample=header.sample, capacity=header.cards)

    def process(outcome: Any) -> None:
        books.process(outcome)
        if monitor is not None:
            monitor.observe(outcome)

    simulation = make(emit=process)
    for kind, items in (("Node", scene.nodes), ("Queue", scene.queues), ("PriorityClass", scene.priority_classes)):
        for item in items:
            simulation.put(kind, item)
    begin(simulation)
    interrupted, problem = False, ""
    with _interruptions() as is_interrupted, _progress(books, header.jobs) as show:
        try:
            for now in simulation.instants(load, min(until, LAST)):
                show(now)
                if is_interrupted():
                    interrupted = True
                    break
        except SimulationError as error:
            problem = str(error)
    is_cut = until <= LAST and not interrupted and not problem
    end = max(until, simulation.now) if is_cut else simulation.now
    books.close(end)
    for finding in monitor.close() if monitor is not None else ():
        write(finding)
    last = End(end, interrupted or bool(problem), books.cycles, metrics.result(end))
    write(last)
    return Outcome(last, problem, books.stuck, tuple(books.examples))


def progress_line(now: float, over: int, jobs: int | None, seconds: float) -> str:
    """Return the progress line: a bar, the virtual date, the number of ended jobs, the rate and the time left.

    >>> progress_line(0.0, 50, 200, 10.0)
    '[#####               ] 1970-01-01T00:00:00Z  50 of 200 jobs, 5/s, 30 s left'
    """
    rate = over / seconds if seconds else 0.0
    left = f", {(jobs - over) / rate:.0f} s left" if jobs and rate else ""
    filled = _BAR * over // jobs if jobs else 0
    bar = f"[{'#' * filled:<{_BAR}}] " if jobs else ""
    of = f" of {jobs}" if jobs else ""
    return f"{bar}{timestamp(now)}  {over}{of} jobs, {rate:.0f}/s{left}"


@contextmanager
def _interruptions() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether Ctrl-C was pressed. A second Ctrl-C ends the process at once."""
    pressed = False

    def press(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
        nonlocal pressed
        pressed = True
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, press)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _progress(books: Bookkeeping, jobs: int | None) -> Iterator[Callable[[float], None]]:
    """Yield a function that redraws the progress line on a terminal: virtual date, jobs done, rate, time left."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    began = drawn = time.monotonic()

    def show(now: float) -> None:
        nonlocal drawn
        clock = time.monotonic()
        if clock - drawn < _REDRAW:
            return
        drawn = clock
        sys.stderr.write(f"\r{progress_line(now, books.over, jobs, clock - began)}\x1b[K")
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\r\x1b[K")
