"""Draw a scenario as a miniature: what its queues held, stacked, and a tick for each eviction."""

from __future__ import annotations

from dataclasses import dataclass

from .axis import Axis
from .paths import band
from .picture import colours_of, main_dimension
from .record import ScenarioRecord

WIDTH, HEIGHT = 140, 22


@dataclass(frozen=True, slots=True)
class Miniature:
    """Paths with the colours of their queues, and the positions of evictions."""

    areas: list[tuple[int, str]]
    ticks: list[float]
    failed_at: float | None


def miniature(record: ScenarioRecord) -> Miniature:
    """Return the miniature of a scenario. Pure."""
    dimension, end = main_dimension(record), max(record.seconds, 0.001)
    colours = colours_of(record)
    parents = {moment.parent for moment in record.queues}
    moments = [moment for moment in record.queues if moment.queue not in parents and moment.queue not in ("root",)]
    axis = Axis((act.at for act in record.acts), end, 0.0, float(WIDTH))
    now: dict[str, float] = {}
    rows: dict[int, dict[str, float]] = {}
    for moment in moments:
        now[moment.queue] = float(moment.held.get(dimension, 0))
        rows[round(axis.x(moment.at))] = dict(now)
    most = max((sum(row.values()) for row in rows.values()), default=0.0) or 1.0
    scale = (HEIGHT - 3) / most
    queues = sorted(name for name, held in now.items() if any(row.get(name) for row in rows.values()) or held)
    areas = []
    for n in range(len(queues), 0, -1):  # each area covers the one below
        steps = [(float(x), 0.0, sum(rows[x].get(name, 0.0) for name in queues[:n])) for x in sorted(rows)]
        areas.append((colours.get(queues[n - 1], -1), band(steps, float(WIDTH), float(HEIGHT), scale)))
    ticks = sorted({round(axis.x(act.at), 1) for act in record.acts if act.act == "evict"})[:40]
    failed = record.failed_sentence
    return Miniature(areas, ticks, axis.x(failed.began) if failed is not None else None)
