"""Run a load through a `Simulation`, and write its records while it runs."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import IO, Any

import msgspec

from ...scheduler.inputs import Input
from ...scheduler.model.cluster import Cluster
from ...scheduler.model.printable import drawable
from ...scheduler.model.times import timestamp
from ...scheduler.policy.model import Policy
from ...virtual import Arrival, Settings, Simulation, SimulationError
from .bookkeeping import Bookkeeping
from .columns import LAST, InputError
from .metrics import Metrics
from .monitored import Monitors
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
    findings: tuple[Finding, ...] = ()
    """The findings of monitors."""


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
    monitors: Monitors | None = None,
    on_input: Callable[[Input], None] | None = None,
) -> Outcome:
    """Simulate a load.

    `begin` shows a state to the simulation first, on a `cluster` made for it. `monitors` judge every input and
    outcome, and `on_input` receives every input of the core.

    Raises InputError if the result file cannot be written.
    """
    try:
        with out.open("wb") as file:
            return _run(
                partial(Simulation, policy, settings=settings, start=start, cluster=cluster),
                scene,
                load,
                header,
                file=file,
                until=until,
                begin=begin or (lambda _: None),
                monitors=monitors,
                on_input=on_input,
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
    monitors: Monitors | None,
    on_input: Callable[[Input], None] | None,
) -> Outcome:
    encode = msgspec.json.Encoder().encode

    def write(record: Any) -> None:
        file.write(encode(record) + b"\n")

    write(header)
    metrics = Metrics(header.cards)
    books = Bookkeeping(write, metrics, header.resource, sample=header.sample, capacity=header.cards)

    def process(outcome: Any) -> None:
        books.process(outcome)
        if monitors is not None:
            monitors.observe(outcome.at, outcome)

    def see(given: Input) -> None:
        if monitors is not None:
            monitors.observe(simulation.now, given)
        if on_input is not None:
            on_input(given)

    simulation = make(emit=process, on_input=see)
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
    findings = [Finding.of(found) for found in monitors.close()] if monitors is not None else []
    for finding in findings:
        write(finding)
    last = End(end, interrupted or bool(problem), books.cycles, metrics.result(end))
    write(last)
    return Outcome(last, problem, books.stuck, tuple(books.examples), tuple(findings))


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
    line, began = drawable(sys.stderr), time.monotonic()
    drawn = began

    def show(now: float) -> None:
        nonlocal drawn
        clock = time.monotonic()
        if clock - drawn < _REDRAW:
            return
        drawn = clock
        line.write(f"\r{progress_line(now, books.over, jobs, clock - began)}\x1b[K")
        line.flush()

    try:
        yield show
    finally:
        line.write("\r\x1b[K")
