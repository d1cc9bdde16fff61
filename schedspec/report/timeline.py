"""A scenario as a picture over time, still without a pixel of SVG: lanes, bars, marks and arrows with their places.

A lane a node, in it a row a card (or a band of cpu); those who wait in a lane of their own; what queues held below.
Where there are too many pods or nodes for that, nodes share lanes, which show the sums by queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby

from .axis import Axis, seconds
from .lives import Life, Plain, lives_of, natural, shown_names
from .objects import is_card
from .paths import band, curve
from .record import QueueMoment, ScenarioRecord
from .slots import place

WIDTH, GUTTER, MARGIN = 1000.0, 136.0, 12.0
"""Of the picture, of the names on its left, of what is left free on its right."""
ROW, GAP = 15.0, 14.0
MOST_NODES, MOST_PODS = 40, 400
"""Beyond either, nodes share lanes."""
SHARED_LANES = 12
COLOURS = 8
"""Queues that have a colour of their own; further ones begin again, with their names to tell them apart."""
_Stay = tuple[float, float, str, float]
"""From when, until when, of which queue, how much."""
_CHARACTER = 5.9
_WAITING_ROWS = 12
_LONG = 0.2
"""Seconds from which on a reader asks why a pod waited."""


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
class _Wait:
    """Alike pods that wait: their bar, and with its text beside it from ``left`` to ``right``."""

    lives: list[Life]
    x: float
    until: float
    left: float
    right: float
    text: str
    side: int
    """Where the text is: 0 inside, 1 behind, -1 before."""


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


def draw(record: ScenarioRecord) -> Picture:
    """The picture of one scenario."""
    return _Drawing(record).finish()


class _Drawing:
    def __init__(self, record: ScenarioRecord) -> None:
        self.record, self.end = record, max(record.seconds, 0.001)
        self.lives = lives_of(record)
        self.names = shown_names(self.lives)
        self.plain = Plain(record.namespace, self.lives)
        self.colours = colours_of(record)
        self.by_uid = {life.uid: life for life in self.lives}
        self.picture = Picture(Axis(self._times(), self.end, GUTTER, WIDTH - MARGIN))
        self.x = self.picture.axis.x
        self.y = 0.0
        self.places: dict[str, tuple[float, float]] = {}
        """Where each pod's bar begins: x, and the middle of its y."""
        self.waits: dict[str, tuple[float, float]] = {}

    def finish(self) -> Picture:
        self._steps()
        nodes = self._nodes()
        busy = sum(life.bound is not None for life in self.lives)
        self.picture.shared = len(nodes) > MOST_NODES or busy > MOST_PODS
        if self.picture.shared:
            self._shared_lanes(nodes)
        else:
            for name, amounts in nodes:
                self._node(name, amounts)
        self._waiting()
        self._queues()
        self._evictions()
        self._findings()
        self.picture.height = self.y + 22
        return self.picture

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

    # ------------------------------------------------------------------------------------------------------ sentences

    def _steps(self) -> None:
        free = 0.0
        for number, said in enumerate(self.record.sentences, 1):
            if said.verdict == "skipped" and not said.seconds:
                continue
            x = self.x(said.began)
            width = max(2.0, self.x(said.began + said.seconds) - x - 1)
            label = x + min(width / 2, 8)
            shows = label - 7 >= free
            free = label + 9 if shows else free
            title = f"{number}. {said.keyword} {said.text}, at {seconds(said.began)}, took {seconds(said.seconds)}"
            is_when = said.keyword == "When"
            self.picture.steps.append(Step(number, x, width, said.verdict, title, shows, is_when))
        self.y = self.picture.top = 52.0

    # ---------------------------------------------------------------------------------------------------------- nodes

    def _nodes(self) -> list[tuple[str, dict[str, float]]]:
        """The nodes and what they offered at their best, by name; of many, those that never had a pod are left out."""
        used = {life.node for life in self.lives if life.bound is not None}
        found: dict[str, dict[str, float]] = {}
        for story in self.record.objects:
            if story.kind == "node":
                amounts: dict[str, float] = {}
                for moment in story.moments:
                    for name, amount in moment.state.get("allocatable", {}).items():
                        amounts[name] = max(float(amount), amounts.get(name, 0.0))
                found[story.name] = amounts
        for name in used - found.keys():
            found[name] = {}
        if len(found) > 12:
            found = {name: amounts for name, amounts in found.items() if name in used}
        return sorted(found.items(), key=lambda it: natural(it[0]))

    def _node(self, name: str, offers: dict[str, float]) -> None:
        dimension = next((it for it, amount in offers.items() if is_card(it) and amount > 0), "cpu")
        capacity = offers.get(dimension, 0.0)
        guests = sorted(
            (life for life in self.lives if life.node == name and life.bound is not None),
            key=lambda life: life.bound or 0.0,
        )
        some = [life for life in guests if life.amounts.get(dimension, 0.0) > 0]
        none = [life for life in guests if life.amounts.get(dimension, 0.0) <= 0]
        stays = [(life.bound or 0.0, life.released(self.end), life.amounts[dimension]) for life in some]
        parts = place(stays)
        capacity = max([capacity, *(low + size for found in parts for low, size in found)])
        if is_card(dimension) and capacity <= 32:
            unit, what = ROW, f"{capacity:g} cards"
        else:
            height = min(120.0, max(30.0, 16.0 * max((len(it) for it in _together(stays)), default=1)))
            unit, what = height / (capacity or 1.0), f"{capacity:g} {'cards' if is_card(dimension) else 'cpu'}"
        height = max(ROW, unit * capacity)
        lane = Lane(name, self.y, height, "node", what, title=_offers(name, offers))
        if unit == ROW:
            lane.rows = [self.y + ROW * n for n in range(1, round(capacity))]
        for life, found in zip(some, parts, strict=True):
            for n, (low, size) in enumerate(found):
                self._bar(life, self.y + low * unit, size * unit, labelled=n == 0)
        self.y += height
        if none:
            rows = place([(it.bound or 0.0, it.released(self.end), 1.0) for it in none])
            most = min(4.0, max(row[0][0] for row in rows) + 1)
            for life, row in zip(none, rows, strict=True):
                if row[0][0] < most:
                    self._bar(life, self.y + row[0][0] * ROW + 1, ROW - 1, labelled=True)
            lane.height += most * ROW + 1
            self.y += most * ROW + 1
        self.picture.lanes.append(lane)
        self.y += GAP

    def _bar(self, life: Life, y: float, height: float, *, labelled: bool) -> None:
        bound = life.bound or 0.0
        x, until = self.x(bound), self.x(life.released(self.end))
        width, y, height = max(2.0, until - x), y + 0.75, max(2.0, height - 1.5)
        self.places.setdefault(life.uid, (x, y + height / 2))
        name = self.names[life.uid]
        label = _fitting(name, width - 14) if labelled and height >= 10 else ""
        colour, title = self.colours.get(life.queue, -1), self._title(life)
        self.picture.bars.append(Bar(x, y, width, height, colour, life.uid, title, label))
        started = self.x(life.started) if life.started is not None else until
        if started - x > 1.5:
            self.picture.bars.append(Bar(x, y, started - x, height, colour, life.uid, "", kind="starting"))
        if life.leaving is not None and life.leaving < life.released(self.end):
            left = self.x(life.leaving)
            self.picture.bars.append(Bar(left, y, max(2.0, until - left), height, colour, life.uid, "", kind="leaving"))

    def _title(self, life: Life) -> str:
        asks = ", ".join(f"{amount:g} {name.rpartition('/')[2]}" for name, amount in life.amounts.items())
        rows = [f"{life.name} of queue {life.queue or '(none)'}: {asks or 'asks for nothing'}"]
        rows += [f"priority {life.priority}"] if life.priority else []
        rows += [f"{what} at {seconds(t)}" for what, t in (
            ("created", life.created), (f"bound to {life.node}", life.bound), ("running", life.started),
            ("evicted" if life.eviction else "told to go", life.leaving), ("ended", life.ended), ("gone", life.gone),
        ) if t is not None]  # fmt: skip
        return "\n".join(rows)

    # ------------------------------------------------------------------------------------- many nodes share few lanes

    def _shared_lanes(self, nodes: Sequence[tuple[str, dict[str, float]]]) -> None:
        size = -(-len(nodes) // SHARED_LANES)
        for n in range(0, len(nodes), size):
            part = nodes[n : n + size]
            names = {name for name, _ in part}
            offers: dict[str, float] = {}
            for _, amounts in part:
                for name, amount in amounts.items():
                    offers[name] = offers.get(name, 0.0) + amount
            dimension = next((it for it, amount in offers.items() if is_card(it) and amount > 0), "cpu")
            height = 34.0
            guests = [life for life in self.lives if life.node in names and life.bound is not None]
            unit = "cards" if is_card(dimension) else "cpu"
            detail = f"{len(part)} nodes, {offers.get(dimension, 0):g} {unit}"
            lane = Lane(_range(part[0][0], part[-1][0]), self.y, height, "shared", detail)
            lane.title = f"{part[0][0]} to {part[-1][0]}"
            stays = [
                (it.bound or 0.0, it.released(self.end), it.queue, it.amounts.get(dimension, 0.0)) for it in guests
            ]
            lane.areas = self._stacked(stays, offers.get(dimension, 0.0), self.y, height)
            self.picture.lanes.append(lane)
            for life in guests:
                self.places[life.uid] = (self.x(life.bound or 0.0), self.y + height / 2)
            self.y += height + 6
        self.y += GAP - 6

    def _stacked(self, stays: Sequence[_Stay], capacity: float, top: float, height: float) -> list[Area]:
        """What the stays of each queue add up to, one above the other."""
        queues = sorted({queue for _, _, queue, _ in stays})
        changes: list[tuple[float, str, float]] = []
        for began, until, queue, amount in stays:
            changes += [(began, queue, amount), (until, queue, -amount)]
        held = dict.fromkeys(queues, 0.0)
        levels: dict[str, list[tuple[float, float, float]]] = {queue: [(GUTTER, 0.0, 0.0)] for queue in queues}
        for x, group in groupby(sorted(changes), key=lambda it: round(self.x(it[0]) / 1.5) * 1.5):
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

    # -------------------------------------------------------------------------------------------------------- waiting

    def _waiting(self) -> None:
        """Pods without a node, alike ones together, and why they wait; of many those that waited longest."""
        if self.picture.shared:
            self._waiting_together()
        found = [self._wait_of(lives) for lives in self._alike() if not self.picture.shared or lives[0].reasons]
        if not found:
            return
        longest = sorted(found, key=lambda it: it.x - it.until)[: _WAITING_ROWS * 3]
        shown = sorted(longest, key=lambda it: it.left)
        rows = [row[0][0] for row in place([(it.left, it.right, 1.0) for it in shown])]
        most = min(_WAITING_ROWS, int(max(rows)) + 1)
        drawn = [(it, int(row)) for it, row in zip(shown, rows, strict=True) if row < most]
        for it, row in drawn:
            y, life = self.y + row * ROW, it.lives[0]
            colour = self.colours.get(life.queue, -1)
            bar = Bar(it.x, y + 1.5, max(2.0, it.until - it.x), ROW - 3, colour, life.uid, self._why(it.lives))
            bar.kind, bar.label, bar.note = "wait", it.text if it.side == 0 else "", it.text if it.side else ""
            bar.note_left = it.side < 0
            self.picture.bars.append(bar)
            for one in it.lives:
                self.waits[one.uid] = (it.x, y + ROW / 2)
        hidden = len(found) - len(drawn)
        detail = f"{hidden} more not shown" if hidden else "for a node"
        self.picture.lanes.append(Lane("waiting", self.y, most * ROW, "waiting", detail))
        self.y += most * ROW + GAP

    def _waiting_together(self) -> None:
        """How many pods of each queue waited, as a chart."""
        stays = [(it.created, it.waited_until(self.end), it.queue, 1.0) for it in self.lives]
        if not stays:
            return
        changes = sorted([(a, 1) for a, *_ in stays] + [(b, -1) for _, b, *_ in stays])
        most = max(accumulate(step for _, step in changes))
        lane = Lane("waiting", self.y, 44.0, "shared", f"at most {most:,} pods")
        lane.areas = self._stacked(stays, float(most), self.y, lane.height)
        self.picture.lanes.append(lane)
        for life in self.lives:
            self.waits[life.uid] = (self.x(life.created), self.y + 22)
        self.y += lane.height + GAP

    def _alike(self) -> Iterable[list[Life]]:
        """Pods of one workload that came and stopped waiting together; of many all of one workload."""
        groups: dict[tuple[object, ...], list[Life]] = {}
        for life in self.lives:
            key: tuple[object, ...] = (life.workload, life.bound is None)
            if not self.picture.shared:
                until = round(self.x(life.waited_until(self.end)) / 6)
                key = (*key, round(self.x(life.created)), until, life.reasons[-1][1] if life.reasons else "")
            groups.setdefault(key, []).append(life)
        return groups.values()

    def _wait_of(self, lives: list[Life]) -> _Wait:
        """Where alike pods are drawn while they wait, and what stands in or beside their bar."""
        began, ended = min(it.created for it in lives), max(it.waited_until(self.end) for it in lives)
        x, until = self.x(began), self.x(ended)
        why = next((it.reasons[-1][1] for it in lives if it.reasons), "")
        name = self.names[lives[0].uid] if len(lives) == 1 else f"{len(lives)} pods of {lives[0].workload}"
        tells = bool(why) and (ended - began > _LONG or any(it.bound is None for it in lives))
        text = f"{name}: {self.plain(why)}" if tells else name
        inside, behind, before = until - x - 8, WIDTH - MARGIN - until - 8, x - GUTTER - 8
        if len(text) * _CHARACTER <= inside:
            return _Wait(lives, x, until, x, until, text, 0)
        if max(behind, inside) >= min(len(text) * _CHARACTER, 200.0):
            side = 1 if behind >= inside else 0
        else:
            side = -1 if before > max(behind, inside) else 1 if behind >= inside else 0
        text = _fitting(text, {0: inside, 1: behind, -1: before}[side])
        wide = len(text) * _CHARACTER + 8
        left, right = (x - wide if side < 0 else x), (until + wide if side > 0 else until)
        return _Wait(lives, x, until, left, right, text, side)

    def _why(self, lives: Sequence[Life]) -> str:
        head = f"{len(lives)} pods of {lives[0].workload}" if len(lives) > 1 else self._title(lives[0])
        said = (f"at {seconds(t)}: {self.plain(why)}" for life in lives[:20] for t, why in life.reasons)
        return "\n".join([head, *dict.fromkeys(said)])

    # --------------------------------------------------------------------------------------------------------- queues

    def _queues(self) -> None:
        moments: dict[str, list[QueueMoment]] = {}
        for moment in self.record.queues:
            moments.setdefault(moment.queue, []).append(moment)
        of_pods = {life.queue for life in self.lives}
        shown = [
            name
            for name in sorted(moments, key=natural)
            if name in of_pods or (name not in ("root", "default") and any(it.held for it in moments[name]))
        ]
        dimension = main_dimension(self.record)
        for name in shown[:16]:
            self._queue(name, moments[name], dimension)

    def _queue(self, name: str, moments: Sequence[QueueMoment], dimension: str) -> None:
        height = 40.0
        held = [(it.at, float(it.held.get(dimension, 0))) for it in moments]
        last = moments[-1]
        limits = {
            "capability": float(last.capability.get(dimension, 0)),
            "card quota": sum(map(float, last.card_quota.values())) if is_card(dimension) else 0.0,
            "deserved": float(last.deserved.get(dimension, 0)),
            "guarantee": float(last.guarantee.get(dimension, 0)),
        }
        most = max([amount for _, amount in held] + [limits["deserved"], limits["guarantee"], limits["card quota"]])
        limits = {kind: amount for kind, amount in limits.items() if amount and amount <= max(most * 3, 1)}
        top = max([most, *limits.values()]) or 1.0
        base, scale = self.y + height, (height - 4) / top
        unit = "cards" if is_card(dimension) else "cpu"
        colour = self.colours.get(name, -1)
        peak = max(amount for _, amount in held)
        lane = Lane(name, self.y, height, "queue", f"held at most {peak:g} {unit}", colour=colour)
        rows = [(GUTTER, 0.0, 0.0), *((self.x(at), 0.0, amount) for at, amount in _thinned(held, self.x))]
        lane.areas = [Area(band(rows, self.x(self.end), base, scale), colour, f"held by queue {name}")]
        by_amount: dict[float, list[str]] = {}
        for kind, amount in limits.items():
            by_amount.setdefault(amount, []).append(kind)
        free = self.y - 10.0
        for amount, kinds in sorted(by_amount.items(), reverse=True):
            y = base - amount * scale
            label_y = max(y + 9.5, free + 10.0)
            free = label_y
            kind = "guarantee" if "guarantee" in kinds else "deserved" if "deserved" in kinds else "capability"
            lane.levels.append(Level(kind, y, f"{' = '.join(kinds)} {amount:g}", label_y))
        self.picture.lanes.append(lane)
        self.y += height + GAP

    # ---------------------------------------------------------------------------------------------------------- marks

    def _evictions(self) -> None:
        number = 0
        for act in self.record.acts:
            place_ = self.places.get(act.uid)
            if place_ is None:
                continue
            x, y = self.x(act.at), place_[1]
            if act.act == "bind":
                if not self.picture.shared:
                    self.picture.marks.append(Mark("bind", place_[0], y, f"{act.pod} bound to {act.node}"))
                continue
            number += 1
            title = f"{act.pod} evicted at {seconds(act.at)}: {self.plain(act.message)}"
            self.picture.marks.append(Mark("evict", x, y, title, number))
            to = self.places.get(act.preemptor_uid) or self.waits.get(act.preemptor_uid)
            if to is not None:
                self.picture.arrows.append(Arrow(number, curve(x, y, *to), to, act.inferred))

    def _findings(self) -> None:
        queues = {lane.name: lane.y + 10 for lane in self.picture.lanes if lane.kind == "queue"}
        pods = {life.name: self.places.get(life.uid) or self.waits.get(life.uid) for life in self.lives}
        for finding in self.record.findings:
            name = finding.about.rpartition("/")[2]
            place_ = pods.get(name)
            y = place_[1] if place_ else queues.get(name, self.picture.top - 8)
            title = f"monitor {finding.monitor}, {finding.about}: {finding.text}"
            self.picture.marks.append(Mark("finding", self.x(finding.at), y, title))


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


def _offers(name: str, amounts: dict[str, float]) -> str:
    return f"node {name}: " + ", ".join(f"{amount:g} {what}" for what, amount in amounts.items() if what != "pods")


def _range(first: str, last: str) -> str:
    """``node-0000…0083``."""
    same = len(last.rstrip("0123456789"))
    return f"{first}…{last[same if first.startswith(last[:same]) else 0 :]}" if first != last else first


def _together(stays: Sequence[tuple[float, float, float]]) -> Iterable[list[int]]:
    for began, _, _ in stays:
        yield [n for n, (start, end, _) in enumerate(stays) if start <= began < end]


def _thinned(held: Sequence[tuple[float, float]], x: Callable[[float], float]) -> Iterable[tuple[float, float]]:
    """Of several values within a pixel, the last."""
    for _, group in groupby(held, key=lambda it: round(x(it[0]))):
        rows = list(group)
        yield rows[0][0], rows[-1][1]


def _fitting(text: str, room: float) -> str:
    most = int(room / _CHARACTER)
    if len(text) <= most:
        return text
    return text[: most - 1].rstrip() + "…" if most >= 5 else ""
