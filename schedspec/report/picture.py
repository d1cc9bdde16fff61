"""A scenario's picture over time: its parts with their positions, independent of SVG, and its state while it is drawn.

Kubernetes does not publish which card a pod got; `place` assigns the lowest free ones, or parts of cpus.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from ..monitors.amounts import spoken
from .axis import Axis, seconds
from .lives import Life, PlainNames, lives_of, shown_names
from .objects import is_card
from .record import ScenarioRecord

WIDTH, GUTTER, MARGIN = 1000.0, 136.0, 12.0
"""Widths of the picture, of the names on its left, and of the margin on its right."""
ROW, GAP = 15.0, 14.0
"""The height of a card's row, and of the gap below a lane."""
COLOURS = 8
"""The number of colours. With more queues, colours repeat, and names distinguish the queues."""


@dataclass(slots=True)
class Bar:
    """A pod on a node, or while it waits."""

    x: float
    y: float
    width: float
    height: float
    colour: int
    uid: str
    title: str
    label: str = ""
    kind: str = "run"
    """`run` or `wait`; for a bar over another one, `starting` or `leaving`."""
    note: str = ""
    """A text to the right of the bar, or to its left (`note_left`)."""
    note_left: bool = False


@dataclass(slots=True)
class Text:
    x: float
    y: float
    text: str


@dataclass(slots=True)
class Mark:
    """An event at one time. `kind`: bind, evict, finding."""

    kind: str
    x: float
    y: float
    title: str
    number: int = 0


@dataclass(slots=True)
class Arrow:
    number: int
    path: str
    head: tuple[float, float]
    inferred: bool


@dataclass(slots=True)
class Level:
    """A line across a queue's chart."""

    kind: str
    y: float
    label: str
    label_y: float = 0.0


@dataclass(slots=True)
class Area:
    path: str
    colour: int
    title: str


@dataclass(slots=True)
class Lane:
    """A horizontal strip with a name."""

    name: str
    y: float
    height: float
    kind: str
    detail: str = ""
    rows: list[float] = field(default_factory=list)
    areas: list[Area] = field(default_factory=list)
    levels: list[Level] = field(default_factory=list)
    colour: int = -1
    title: str = ""


@dataclass(slots=True)
class Step:
    """A sentence's span on the axis."""

    number: int
    x: float
    width: float
    verdict: str
    title: str
    shows_number: bool
    is_when: bool = False


@dataclass(slots=True)
class Picture:
    axis: Axis
    height: float = 0.0
    top: float = 0.0
    steps: list[Step] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    shared: bool = False
    width: float = WIDTH


def colours_of(record: ScenarioRecord) -> dict[str, int]:
    """Return each queue's colour, by the order of the queues' names; the same in all pictures of the record."""
    names = {moment.queue for moment in record.queues} | {act.queue for act in record.acts}
    return {name: n % COLOURS for n, name in enumerate([*sorted(names - {"", "root", "default"}), "default", "root"])}


def main_dimension(record: ScenarioRecord) -> str:
    """Return the main resource of a scenario: cards if a pod requests some, else cpu."""
    requested = {name for act in record.acts for name in act.amounts} | {
        name
        for story in record.objects
        if story.kind == "pod"
        for moment in story.moments
        for name in moment.state.get("requests", {})
    }
    return min((name for name in requested if is_card(name)), default="cpu")


_EPSILON = 1e-9
Part = tuple[float, float]


def place(intervals: Sequence[tuple[float, float, float]]) -> list[list[Part]]:
    """Return the parts that each pod occupies, from its interval (from, until, amount); intervals are ordered by start.

    A pod occupies the lowest gap that is large enough, else several gaps, else the space above all parts. That space is
    unlimited: the caller shows what exceeds a node's capacity.
    """
    occupied: list[tuple[float, float, float]] = []  # low, high, until when
    found: list[list[Part]] = []
    for began, until, amount in intervals:
        occupied = sorted(part for part in occupied if part[2] > began)
        parts = _parts(occupied, amount)
        occupied += [(low, low + size, until) for low, size in parts]
        found.append(parts)
    return found


def _parts(occupied: Sequence[tuple[float, float, float]], amount: float) -> list[Part]:
    free: list[Part] = []
    low = 0.0
    for start, end, _ in occupied:
        if start - low > _EPSILON:
            free.append((low, start - low))
        low = max(low, end)
    whole = next(((start, amount) for start, size in free if size >= amount - _EPSILON), None)
    if whole is not None:
        return [whole]
    if sum(size for _, size in free) < amount - _EPSILON:
        return [(low, amount)]
    parts: list[Part] = []
    for start, size in free:
        use = min(size, amount)
        parts.append((start, use))
        amount -= use
        if amount <= _EPSILON:
            break
    return parts


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
Interval = tuple[float, float, str, float]
"""Begin and end (seconds), queue and amount of a pod."""


class Canvas:
    """A picture that is being drawn. Each part draws at `y` and moves `y` below what it drew."""

    def __init__(self, record: ScenarioRecord) -> None:
        self.record, self.end = record, max(record.seconds, 0.001)
        self.lives = lives_of(record)
        self.names = shown_names(self.lives)
        self.plain = PlainNames(record.namespace, self.lives)
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
