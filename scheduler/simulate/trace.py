"""Read a trace: a CSV file with one job a row, plain or compressed with gzip.

1. The file is read row by row; each row becomes a `Job` or a `RowError` with line, column and value.
2. The jobs are sorted by the time of their submission, stably: jobs of one second keep the order of their lines.
3. `arrivals` makes workloads from the jobs. A job is named after its line, so that jobs of equal times keep that order.
"""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from ..model.resources import QuantityError, parse
from ..simulation import Arrival, OnEviction, Workload
from .columns import FOREVER, CellError, Job, check_mapping, count, integer, moment, queue_name, seconds
from .errors import InputError, RowError

_NO_QUEUE = "default"


@dataclass(slots=True)
class Trace:
    """The jobs of a trace, by time of submission, and the problems of its rows."""

    source: str
    jobs: list[Job] = field(default_factory=list)
    skipped: int = 0
    """Bad rows that were left out."""
    first_skipped: RowError | None = None
    unsorted: int = 0
    """Rows that are earlier than the row before them."""

    @property
    def queues(self) -> list[str]:
        """The names of all queues, sorted."""
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

    Args:
        path: The CSV file; `.gz` is decompressed.
        mapping: Field → column; see `columns.FIELDS`.
        resource: The resource name of cards.
        skip_bad: Leave out and count bad rows instead of raising the first.
        queues: The queues that exist; None if the trace defines them.

    Raises:
        InputError: the file cannot be read, lacks a column, or has no job.
        RowError: a row is bad.
    """
    check_mapping(mapping)
    try:
        with open_text(path) as file:
            trace = _read(file, str(path), mapping, _Cells(mapping, resource, queues), skip_bad=skip_bad)
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            str(path), f"cannot be read: {reason}", "name a CSV file in UTF-8, or one compressed with gzip"
        ) from error
    if not trace.jobs:
        why = f"all {trace.skipped} rows are bad; the first: {trace.first_skipped}" if trace.skipped else "has no job"
        raise InputError(str(path), why, "name a file with a header and one job a row")
    trace.jobs.sort(key=lambda job: job.submitted)
    return trace


def open_text(path: Path) -> IO[str]:
    """Open a CSV file; `.gz` is decompressed. Raises OSError."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _read(file: IO[str], source: str, mapping: Mapping[str, str], cells: _Cells, *, skip_bad: bool) -> Trace:
    rows = csv.reader(file)
    header = next(rows, None)
    if header is None:
        raise InputError(source, "is empty", "name a file with a header and one job a row")
    mapping = {
        name: column for name, column in mapping.items() if (name, column) != ("duration", FOREVER) or column in header
    }
    for name, column in mapping.items():
        if column not in header:
            raise InputError(f"{source}:1", f"no column {column} (for {name})", f"columns are {', '.join(header)}")
    places = {name: header.index(column) for name, column in mapping.items()}
    trace, last = Trace(source), 0.0
    for row in rows:
        if not row:
            continue
        try:
            job = cells.job(row, places, source, rows.line_num)
        except RowError as error:
            if not skip_bad:
                raise
            trace.skipped += 1
            trace.first_skipped = trace.first_skipped or error
            continue
        trace.unsorted += job.submitted < last
        last = job.submitted
        trace.jobs.append(job)
    return trace


class _Cells:
    """Makes jobs from rows. Equal parts are shared, because a trace may have a million rows."""

    def __init__(self, mapping: Mapping[str, str], resource: str, queues: Iterable[str] | None) -> None:
        self._columns, self._resource = mapping, resource
        self._known = None if queues is None else frozenset(queues)
        self._shared: dict[Any, Any] = {}

    def job(self, row: list[str], places: Mapping[str, int], source: str, line: int) -> Job:
        def cell(name: str, read: Callable[[str], Any], default: Any = None) -> Any:
            if name not in places:
                return default
            text = row[places[name]].strip() if places[name] < len(row) else ""
            try:
                return read(text)
            except CellError as error:
                raise RowError(
                    (source, line), self._columns[name], text, problem=error.problem, remedy=error.remedy
                ) from None

        submitted = cell("submitted", moment)
        run_time = cell("duration", seconds)
        if run_time is None:  # without a column for either, every job runs for ever
            run_time = cell("ended", lambda text: _span(submitted, moment(text)), math.inf)
        pods = cell("job_cards", lambda text: count(text, 1)) or cell("pods", lambda text: count(text, 1), 1)
        amounts = [
            (self._resource, "1" if "job_cards" in places else cell("cards", lambda text: str(count(text)), "0")),
            ("cpu", cell("cpu", _quantity("cpu"), "0") if "cpu" in places else f"{cell('cpu_milli', count, 0)}m"),
            ("memory", cell("memory", _quantity("memory")) or f"{cell('memory_mib', _mib, 0)}Mi"),
        ]  # fmt: skip
        requests = tuple((name, amount) for name, amount in amounts if amount not in ("0", "0m", "0Mi"))
        queue = cell("queue", self._queue, _NO_QUEUE)
        user = cell("user", str, "")
        shared = self._shared.setdefault((requests, queue, user), (requests, queue, user))
        return Job(line, submitted, run_time, pods, shared[0], shared[1], cell("priority", integer), shared[2])

    def _queue(self, text: str) -> str:
        name = queue_name(text)
        if self._known is not None and name not in self._known:
            raise CellError("is not a queue", f"add it to --queues, which has {', '.join(sorted(self._known))}")
        return name


def _span(submitted: float, ended: float) -> float:
    if ended <= submitted:
        remedy = "correct it, or leave it out with --skip-bad"
        raise CellError("is not after the submission: time goes backwards", remedy)
    return ended - submitted


def _quantity(dimension: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        try:
            if min(parse({dimension: text}).values()) < 0:
                raise CellError("is below 0", "write a quantity of at least 0")
        except QuantityError:
            raise CellError("is not a quantity", "write for example 2, 500m or 8Gi") from None
        return text

    return read


def _mib(text: str) -> int:
    try:
        found = float(text)
    except ValueError:
        found = -1
    if not 0 <= found < 2**40:
        raise CellError("is not an amount of memory", "write MiB, a number of at least 0")
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
