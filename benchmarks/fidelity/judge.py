"""Judge what was foretold by what happened. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Shown = dict[str, Any]
"""What one side shows: `evicted` and `queue_of` its victims, `started` pods by job, what `waits`."""
ROW = (
    "scheduler",
    "change",
    "states",
    "never settled",
    "evicted",
    "twin equal",
    "victims among the twin's",
    "model equal",
)


def is_equal(happened: Shown, foretold: Sequence[Shown]) -> bool:
    """Whether the same work was evicted, started and waits.

    If the scheduler's order is not deterministic there are several runs: then each queue's evicted and started pods
    must lie between the fewest and the most that a run foretold.
    """
    if len(foretold) == 1:
        return all(happened[part] == foretold[0][part] for part in ("evicted", "started", "waits"))
    return all(_lies_between(happened[part], [run[part] for run in foretold]) for part in ("lost", "gained"))


def is_as_many(happened: Shown, foretold: Shown) -> bool:
    """Whether each queue lost and started the same number of pods."""
    return all(happened[part] == foretold[part] for part in ("lost", "gained"))


def are_among(happened: Shown, foretold: Sequence[Shown]) -> bool:
    """Whether every victim was one in some run."""
    return set(happened["evicted"]) <= {pod for run in foretold for pod in run["evicted"]}


def _lies_between(found: Mapping[str, int], runs: Sequence[Mapping[str, int]]) -> bool:
    queues = {*found, *(queue for run in runs for queue in run)}
    return all(
        min(run.get(queue, 0) for run in runs) <= found.get(queue, 0) <= max(run.get(queue, 0) for run in runs)
        for queue in queues
    )


def shown(evictions: Iterable[Any], starts: Iterable[Any], waits: Iterable[str], problem: str = "") -> Shown:
    """Return one side from the evictions and starts of a plan."""
    evictions, starts = [*evictions], [*starts]
    lost: Counter[str] = Counter()
    gained: Counter[str] = Counter()
    for eviction in evictions:
        lost[eviction.queue] += eviction.pods
    for start in starts:
        gained[start.queue] += start.pods
    return {
        "evicted": sorted(eviction.pod for eviction in evictions),
        "started": {start.job: start.pods for start in sorted(starts, key=lambda start: start.job)},
        "waits": sorted(waits),
        "lost": {**lost},
        "gained": {**gained},
        "problem": problem,
    }


def verdict(row: Mapping[str, Any]) -> str:
    """Return what a state showed, in a few words."""
    if row["unsettled"]:
        return str(row["unsettled"])
    return f"{len(row['happened']['evicted'])} evicted, twin {'equal' if row['twin_equal'] else 'DIFFERS'}"


def table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the table of all states, by scheduler and kind of change, as Markdown.

    A production that does not settle before its change is not judged: what it does is not the change's effect.
    """
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        for change in (row["change"], "all"):
            groups.setdefault((row["scheduler"], change), []).append(row)
    lines = [f"| {' | '.join(ROW)} |", "| --- | --- " + "| ---: " * (len(ROW) - 2) + "|"]
    for (scheduler, change), found in sorted(
        groups.items(), key=lambda item: (item[0][0], item[0][1] == "all", item[0][1])
    ):
        judged = [row for row in found if not row["unsettled"]]
        by_model = [row["model_equal"] for row in judged if row["model_equal"] is not None]
        cells = [
            len(found),
            len(found) - len(judged),
            sum(bool(row["happened"]["evicted"]) for row in judged),
            sum(row["twin_equal"] for row in judged),
            sum(row["among"] for row in judged),
            sum(by_model) if by_model else "–",
        ]
        lines.append(f"| {scheduler} | {change} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)
