"""Read a trace: a CSV file with one job a row, plain or compressed with gzip.

1. The file is read row by row; each row becomes a `Job` or a `RowError` with line, column and value.
2. The jobs are sorted by the time of their submission, stably: jobs of one second keep the order of their lines.
3. `arrivals` makes workloads from the jobs. A job is named after its line, so that jobs of equal times keep that order.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from ...scheduler.model.input_files import open_input
from ...scheduler.reasons.text import count as count_of
from ...virtual import Arrival, OnEviction, Workload
from . import columns

_GZIP = b"\x1f\x8b"
"""The first bytes of a file that gzip wrote."""
_NO_QUEUE = "default"
_SEPARATORS = (",", "|", ";", "\t")
_OPTIONAL = (("started", columns.PRESETS["openb"]["started"]),)
"""Fields of presets that a copy of the trace may lack."""
_ASSUMED = (
    "no column says when jobs started: each run time is the whole time from submission to end, its wait included "
    "(if a column has the start, add started=COLUMN to --map)"
)


@dataclass(slots=True)
class RowProblem:
    """Bad rows of one cause that were left out."""

    first: columns.RowError
    rows: int = 1


@dataclass(slots=True)
class Trace:
    """The jobs of a trace, by time of submission, and the problems of its rows."""

    source: str
    jobs: list[columns.TraceJob] = field(default_factory=list)
    skipped: dict[tuple[str, str], RowProblem] = field(default_factory=dict)
    """Bad rows that were left out, by column and problem."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Queues whose names Kubernetes does not permit: name in the trace → name in the run."""
    assumed: str = ""
    """What the trace does not say and the run assumes."""
    unsorted: int = 0
    """Rows that are earlier than the row before them."""

    def skip(self, error: columns.RowError) -> None:
        known = self.skipped.get((error.column, error.problem))
        if known is None:
            self.skipped[error.column, error.problem] = RowProblem(error)
        else:
            known.rows += 1

    def notes(self) -> Iterator[str]:
        """Yield what a user should know about the rows: what was left out, renamed, assumed and sorted."""
        if self.skipped:
            yield f"{count_of(sum(cause.rows for cause in self.skipped.values()), 'bad row')} left out"
            for cause in sorted(self.skipped.values(), key=lambda cause: -cause.rows):
                yield f"  {cause.rows}: {cause.first.summary}; the first: {cause.first.where}, {cause.first.value!r}"
        if self.renamed:
            names = ", ".join(f"{was} → {now}" for was, now in sorted(self.renamed.items()))
            yield f"queues renamed, because Kubernetes permits only lower-case letters, digits and -: {names}"
        if self.assumed:
            yield self.assumed
        if self.unsorted:
            yield f"sorted by submission; {count_of(self.unsorted, 'row')} earlier than the row before"

    @property
    def queues(self) -> list[str]:
        return sorted({job.queue for job in self.jobs})


def read_trace(
    path: Path,
    mapping: Mapping[str, str],
    resource: str,
    *,
    skip_bad: bool = False,
    queues: Iterable[str] | None = None,
) -> Trace:
    """Read a trace.

    `mapping`: field → column; see `columns.FIELDS`. `skip_bad`: leave out and count bad rows instead of raising the
    first. `queues`: the queues that exist; None if the trace defines them.

    Raises:
        InputError: the file cannot be read, lacks a column, or has no job.
        RowError: a row is bad.
    """
    columns.check_mapping(mapping)
    try:
        with open_text(path) as file:
            trace = _read(file, str(path), mapping, _JobReader(mapping, resource, queues), skip_bad=skip_bad)
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise columns.unreadable(path, error) from error
    if not trace.jobs:
        first = next(iter(trace.skipped.values()), None)
        why = f"all rows are bad; the first: {first.first}" if first is not None else "has no job"
        raise columns.InputError(str(path), why, "name a file with a header and one job a row")
    trace.jobs.sort(key=lambda job: job.submitted)
    return trace


@contextmanager
def open_text(path: Path) -> Iterator[IO[str]]:
    """Open a CSV file, plain or compressed with gzip. Raises OSError."""
    with open_input(path, pipes=True) as file:
        is_packed = path.suffix == ".gz" or file.peek(len(_GZIP)).startswith(_GZIP)
        unpacked = gzip.GzipFile(fileobj=file) if is_packed else file
        with io.TextIOWrapper(unpacked, encoding="utf-8-sig", newline="") as text:
            yield text


def _read(file: IO[str], source: str, mapping: Mapping[str, str], cells: _JobReader, *, skip_bad: bool) -> Trace:
    line = file.readline()
    if not line.strip():
        raise columns.InputError(source, "is empty", "name a file with a header and one job a row")
    separator = _separator(line, mapping)
    header = next(csv.reader([line], delimiter=separator))
    mapping = {
        name: column
        for name, column in mapping.items()
        if (name, column) != ("duration", columns.FOREVER) or column in header
    }
    mapping = {name: column for name, column in mapping.items() if (name, column) not in _OPTIONAL or column in header}
    for name, column in mapping.items():
        if column not in header:
            raise columns.InputError(
                f"{source}:1", f"no column {column} (for {name})", f"columns are {', '.join(header)}"
            )
        if header.count(column) > 1:
            raise columns.InputError(
                f"{source}:1", f"{header.count(column)} columns are called {column}", "rename one of them"
            )
    places = {name: header.index(column) for name, column in mapping.items()}
    trace, last = Trace(source, renamed=cells.renamed), 0.0
    if "ended" in places and "started" not in places:
        trace.assumed = _ASSUMED
    groups: dict[str, int] = {}
    rows = csv.reader(file, delimiter=separator, strict=True)  # else an open quotation hides all later rows
    for row in rows:
        if not row:
            continue
        try:
            if any(row[len(header) :]):
                place, remedy = (source, rows.line_num + 1), "quote a cell that has the separator"
                raise columns.RowError(
                    place, header[-1], separator.join(row), problem="is followed by more cells", remedy=remedy
                )
            job = cells.job(row, places, source, rows.line_num + 1)
            same = groups.get(job.group) if job.group else None
            if same is not None:
                trace.jobs[same] = cells.joined(trace.jobs[same], job, source)
                continue
        except columns.RowError as error:
            if not skip_bad:
                raise
            trace.skip(error)
            continue
        if job.group:
            groups[job.group] = len(trace.jobs)
        trace.unsorted += job.submitted < last
        last = job.submitted
        trace.jobs.append(job)
    return trace


def _separator(header: str, mapping: Mapping[str, str]) -> str:
    """Return the separator with which the header has the most columns of the mapping; a comma if several do."""

    def found(separator: str) -> int:
        return len({*next(csv.reader([header], delimiter=separator))} & {*mapping.values()})

    return max(_SEPARATORS, key=found)


class _JobReader:
    """Makes jobs from rows. Equal parts are shared, because a trace may have a million rows."""

    def __init__(self, mapping: Mapping[str, str], resource: str, queues: Iterable[str] | None) -> None:
        self._columns, self._resource = mapping, resource
        self._known = None if queues is None else frozenset(queues)
        self._shared: dict[Any, Any] = {}
        self._names: dict[str, str] = {}
        self.renamed: dict[str, str] = {}

    def job(self, row: list[str], places: Mapping[str, int], source: str, line: int) -> columns.TraceJob:
        def cell(name: str, read: Callable[[str], Any], default: Any = None) -> Any:
            if name not in places:
                return default
            text = row[places[name]].strip() if places[name] < len(row) else ""
            try:
                return read(text)
            except columns.CellError as error:
                raise columns.RowError(
                    (source, line), self._columns[name], text, problem=error.problem, remedy=error.remedy
                ) from None

        submitted = cell("submitted", columns.moment)
        run_time = cell("duration", columns.seconds)
        if run_time is None:  # without a column for either, every job runs for ever
            began = cell("started", _start, submitted)
            run_time = cell("ended", lambda text: _span(began, columns.moment(text), "started" in places), math.inf)
        job_cards = cell("job_cards", columns.count)
        pods = job_cards or cell("pods", lambda text: columns.count(text, 1), 1)
        cards = cell("cards", columns.count, 0) if job_cards is None else min(job_cards, 1)
        cpu = cell("cpu", columns.quantity("cpu"))
        amounts = [
            (self._resource, str(cards)),
            ("cpu", f"{cell('cpu_milli', columns.count, 0)}m" if cpu is None else cpu),
            ("memory", cell("memory", columns.quantity("memory")) or f"{cell('memory_mib', _mib, 0)}Mi"),
        ]  # fmt: skip
        requests = tuple((name, amount) for name, amount in amounts if amount not in ("0", "0m", "0Mi"))
        queue = cell("queue", self._queue, _NO_QUEUE)
        user = cell("user", str, "")
        shared = self._shared.setdefault((requests, queue, user), (requests, queue, user))
        group = cell("job", str, "")
        return columns.TraceJob(
            line, submitted, run_time, pods, shared[0], shared[1], cell("priority", columns.integer), shared[2], group
        )

    def joined(self, job: columns.TraceJob, more: columns.TraceJob, source: str) -> columns.TraceJob:
        """Return a job with the pods of one more row. Raises RowError where the rows are not of one gang."""
        for field_, was, now in (("queue", job.queue, more.queue), ("cards", job.requests, more.requests)):
            if was != now:
                what = "a queue" if field_ == "queue" else "requests"
                problem = f"has a row with {what} other than line {job.line}: a gang has one kind of pods and one queue"
                remedy = "correct it, or leave it out with --skip-bad"
                raise columns.RowError(
                    (source, more.line), self._columns["job"], more.group, problem=problem, remedy=remedy
                )
        return replace(
            job,
            submitted=min(job.submitted, more.submitted),
            run_time=max(job.run_time, more.run_time),
            pods=job.pods + more.pods,
        )

    def _queue(self, text: str) -> str:
        if text not in self._names:
            self._names[text] = self._name(text)
        return self._names[text]

    def _name(self, text: str) -> str:
        if self._known is not None and text in self._known:
            return text
        name = columns.queue_name(text)
        if self._known is not None and name not in self._known:
            raise columns.CellError("is not a queue", f"add it to --queues, which has {', '.join(sorted(self._known))}")
        taken = {*self._names.values()}
        if self._known is None:
            name = next(free for free in _names_like(name) if free not in taken)
        if name != text:
            self.renamed[text] = name
        return name


def _names_like(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name[:55]}-{number}" for number in itertools.count(2))


def _start(text: str) -> float:
    if not text:
        raise columns.CellError(
            "says that the job never started: nobody knows its run time", "leave it out with --skip-bad"
        )
    return columns.moment(text)


def _span(began: float, ended: float, is_start: bool) -> float:
    if ended <= began:
        remedy = "correct it, or leave it out with --skip-bad"
        raise columns.CellError(
            f"is not after the {'start' if is_start else 'submission'}: time goes backwards", remedy
        )
    return ended - began


def _mib(text: str) -> int:
    try:
        found = columns.number(text)
    except ValueError:
        found = -1
    if not 0 <= found < 2**40:
        raise columns.CellError("is not an amount of memory", "write MiB, a number of at least 0")
    return round(found)


def arrivals(
    trace: Trace, *, on_eviction: OnEviction = OnEviction.RESTART, checkpoint_every: float = 0.0
) -> Iterator[Arrival]:
    """Yield a workload for each job, in the order of their times."""
    width = len(str(max((job.line for job in trace.jobs), default=0)))
    for job in trace.jobs:
        yield Arrival(
            job.submitted,
            Workload(
                f"job-{job.line:0{width}}",
                job.run_time,
                dict(job.requests),
                job.pods,
                queue=job.queue,
                priority=job.priority,
                on_eviction=on_eviction,
                checkpoint_every=checkpoint_every,
                user=job.user,
            ),
        )
