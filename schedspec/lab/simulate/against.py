"""Compare two results: each metric with its difference, and the jobs whose wait changed most."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...scheduler.reasons.text import count
from .columns import InputError
from .metrics import scaled
from .records import End, JobRecord, read_result

_LESS = frozenset({
    "wait_seconds", "wait_seconds_by_queue", "wait_seconds_by_size", "completion_seconds", "makespan_seconds",
    "lost_card_hours", "evicted_pods", "evicted_jobs", "evictions_per_job", "evicted_to_requested", "evicted_cards",
    "distance_from_deserved", "below_deserved_seconds", "below_deserved_longest_seconds", "below_guarantee_seconds",
})  # fmt: skip
"""Metrics of which less is better."""
_MORE = frozenset({"utilisation", "jain"})
"""Metrics of which more is better."""
_OF_ALL = (
    ("wait_seconds.mean", "mean wait", "s"), ("wait_seconds.p95", "wait p95", "s"),
    ("utilisation", "utilisation", "%"), ("evicted_pods", "evicted pods", ""),
    ("lost_card_hours", "lost card-hours", ""), ("distance_from_deserved", "distance from deserved", "%"),
)  # fmt: skip
_MAX = 20
"""Maximum number of listed jobs."""


def differences(before: Path, after: Path) -> str:
    """Format how `after` differs from `before`. Raises InputError."""
    old_end, old_jobs = read_end(before)
    new_end, new_jobs = read_end(after)
    old, new = dict(_flat(old_end.metrics)), dict(_flat(new_end.metrics))
    rows = [f"{'metric':<52}{'before':>14}{'now':>14}{'difference':>14}"]
    for name in dict.fromkeys([*old, *new]):
        was, now = old.get(name), new.get(name)
        if was != now:
            gap_text = f"{now - was:+14.6g}" if was is not None and now is not None else f"{'':>14}"
            rows.append(f"{name:<52}{_cell(was)}{_cell(now)}{gap_text}  {judged(name, was, now)}".rstrip())
    lines = (
        ["", _sentence(verdict(old_end.metrics, new_end.metrics)), *rows] if rows[1:] else ["", "all metrics are equal"]
    )
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


def judged(name: str, before: float | None, after: float | None) -> str:
    """Return `better` or `worse` for a metric that changed; empty for one that is neither, such as a count of jobs."""
    words = name.split(".")
    metric = words[-1] if words[0] == "queues" else words[0]
    if before is None or after is None or before == after or words[-1] == "jobs":
        return ""
    if metric in _LESS or (metric == "outcomes" and words[-1] != "completed"):
        return "better" if after < before else "worse"
    is_more = metric in _MORE or metric == "outcomes"
    return ("better" if after > before else "worse") if is_more else ""


def verdict(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the metrics of the whole cluster by which `after` is `better` and `worse`, each with both values."""
    old, new = dict(_flat(before)), dict(_flat(after))
    changes: dict[str, list[str]] = {"better": [], "worse": []}
    for name, words, unit in _OF_ALL:
        was, now = old.get(name), new.get(name)
        if was is None or now is None or not (mark := judged(name, was, now)):
            continue
        share = f" ({(now - was) / was:+.0%})" if was else ""
        changes[mark].append(f"{words} {_amount(was, unit)} → {_amount(now, unit)}{share}")
    return changes


def _sentence(changes: Mapping[str, list[str]]) -> str:
    if not any(changes.values()):
        return "neither run is better for the whole cluster; queues differ"
    sides = {"better": "this run is better", "worse": "worse" if changes["better"] else "this run is worse"}
    return "; ".join(f"{sides[mark]} by {', '.join(texts)}" for mark, texts in changes.items() if texts)


def _amount(value: float, unit: str) -> str:
    if unit == "s" and (time := scaled(value))[1] != "s":
        return f"{time[0]:.1f} {time[1]}"
    return f"{value:.1%}" if unit == "%" else f"{value:,.4g}{unit and f' {unit}'}"


def read_end(path: Path) -> tuple[End, dict[str, tuple[float, float | None]]]:
    """Return the last record, and the submission and the wait of each job. Raises InputError."""
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
