"""What a picture of a scenario over time consists of, each part with its place, still without a pixel of SVG."""

from __future__ import annotations

from dataclasses import dataclass, field

from .axis import Axis
from .objects import is_card
from .record import ScenarioRecord

WIDTH, GUTTER, MARGIN = 1000.0, 136.0, 12.0
"""Of the picture, of the names on its left, of what is left free on its right."""
ROW, GAP = 15.0, 14.0
"""The height of a card's row, and what is left free below a lane."""
COLOURS = 8
"""Queues that have a colour of their own; further ones begin again, with their names to tell them apart."""


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
    """``run``, ``wait``, and over a bar of either: ``starting``, ``leaving``."""
    note: str = ""
    """What stands behind it, or before it."""
    note_left: bool = False


@dataclass(slots=True)
class Mark:
    """Something that happened at one time. ``kind``: bind, evict, finding."""

    kind: str
    x: float
    y: float
    title: str
    number: int = 0


@dataclass(slots=True)
class Arrow:
    """From an eviction to the pod that it made room for."""

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
    """Something that is more or less over time, as a path."""

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
    """A sentence's stretch on the axis."""

    number: int
    x: float
    width: float
    verdict: str
    title: str
    shows_number: bool
    is_when: bool = False


@dataclass(slots=True)
class Picture:
    """All of it, in the order in which it is drawn."""

    axis: Axis
    height: float = 0.0
    top: float = 0.0
    steps: list[Step] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    shared: bool = False
    """Whether nodes share lanes."""
    width: float = WIDTH


def colours_of(record: ScenarioRecord) -> dict[str, int]:
    """Each queue's colour, the same on all of its page: in the order of their names."""
    names = {moment.queue for moment in record.queues} | {act.queue for act in record.acts}
    return {name: n % COLOURS for n, name in enumerate([*sorted(names - {"", "root", "default"}), "default", "root"])}


def main_dimension(record: ScenarioRecord) -> str:
    """What the scenario is about: cards where a pod asks for some, else cpu."""
    asked = {name for act in record.acts for name in act.amounts} | {
        name
        for story in record.objects
        if story.kind == "pod"
        for moment in story.moments
        for name in moment.state.get("requests", {})
    }
    return min((name for name in asked if is_card(name)), default="cpu")
