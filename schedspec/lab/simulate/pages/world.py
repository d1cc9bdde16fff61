"""Read a result file of `simulate` into the data of a page: tables, and amounts over time as step functions.

Times are exact up to a number of changes, and rounded beyond it.

The limits below and the number of queues bound the memory of a world. Only the changes of held amounts and the waits
grow with the load: by a few numbers for each job.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import records
from ..columns import InputError

Floats = npt.NDArray[np.float64]


class Changes:
    def __init__(self) -> None:
        self._times, self._amounts = array("d"), array("d")

    def add(self, at: float, amount: float) -> None:
        self._times.append(at)
        self._amounts.append(amount)

    def steps(self, start: float, most: int, span: float) -> StepSeries:
        """Return the amount over time, in seconds after `start`.

        `most`: with more changes than this, times are rounded up to multiples of `span / most`.
        """
        times, amounts = np.array(self._times) - start, np.array(self._amounts)
        times = np.round(times, 3)
        rounded = 0.0
        if len(np.unique(times)) > most:
            rounded = span / most
            times = np.ceil(times / rounded) * rounded
        order = np.argsort(times, kind="stable")
        times, amounts = times[order], amounts[order]
        distinct, first = np.unique(times, return_index=True)
        sums = np.add.reduceat(amounts, first) if len(first) else amounts
        changed = np.abs(sums) > 1e-9
        return StepSeries(distinct[changed], np.cumsum(sums)[changed], rounded)


@dataclass(frozen=True, slots=True)
class StepSeries:
    """An amount over time: `values[i]` from `times[i]` to `times[i + 1]`; 0 before the first."""

    times: Floats
    values: Floats
    rounded: float = 0.0
    """Seconds to which times are rounded; 0 if they are exact."""

    @classmethod
    def of(cls, times: Sequence[float], values: Sequence[float]) -> StepSeries:
        """Return the steps of samples. Equal neighbouring samples are one step."""
        at, amounts = np.array(times, dtype=float), np.array(values, dtype=float)
        keep = np.concatenate(([True], np.diff(amounts) != 0)) if len(amounts) else np.zeros(0, bool)
        return cls(np.round(at[keep], 3), amounts[keep])

    def means(self, edges: Floats) -> Floats:
        """Return the mean between each two neighbouring edges."""
        if not len(self.times):
            return np.zeros(len(edges) - 1)
        last = max(float(edges[-1]), float(self.times[-1])) + 1.0
        times = np.append(self.times, last)
        integral = np.concatenate(([0.0], np.cumsum(np.diff(times) * self.values)))
        found: Floats = np.diff(np.interp(edges, times, integral)) / np.diff(edges)
        return found

    def parting(self, other: StepSeries) -> float | None:
        """Return the first time at which two amounts differ; None if they never do."""
        times = np.union1d(self.times, other.times)
        apart = times[np.abs(self._at(times) - other._at(times)) > 1e-9]
        return float(apart[0]) if len(apart) else None

    def _at(self, times: Floats) -> Floats:
        found: Floats = np.append(0.0, self.values)[np.searchsorted(self.times, times, side="right")]
        return found

    def packed(self) -> dict[str, list[Any]]:
        """Return differences of times (milliseconds) and of values (thousandths): small whole numbers."""
        return {"t": _differences(self.times), "v": _differences(self.values)}


def _differences(values: Floats) -> list[Any]:
    found: list[Any] = np.diff(np.round(values * 1000).astype(np.int64), prepend=0).tolist()
    return found


WORST = 20
"""Maximum number of jobs whose wait is explained: those that waited longest."""
SERIES = 8
"""Maximum number of colours in a chart. If there are more queues, the last colour stands for all remaining ones."""
CHANGES = 400_000
"""Maximum number of changes, all queues together, whose times a page holds exactly."""
FINDINGS = 50
"""Maximum number of findings that are shown."""
NODES = "(nodes)"
"""In place of a preemptor, for pods that were lost with their node."""


@dataclass(slots=True)
class LossRow:
    """The pods that one queue lost to another."""

    victim: str
    preemptor: str
    times: int = 0
    """Number of decisions: evictions of one job at one moment for one preemptor count once."""
    pods: int = 0
    card_hours: float = 0.0
    """Lost work in card-hours."""


@dataclass(slots=True)
class QueueCourse:
    """One queue over the time of a run."""

    name: str
    held: Changes = field(default_factory=Changes)
    waiting: Changes = field(default_factory=Changes)
    samples: dict[str, tuple[list[float], list[float]]] = field(default_factory=dict)
    waits: array[float] = field(default_factory=lambda: array("d"))
    jobs: int = 0


@dataclass(slots=True)
class ResultWorld:
    title: str
    run: Any = None
    end: Any = None
    queues: dict[str, QueueCourse] = field(default_factory=dict)
    losses: dict[tuple[str, str], LossRow] = field(default_factory=dict)
    worst: list[records.JobRecord] = field(default_factory=list)
    """The jobs that waited longest, as their records, longest first."""
    waited: dict[str, float] = field(default_factory=dict)
    """Job → seconds until its first start, for the comparison of two worlds; empty unless `read` keeps waits."""
    start: float = 0.0
    findings: list[records.Finding] = field(default_factory=list)
    """The first findings of monitors; `found` is the number of all findings."""
    found: int = 0

    @property
    def span(self) -> float:
        """Seconds from the first submission to the end of the run."""
        return max(float(self.end.at) - self.start, 1.0)

    @property
    def metrics(self) -> Mapping[str, Any]:
        """The metrics of the run's last line."""
        found: Mapping[str, Any] = self.end.metrics
        return found

    def by_use(self) -> list[str]:
        """Return the queues; those that used the most card-hours come first."""
        used = self.metrics["queues"]
        return sorted(self.queues, key=lambda name: (-used.get(name, {}).get("used_card_hours", 0.0), name))

    def steps(self, name: str, start: float, kind: str) -> StepSeries:
        """Return a queue's `held` or `waiting`, or a sampled amount such as `deserved`, after `start`."""
        queue = self.queues[name]
        if kind in ("held", "waiting"):
            changes: Changes = getattr(queue, kind)
            return changes.steps(start, CHANGES // (2 * len(self.queues)), self.span)
        times, values = queue.samples.get(kind, ([], []))
        return StepSeries.of([at - start for at in times], values)


SAMPLED = ("deserved", "guarantee", "capability", "requested")


def read(path: Path, title: str, *, keeps_waits: bool = False) -> ResultWorld:
    """Read a result file.

    `keeps_waits`: whether to keep how long each job waited, for a comparison.

    Raises:
        ValueError: The file is not a result, or was cut off (InputError).
    """
    reader = _Reader(ResultWorld(title), keeps_waits=keeps_waits)
    handlers: Mapping[type, Callable[[Any], None]] = {
        records.Run: reader.add_run,
        records.Sample: reader.add_sample,
        records.JobRecord: reader.add_job,
        records.Finding: reader.add_finding,
        records.End: reader.add_end,
    }
    for record in records.read_result(path):
        if type(record) in handlers:
            handlers[type(record)](record)
    if reader.world.end is None or reader.world.run is None:
        raise InputError(str(path), "has no last line with metrics: the run was cut off", "run it again")
    return reader.close()


def ends(path: Path) -> tuple[Any, Any]:
    """Return the first and the last record of a result file; None for the last one of a run that was cut off."""
    run = end = None
    for record in records.read_result(path):
        run = record if isinstance(record, records.Run) else run
        end = record if isinstance(record, records.End) else end
    return run, end


class _Reader:
    """Reads the records of a result file in their order."""

    def __init__(self, world: ResultWorld, *, keeps_waits: bool) -> None:
        self.world, self._keeps_waits = world, keeps_waits
        self._longest: list[tuple[float, str, records.JobRecord]] = []
        self._stuck: list[tuple[float, str, records.JobRecord]] = []
        """The jobs that never started: those that were submitted first."""
        self._first = math.inf

    def add_run(self, run: records.Run) -> None:
        self.world.run = run

    def add_sample(self, sample: records.Sample) -> None:
        for name, amounts in sample.queues.items():
            samples = self._queue(name).samples
            for kind in SAMPLED:
                amount = getattr(amounts, kind)
                if amount is not None:
                    times, values = samples.setdefault(kind, ([], []))
                    times.append(sample.at)
                    values.append(amount)

    def add_job(self, job: records.JobRecord) -> None:
        self._first = min(self._first, job.submitted)
        queue = self._queue(job.queue)
        queue.jobs += 1
        _record_waiting(queue.waiting, job)
        for began, until, cards in job.held:
            queue.held.add(began, cards)
            queue.held.add(until, -cards)
        for eviction in job.evictions:
            self._add_eviction(job, eviction)
        if job.wait is None:
            _keep(self._stuck, (-job.submitted, job.job, job))
            return
        queue.waits.append(job.wait)
        _keep(self._longest, (job.wait, job.job, job))
        if self._keeps_waits:
            self.world.waited[job.job] = job.wait

    def add_finding(self, finding: records.Finding) -> None:
        self.world.found += 1
        if len(self.world.findings) < FINDINGS:
            self.world.findings.append(finding)

    def add_end(self, end: records.End) -> None:
        self.world.end = end

    def close(self) -> ResultWorld:
        world = self.world
        world.start = self._first if self._first < math.inf else world.end.at
        ended = world.end.at
        stuck = [(ended - job.submitted, name, job) for _, name, job in self._stuck]
        world.worst = [job for wait, _, job in heapq.nlargest(WORST, [*self._longest, *stuck]) if wait > 0]
        return world

    def _queue(self, name: str) -> QueueCourse:
        return self.world.queues.setdefault(name, QueueCourse(name))

    def _add_eviction(self, job: records.JobRecord, eviction: records.JobEviction) -> None:
        preemptor = eviction.preemptor_queue or (job.queue if eviction.preemptor else NODES)
        loss = self.world.losses.setdefault((job.queue, preemptor), LossRow(job.queue, preemptor))
        loss.times += 1
        loss.pods += eviction.pods
        loss.card_hours += eviction.lost / 3600


def _keep(heap: list[tuple[float, str, records.JobRecord]], item: tuple[float, str, records.JobRecord]) -> None:
    """Add an item to a heap of the `WORST` largest items."""
    (heapq.heappush if len(heap) < WORST else heapq.heappushpop)(heap, item)


def _record_waiting(waiting: Changes, job: records.JobRecord) -> None:
    """Count a job as waiting from its submission to its end, except while it holds cards (or runs, if it has none)."""
    waiting.add(job.submitted, 1)
    runs = [(began, until) for began, until, _ in job.held]
    if not job.cards and job.started is not None:
        runs = [(job.started, math.inf if job.ended is None else job.ended)]
    for began, until in runs:
        waiting.add(began, -1)
        if until < math.inf:
            waiting.add(until, 1)
    if job.ended is not None:
        waiting.add(job.ended, -1)
