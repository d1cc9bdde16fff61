"""Draw amounts over time and distributions of waits: as paths in a box of 1000 × 200, stretched by the page.

`load.js` draws the same charts again at another zoom, from `Chart.packed`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from .world import Floats, ResultWorld, StepSeries

WIDTH, HEIGHT = 1000.0, 200.0
COLUMNS = 240
"""Columns of a chart as drawn without the script."""
_NARROW = 318.0
"""Width in pixels of a chart on a telephone. Without the script, the ticks have to fit there."""
_POINTS = 200
"""Points of a distribution."""
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 345600,
          604800, 1209600, 2592000, 5184000, 7776000, 15552000, 31536000)  # fmt: skip
"""Lengths between ticks in seconds, each at most 2.5 times the one before: with some length, a few ticks always fit."""
FIRST_DATE = 315_532_800.0
"""Seconds since 1970. An earlier start (before 1980) is no date: times are then shown relative to it."""
_WAITS = ((1, "1 s"), (10, "10 s"), (60, "1 min"), (600, "10 min"), (3600, "1 h"), (21600, "6 h"), (86400, "1 d"),
          (604800, "7 d"), (2592000, "30 d"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Area:
    colour: int
    label: str
    parts: Sequence[str]
    """Names of the steps whose sum the area shows."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line over the areas: the sum of steps, or a constant."""

    kind: str
    """CSS classes."""
    label: str
    parts: Sequence[str] = ()
    """Names of the steps whose sum the line shows; none: the line shows `value`."""
    value: float = 0.0


@dataclass(frozen=True, slots=True)
class DrawnChart:
    """A chart as drawn: its paths, and its ticks as pairs of position (0 to 1) and text."""

    paths: Sequence[tuple[str, str, str]]
    """CSS class, `d` and label."""
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """Amounts over time, of one world or of two."""

    name: str
    title: str
    unit: str
    areas: Sequence[Area]
    lines: Sequence[Line] = ()

    def packed(self) -> dict[str, Any]:
        return {
            "unit": self.unit,
            "areas": [{"colour": area.colour, "label": area.label, "parts": area.parts} for area in self.areas],
            "lines": [
                {"kind": line.kind, "label": line.label, "parts": line.parts, "value": line.value}
                for line in self.lines
            ],
        }

    def draw(self, steps: Mapping[str, StepSeries], start: float, span: float) -> DrawnChart:
        """Draw the chart from `start` (seconds) for the whole `span`."""
        edges = np.linspace(0.0, span, COLUMNS + 1)
        below = np.zeros(COLUMNS)

        def summed(parts: Sequence[str]) -> Floats:
            return sum((steps[name].means(edges) for name in parts if name in steps), np.zeros(COLUMNS))

        stacked = []
        for area in self.areas:
            above = below + summed(area.parts)
            stacked.append((area, below, above))
            below = above
        lines = [(line, summed(line.parts) if line.parts else np.full(COLUMNS, line.value)) for line in self.lines]
        top = rounded_up(max([float(below.max(initial=0.0)), *(float(values.max()) for _, values in lines)]))
        scale = HEIGHT / top
        paths = [
            (f"area q{area.colour}", _band(low * scale, high * scale), area.label) for area, low, high in stacked
        ] + [(f"line {line.kind}", _stair(values * scale), line.label) for line, values in lines]
        return DrawnChart(
            paths, list(_time_ticks(start, span)), [(part / 2, f"{top * part / 2:g}") for part in range(3)]
        )


def rounded_up(value: float) -> float:
    """Return the end of an axis: 1, 2, 4, 5 or 10 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(factor * power for factor in (1, 2, 4, 5, 10) if factor * power >= value * 0.999)


def _stair(levels: Floats) -> str:
    """Return the path of a line of equally wide steps."""
    return f"M0 {HEIGHT - levels[0]:.1f}{_run(levels, WIDTH / len(levels), 1)}"


def _band(low: Floats, high: Floats) -> str:
    """Return the path of the area between two stairs; empty if its height is 0 everywhere."""
    if not (high - low).max(initial=0.0):
        return ""
    back = _run(low[::-1], WIDTH / len(low), -1)
    return f"{_stair(high)}V{HEIGHT - low[-1]:.1f}{back}Z"


def _run(levels: Floats, width: float, direction: int) -> str:
    """Return the path of steps to the right (`direction` 1) or to the left (-1)."""
    parts = []
    last = len(levels) - 1
    for index, level in enumerate(levels):
        if index and level != levels[index - 1]:
            parts.append(f"V{HEIGHT - level:.1f}")
        if index == last or levels[index + 1] != level:
            x = (index + 1) * width
            parts.append(f"H{x if direction > 0 else WIDTH - x:.1f}")
    return "".join(parts)


def _time_ticks(start: float, span: float) -> Iterable[tuple[float, str]]:
    """Yield ticks that fit a chart of `_NARROW` pixels: few, and none whose text the edges would cut."""
    step = next((length for length in _STEPS if span / length <= _NARROW / 80), _STEPS[-1])
    first = start if start < FIRST_DATE else 0.0
    at = first + math.ceil((start - first) / step) * step
    while at <= start + span:
        part, text = (at - start) / span, moment(at, start, step)
        if len(text) * 3.2 - min(part, 1 - part) * _NARROW < 24:
            yield part, text
        at += step


def moment(at: float, start: float, step: float = 1.0) -> str:
    """Format a moment as a date, or as the time since the start if the load has no dates."""
    if start < FIRST_DATE:
        days, rest = divmod(round(at - start), 86400)
        clock = f"{rest // 3600:02}:{rest // 60 % 60:02}" + (f":{rest % 60:02}" if step < 60 else "")
        return f"{days}d" if step >= 86400 else f"{days}d {clock}" if days else clock
    date = datetime.fromtimestamp(at, UTC)
    return date.strftime("%m-%d" if step >= 86400 else "%m-%d %H:%M" if step >= 60 else "%H:%M:%S")


def distribution(worlds: Sequence[ResultWorld], colours: Mapping[str, int], longest: float) -> DrawnChart:
    """Draw the share of jobs that started within a wait, by queue, over the logarithm of waits.

    Of two worlds, the first is dashed.
    """
    paths = []
    for world in worlds:
        was, title = (" was", f", {world.title}") if world is not worlds[-1] else ("", "")
        rest = [name for name in world.queues if name not in colours]
        groups = [(f"q{colour}", [name], name) for name, colour in colours.items() if name in world.queues]
        groups += [("q7", rest, "other queues")] if rest else []
        groups.append(("all", [*world.queues], "all queues"))
        paths += [
            (f"line {kind}{was}", _cumulated(world, names, longest), label + title) for kind, names, label in groups
        ]
    ticks = [(_log(seconds, longest), text) for seconds, text in _WAITS if seconds <= longest]
    spaced = [tick for index, tick in enumerate(ticks) if not index or tick[0] - ticks[index - 1][0] > 0.04]
    return DrawnChart(paths, spaced)


def _cumulated(world: ResultWorld, names: Sequence[str], longest: float) -> str:
    waits = np.sort(np.concatenate([np.array(world.queues[name].waits) for name in names] or [np.zeros(0)]))
    jobs = sum(world.queues[name].jobs for name in names)
    if not len(waits):
        return ""
    chosen = np.unique(np.linspace(0, len(waits) - 1, min(len(waits), _POINTS)).round().astype(int))
    parts = [f"M0 {HEIGHT:g}"]
    for index in chosen.tolist():
        x, y = _log(float(waits[index]), longest) * WIDTH, HEIGHT * (1 - (index + 1) / jobs)
        parts.append(f"H{x:.1f}V{y:.1f}")
    return "".join([*parts, f"H{WIDTH:g}"])


def _log(seconds: float, longest: float) -> float:
    """Return the position of a wait on the axis: 0 for at most a second, 1 for the longest wait."""
    return math.log(max(seconds, 1.0)) / math.log(max(longest, 2.0))
