"""Compare two results: each metric with its difference, and the jobs whose wait changed most."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..reasons.text import count
from .errors import InputError
from .records import End, JobRecord, read_result

_MAX = 20
"""Maximum number of listed jobs."""


def differences(before: Path, after: Path) -> str:
    """Format how `after` differs from `before`. Raises InputError."""
    old_end, old_jobs = _read(before)
    new_end, new_jobs = _read(after)
    old, new = dict(_flat(old_end.metrics)), dict(_flat(new_end.metrics))
    lines = ["", f"{'metric':<52}{'before':>14}{'now':>14}{'difference':>14}"]
    for name in dict.fromkeys([*old, *new]):
        was, now = old.get(name), new.get(name)
        if was != now:
            gap_text = f"{now - was:+14.6g}" if was is not None and now is not None else f"{'':>14}"
            lines.append(f"{name:<52}{_cell(was)}{_cell(now)}{gap_text}")
    if len(lines) == 2:
        lines = ["", "all metrics are equal"]
    changed = [
        (abs(change), name, old_jobs[name], job, change)
        for name, job in new_jobs.items()
        if name in old_jobs and job[1] != old_jobs[name][1]
        for change in (_wait(job, new_end.at) - _wait(old_jobs[name], old_end.at),)
    ]
    lines += ["", f"{len(changed)} of {len(new_jobs.keys() & old_jobs.keys())} jobs start at another time"]
    for _, job, old_job, new_job, gap in heapq.nlargest(_MAX, changed):
        lines.append(f"  {job}: waited {_text(old_job)}, now {_text(new_job)} ({gap:+.0f} s)")
    for title, only in (("before", old_jobs.keys() - new_jobs.keys()), ("now", new_jobs.keys() - old_jobs.keys())):
        if only:
            lines.append(f"only {title}: {count(len(only), 'job')}, such as {min(only)}")
    return "\n".join(lines) + "\n"


def _read(path: Path) -> tuple[End, dict[str, tuple[float, float | None]]]:
    """Return the last record, and the submission and the wait of each job."""
    end: End | None = None
    jobs: dict[str, tuple[float, float | None]] = {}
    for record in read_result(path):
        if isinstance(record, JobRecord):
            jobs[record.job] = record.submitted, record.wait
        elif isinstance(record, End):
            end = record
    if end is None:
        raise InputError(str(path), "has no last line with metrics: the run was cut off", "run it again")
    return end, jobs


def _wait(job: tuple[float, float | None], end: float) -> float:
    """Return how long a job waited; for a job that never started, until the end of the run."""
    submitted, wait = job
    return end - submitted if wait is None else wait


def _text(job: tuple[float, float | None]) -> str:
    return "for ever" if job[1] is None else f"{job[1]:.0f} s"


def _cell(value: float | None) -> str:
    return f"{'-':>14}" if value is None else f"{value:>14.6g}"


def _flat(metrics: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif value is not None:
            yield f"{prefix}{name}", value
