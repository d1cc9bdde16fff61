"""Data of a scenario's picture over time: each part with its position, independent of SVG."""

from __future__ import annotations

from dataclasses import dataclass, field

from .axis import Axis
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
    """A line of text below a bar."""

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
    """An arrow from an eviction to its preemptor."""

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
    """An amount over time, as a path."""

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
    """All parts, in drawing order."""

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
    """Whether nodes share lanes."""
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
