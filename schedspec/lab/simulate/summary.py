"""The summary of a run on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...scheduler.model.times import timestamp
from ...scheduler.reasons.text import count
from .records import End


def render(end: End, out: Path, stuck: int = 0, examples: Sequence[str] = ()) -> str:
    """Format the metrics of a run, and examples of the `stuck` jobs that wait at its end."""
    metrics = end.metrics
    below = "below deserved", "longest", "below guarantee"
    lines = [
        f"{count(metrics['jobs'], 'job')} until {timestamp(end.at)} in {count(end.cycles, 'cycle')}: "
        + (", ".join(f"{number} {outcome}" for outcome, number in sorted(metrics["outcomes"].items())) or "none"),
        "",
        f"{'wait':<24}{'jobs':>8}{'mean':>11}{'p50':>11}{'p95':>11}{'p99':>11}{'max':>11}",
        _row("all", metrics["wait_seconds"]),
        *(_row(f"queue {name}", spread) for name, spread in metrics["wait_seconds_by_queue"].items()),
        *(_row(f"{name} cards", spread) for name, spread in metrics["wait_seconds_by_size"].items()),
        _row("completion", metrics["completion_seconds"]),
        "",
        f"{'queue':<24}{'card-hours':>11}{'lost':>11}{'evicted cards':>15}{below[0]:>16}{below[1]:>11}{below[2]:>17}",
        *(_queue(name, queue) for name, queue in metrics["queues"].items()),
        "",
        (
            f"makespan {_time(metrics['makespan_seconds'])} · utilisation {_percent(metrics['utilisation'])} · "
            f"lost {metrics['lost_card_hours']:.1f} of {metrics['used_card_hours']:.1f} card-hours"
        ),
        (
            f"evicted {count(metrics['evicted_pods'], 'pod')} of {count(metrics['evicted_jobs'], 'job')} "
            f"({metrics['evictions_per_job']:.3f} a job) · "
            f"evicted to requested {_number(metrics['evicted_to_requested'])} · "
            f"distance from deserved {_percent(metrics['distance_from_deserved'])} · Jain {_number(metrics['jain'])}"
        ),
        *(
            [f"waiting at the end: {count(stuck, 'job')}, such as", *(f"  {text}" for text in examples)]
            if stuck
            else []
        ),
        f"result: {out}",
    ]
    return "\n".join(lines) + "\n"


def _queue(name: str, figures: Mapping[str, Any]) -> str:
    return (
        f"{name:<24}{figures['used_card_hours']:>11.1f}{figures['lost_card_hours']:>11.1f}"
        f"{figures['evicted_cards']:>15g}{_time(figures['below_deserved_seconds']):>16}"
        f"{_time(figures['below_deserved_longest_seconds']):>11}{_time(figures['below_guarantee_seconds']):>17}"
    )


def _row(name: str, spread: Mapping[str, Any]) -> str:
    values = "".join(f"{_time(spread[key]):>11}" for key in ("mean", "p50", "p95", "p99", "max") if key in spread)
    return f"{name:<24}{spread['jobs']:>8}{values}"


def _time(seconds: float) -> str:
    """Format a duration in the largest unit of which it has at least two."""
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length * 2:
            return f"{seconds / length:.1f}{unit}"
    return f"{seconds:.1f}s"


def _percent(part: float | None) -> str:
    return "-" if part is None else f"{part:.1%}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
