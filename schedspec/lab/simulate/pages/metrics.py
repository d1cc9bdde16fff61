"""The metrics that pages show: their names, their places in a result, and how an amount is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..against import judged
from ..metrics import scaled

Path = tuple[str, ...]
"""The keys that lead to a metric in the last line of a result."""


def _words(name: str) -> str:
    return name.removesuffix("_seconds").replace("card_hours", "card-hours").replace("_", " ")


OF_ALL: tuple[tuple[str, Path], ...] = (
    *((f"wait {part}", ("wait_seconds", part)) for part in ("mean", "p50", "p95", "p99", "max")),
    *((f"completion {part}", ("completion_seconds", part)) for part in ("mean", "p95")),
    *((_words(name), (name,)) for name in (
        "makespan_seconds", "utilisation", "lost_card_hours", "evicted_pods", "evicted_jobs", "evicted_to_requested",
        "distance_from_deserved", "jain",
    )),
)  # fmt: skip
_OF_A_QUEUE = ("lost_card_hours", "below_deserved_seconds", "below_guarantee_seconds")
_COUNTS = {"jobs", "evicted_pods", "evicted_jobs"}
_SHARES = {"utilisation", "distance_from_deserved"}


def of_queue(name: str) -> list[tuple[str, Path]]:
    """Return the metrics of one queue that are compared."""
    wait: tuple[str, Path] = (f"queue {name}: wait p95", ("wait_seconds_by_queue", name, "p95"))
    return [wait, *((f"queue {name}: {_words(metric)}", ("queues", name, metric)) for metric in _OF_A_QUEUE)]


def value(metrics: Mapping[str, Any], path: Path) -> float | None:
    """Return a metric; None if the result does not have it."""
    found: Any = metrics
    for word in path:
        found = found.get(word) if isinstance(found, Mapping) else None
    return found if isinstance(found, (int, float)) else None


def mark(path: Path, before: float | None, after: float | None) -> str:
    """Return `better` or `worse`; empty if nothing changed, or if neither is better."""
    return judged(".".join(path), before, after)


def time(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    amount, unit = scaled(seconds)
    return f"{amount:.3g} s" if unit == "s" else f"{amount:.1f} {unit}"


def text(path: Path, amount: float | None) -> str:
    if amount is None:
        return "–"
    if any("_seconds" in word for word in (path[0], path[-1])):
        return time(amount)
    if path[-1] in _SHARES:
        return f"{amount:.1%}"
    return f"{amount:,.0f}" if path[-1] in _COUNTS else f"{amount:,.4g}"


def signed(path: Path, change: float) -> str:
    return f"{'+' if change > 0 else '−' if change < 0 else '±'}{text(path, abs(change))}"
