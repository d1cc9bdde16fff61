"""Define the meaning of a trace's columns, and read its cells.

A mapping names fields of a job (`FIELDS`) and the columns that hold them. Presets are mappings of public traces.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unicodedata import combining, normalize

from ...scheduler.model.errors import PlacedError
from ...scheduler.model.resources import QuantityError, lacks_unit, parse


class InputError(PlacedError):
    """An input that cannot be simulated."""


class RowError(InputError):
    """A row of a trace that is not a job."""

    def __init__(self, place: tuple[str, int], column: str, value: str, *, problem: str, remedy: str) -> None:
        source, line = place
        super().__init__(f"{source}:{line}", f"column {column}: {value!r} {problem}", remedy)
        self.line, self.column, self.value, self.problem = line, column, value, problem
        self.where = f"{source}:{line}"
        self.summary = f"column {column} {problem}"


FIELDS = {
    "submitted": "when the job was submitted: a date (UTC unless it names a zone) or seconds",
    "duration": "seconds that it runs once all of its pods run; inf: for ever (duration=inf: all jobs)",
    "started": "when it started to run, with ended",
    "ended": "when it ended, where no column holds its duration",
    "job": "name of its job: rows with the same name are the pods of one gang",
    "job_cards": "cards of the whole job, which becomes a gang of pods with one card each",
    "cards": "cards of each pod",
    "cpu": "CPUs of each pod (cpu_milli: thousandths)",
    "cpu_milli": "thousandths of a CPU of each pod",
    "memory": "memory of each pod, as a quantity",
    "memory_mib": "memory of each pod in MiB",
    "pods": "number of pods of the gang",
    "priority": "priority of the pods, a whole number",
    "queue": "name of its queue",
    "user": "who submitted it",
}
"""Field → its meaning."""

PRESETS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "philly": {"submitted": "timestamp", "duration": "duration", "job_cards": "num_gpus", "queue": "cluster"},
        "openb": {
            "submitted": "creation_time",
            "started": "scheduled_time",
            "ended": "deletion_time",
            "cards": "num_gpu",
            "cpu_milli": "cpu_milli",
            "memory_mib": "memory_mib",
        },
    }
)
"""Microsoft's Philly trace, and the pods of Alibaba's openb."""

FOREVER = "inf"
"""In place of a column of durations: every job runs for ever, for a load that only fills the nodes."""
_EXCLUSIVE = (
    ("duration", "ended"), ("duration", "started"), ("job_cards", "cards"), ("job_cards", "pods"), ("job_cards", "job"),
    ("cpu", "cpu_milli"), ("memory", "memory_mib"),
)  # fmt: skip
"""Pairs of fields of which a trace has at most one."""
_CLOCK = re.compile(r"(?:(?P<days>\d+)-)?(?P<parts>\d+(?::\d\d){0,2}(?:\.\d+)?)", re.ASCII)
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_LONGEST_NAME = 63
_MAX = 1_000_000
"""The most pods or cards of one job, far beyond real ones: a larger number is a mistake in the trace."""
LAST = 253_402_300_799.0
"""The end of the year 9999, which is the last moment that a timestamp can name."""


class CellError(ValueError):
    """A cell that cannot be read: the problem and the remedy."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem, self.remedy = problem, remedy


@dataclass(frozen=True, slots=True)
class TraceJob:
    line: int
    submitted: float
    run_time: float
    pods: int
    requests: tuple[tuple[str, str], ...]
    queue: str
    priority: int | None
    user: str
    group: str = ""
    """The name of its job, if a column groups rows that are pods of one job."""


def parse_mapping(text: str) -> dict[str, str]:
    """Read `submitted=COLUMN,duration=COLUMN,…`. Raises InputError."""
    found: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        field, _, column = (word.strip() for word in part.partition("="))
        if field not in FIELDS or not column:
            raise InputError("--map", f"{part!r} is not FIELD=COLUMN", f"fields are {', '.join(FIELDS)}")
        if field in found:
            raise InputError("--map", f"{field} has two columns, {found[field]} and {column}", "name one of them")
        found[field] = column
    return found


def changed(preset: str, mapping: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of a preset, changed by a mapping, without fields that exclude a field of the mapping."""
    dropped = {other for pair in _EXCLUSIVE for one, other in (pair, pair[::-1]) if one in mapping}
    kept = {field: column for field, column in PRESETS.get(preset, {}).items() if field not in dropped}
    return {**kept, **mapping}


def check_mapping(mapping: Mapping[str, str]) -> None:
    """Raise InputError where fields are missing or contradict each other."""
    for needed in (("submitted",), ("duration", "ended")):
        if not any(field in mapping for field in needed):
            raise InputError(
                "--map", f"no column for {' or '.join(needed)}", f"add {needed[0]}=COLUMN, or use --preset"
            )
    for one, other in _EXCLUSIVE:
        if one in mapping and other in mapping:
            raise InputError("--map", f"{one} and {other} exclude each other", f"remove {one} or {other}")
    by_column: dict[str, str] = {}
    for field in ("submitted", "started", "ended", "duration"):
        column = mapping.get(field, "")
        if column and by_column.setdefault(column, field) != field:
            problem = f"{by_column[column]} and {field} are both column {column}"
            raise InputError("--map", problem, "name the column of each time")
    if "started" in mapping and "ended" not in mapping:
        raise InputError("--map", "started says when a job started, and no column when it ended", "add ended=COLUMN")


def unreadable(path: Path, error: Exception) -> InputError:
    """Return the error about a CSV file that cannot be read."""
    if isinstance(error, csv.Error):
        return InputError(str(path), f"is no CSV: {error}", "close each quotation, and write nothing behind it")
    reason = getattr(error, "strerror", None) or error
    return InputError(str(path), f"cannot be read: {reason}", "name a CSV file in UTF-8, or one compressed with gzip")


def number(text: str) -> float:
    """Return a number. `1_0` and digits of other scripts, which Python reads too, are mistakes. Raises ValueError."""
    if not text.isascii() or "_" in text:
        raise ValueError(text)
    return float(text)


def moment(text: str) -> float:
    """Return the seconds since 1970 of a date or a number."""
    try:
        found = number(text)
    except ValueError:
        try:
            date = datetime.fromisoformat(text)
            found = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            raise CellError("is not a time", "write 2017-10-09 07:01:55, or seconds") from None
    if not 0 <= found <= LAST:
        raise CellError("is not a time between 1970 and 9999", "write 2017-10-09 07:01:55, or seconds")
    return found


def seconds(text: str) -> float:
    """Return a duration in seconds; infinity for `inf`."""
    clock = _CLOCK.fullmatch(text) if "-" in text or ":" in text else None
    try:
        found = _clock_seconds(clock) if clock is not None else number(text)
    except ValueError:
        found = math.nan
    if math.isnan(found) or found <= 0 or LAST < found < math.inf:
        remedy = "write seconds above 0, 1-02:03:04 or 02:03:04, or inf for a job that never ends"
        raise CellError("is not a duration", remedy)
    return found


def _clock_seconds(clock: re.Match[str]) -> float:
    """Return the seconds of `days-hours:minutes:seconds`; without days and hours, of `minutes:seconds`, as in Slurm."""
    parts = [float(part) for part in clock["parts"].split(":")]
    parts = [*parts, *[0.0] * (3 - len(parts))] if clock["days"] else [*[0.0] * (3 - len(parts)), *parts]
    hours, minutes, rest = parts
    return ((int(clock["days"] or 0) * 24 + hours) * 60 + minutes) * 60 + rest


def count(text: str, least: int = 0) -> int:
    """Return a whole number, which may be written as `4.0`."""
    try:
        found = number(text)
    except ValueError:
        found = math.nan
    if not least <= found <= _MAX or found != int(found):
        raise CellError("is not a whole number in range", f"write a whole number from {least} to {_MAX}")
    return int(found)


def integer(text: str) -> int:
    """Return a priority."""
    try:
        number(text)
        found = int(text)
    except ValueError:
        found = _MAX**2
    if abs(found) > 1_000_000_000:
        raise CellError("is not a priority", "write a whole number from -1000000000 to 1000000000")
    return found


def quantity(dimension: str) -> Callable[[Any], str]:
    """Return the function that reads amounts of a resource."""

    def read(given: Any) -> str:
        try:
            (amount,) = parse({dimension: str(given)}).values()
        except QuantityError:
            raise CellError("is not a quantity", "write for example 2, 500m or 8Gi") from None
        if amount < 0:
            raise CellError("is below 0", "write a quantity of at least 0")
        if lacks_unit(dimension, amount):
            raise CellError("is an amount of bytes, which is hardly meant", "write a unit, for instance 8Gi")
        return str(given)

    return read


def queue_name(text: str) -> str:
    """Return the name of a queue as Kubernetes permits it: `phys_lab` as `phys-lab`, `Équipe` as `equipe`."""
    if len(text) <= _LONGEST_NAME and _NAME.fullmatch(text):
        return text
    plain = "".join(letter for letter in normalize("NFKD", text.casefold()) if not combining(letter))
    found = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:_LONGEST_NAME].strip("-")
    if not text:
        raise CellError("is not a name of a queue", "name its queue, or leave the column out")
    return found or "queue"
