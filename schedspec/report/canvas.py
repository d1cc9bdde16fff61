"""State of a picture that is being drawn lane by lane, from top to bottom: scale, pods, names, colours, positions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from ..monitors.amounts import spoken
from .axis import Axis, seconds
from .lives import Life, Plain, lives_of, shown_names
from .picture import GUTTER, MARGIN, WIDTH, Area, Picture, colours_of
from .record import ScenarioRecord


def band(rows: Sequence[tuple[float, float, float]], right: float, base: float, scale: float) -> str:
    """Return the path of the area between a lower and an upper step line. A row is x, low and high."""
    upper: list[tuple[float, float, float]] = []
    lower: list[tuple[float, float, float]] = []
    for n, (x, low, high) in enumerate(rows):
        until = rows[n + 1][0] if n + 1 < len(rows) else right
        if upper and upper[-1][1] == high and lower[-1][1] == low:
            upper[-1] = (upper[-1][0], high, until)
            lower[-1] = (lower[-1][0], low, until)
            continue
        upper.append((x, high, until))
        lower.append((x, low, until))
    path = f"M{number(upper[0][0])} {number(base - upper[0][1] * scale)}"
    for x, high, until in upper:
        path += f"H{number(x)}V{number(base - high * scale)}H{number(until)}"
    for x, low, until in reversed(lower):
        path += f"H{number(until)}V{number(base - low * scale)}H{number(x)}"
    return path + "Z"


def curve(x: float, y: float, to_x: float, to_y: float) -> str:
    """Return the path of an arrow from a victim to its preemptor: it starts to the right and arrives from the left."""
    bend = max(26.0, abs(to_x - x) * 0.45)
    points = ((x + bend, y), (to_x - bend, to_y), (to_x - 2, to_y))
    return f"M{number(x)} {number(y)}C" + " ".join(f"{number(a)} {number(b)}" for a, b in points)


def number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


CHARACTER = 5.9
"""The average width of a character in pixels."""
Interval = tuple[float, float, str, float]
"""Begin and end (seconds), queue and amount of a pod."""


class Canvas:
    """A picture that is being drawn. Each part draws at `y` and moves `y` below what it drew."""

    def __init__(self, record: ScenarioRecord) -> None:
        self.record, self.end = record, max(record.seconds, 0.001)
        self.lives = lives_of(record)
        self.names = shown_names(self.lives)
        self.plain = Plain(record.namespace, self.lives)
        self.colours = colours_of(record)
        self.picture = Picture(Axis(self._times(), self.end, GUTTER, WIDTH - MARGIN))
        self.x = self.picture.axis.x
        self.y = 0.0
        self.places: dict[str, tuple[float, float]] = {}
        """Pod uid → where its bar on a node begins: x, and the middle in y. `waits` has the bars of waiting pods."""
        self.waits: dict[str, tuple[float, float]] = {}

    def _times(self) -> Iterable[float]:
        for sentence in self.record.sentences:
            yield sentence.began
            yield sentence.began + sentence.seconds
        for life in self.lives:
            for t in (life.created, life.bound, life.started, life.leaving, life.ended, life.gone):
                if t is not None:
                    yield t
        for act in self.record.acts:
            yield act.at

    def title(self, life: Life) -> str:
        """Return a pod's tooltip, one fact on each line."""
        requests = ", ".join(spoken(name, amount) for name, amount in life.amounts.items())
        rows = [f"{life.name} of queue {life.queue or '(none)'}: {requests or 'requests nothing'}"]
        rows += [f"priority {life.priority}"] if life.priority else []
        rows += [f"{what} at {seconds(t)}" for what, t in (
            ("created", life.created), (f"bound to {life.node}", life.bound), ("running", life.started),
            ("evicted" if life.eviction else "deleting", life.leaving), ("ended", life.ended), ("gone", life.gone),
        ) if t is not None]  # fmt: skip
        return "\n".join(rows)

    def stacked(self, intervals: Sequence[Interval], capacity: float, top: float, height: float) -> list[Area]:
        """Return one area for each queue, stacked: the sum of its pods' amounts over time."""
        queues = sorted({queue for _, _, queue, _ in intervals})
        changes: list[tuple[float, str, float]] = []
        for began, until, queue, amount in intervals:
            changes += [(began, queue, amount), (until, queue, -amount)]
        held = dict.fromkeys(queues, 0.0)
        levels: dict[str, list[tuple[float, float, float]]] = {queue: [(GUTTER, 0.0, 0.0)] for queue in queues}
        for x, group in groupby(sorted(changes), key=lambda point: round(self.x(point[0]) / 1.5) * 1.5):
            for _, queue, amount in group:
                held[queue] += amount
            below = 0.0
            for queue in queues:
                above = below + held[queue]
                levels[queue].append((x, below, above))
                below = above
        scale = height / max(capacity, 1e-9)
        right = self.x(self.end)
        return [
            Area(band(rows, right, top + height, scale), self.colours.get(queue, -1), f"queue {queue or '(none)'}")
            for queue, rows in levels.items()
        ]


def fitting(text: str, width: float) -> str:
    """Return the part of a text that fits into a width in pixels; empty if that part is too short to read."""
    most = int(width / CHARACTER)
    if len(text) <= most:
        return text
    return text[: most - 1].rstrip() + "…" if most >= 5 else ""
