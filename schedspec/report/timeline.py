"""Draw a scenario over time, from top to bottom: sentences, lanes, marks and arrows.

A node has a lane with a row for each card, or with a band of cpu, for the pods that held them; many nodes share lanes,
which show sums by queue. In the lane of waiting pods, similar pods share a bar, with their reason below it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from ..monitors.amounts import spoken
from ..observe.view import count
from . import picture
from .axis import seconds
from .lives import Life, natural
from .objects import is_card
from .record import QueueMoment, ScenarioRecord

_WAITING_ROWS = 12
_LINE = int((picture.WIDTH - picture.MARGIN - picture.GUTTER - 8) / picture.CHARACTER)
_LONG = 0.2
"""Seconds of waiting above which the picture shows the reason."""


@dataclass(slots=True)
class _Wait:
    """Similar pods that wait: their bar, the name inside or beside it, and the lines of their reason."""

    lives: list[Life]
    x: float
    until: float
    left: float
    right: float
    name: str
    side: int
    """The place of the name: 0 inside of the bar, 1 right of the bar, -1 left of the bar."""
    reason: list[str]


def draw_waiting(canvas: picture.Canvas) -> None:
    """Draw the pods without a node. If there are many, draw counts by queue, and only the longest waits."""
    if canvas.picture.shared:
        _draw_counts(canvas)
    found = [_wait_of(canvas, lives) for lives in _similar(canvas) if not canvas.picture.shared or lives[0].reasons]
    if not found:
        return
    longest = sorted(found, key=lambda wait: wait.x - wait.until)[: _WAITING_ROWS * 3]
    rows = _rows_of_waits(longest)
    top = canvas.y
    for wait, row in rows:
        _draw_wait(canvas, wait, top + row * picture.ROW)
    most = max(row + 1 + len(wait.reason) for wait, row in rows)
    hidden = len(found) - len(rows)
    detail = f"{hidden} more not shown" if hidden else "for a node"
    canvas.picture.lanes.append(picture.Lane("waiting", top, most * picture.ROW, "waiting", detail))
    canvas.y = top + most * picture.ROW + picture.GAP


def _rows_of_waits(waits: Sequence[_Wait]) -> list[tuple[_Wait, int]]:
    """Assign each wait a row: waits without a reason share rows at the top, the others have rows of their own."""
    unexplained = sorted((wait for wait in waits if not wait.reason), key=lambda wait: wait.left)
    placed = [int(row[0][0]) for row in picture.place([(wait.left, wait.right, 1.0) for wait in unexplained])]
    found = [(wait, row) for wait, row in zip(unexplained, placed, strict=True) if row < _WAITING_ROWS]
    row = max((row + 1 for _, row in found), default=0)
    for wait in sorted((wait for wait in waits if wait.reason), key=lambda wait: wait.x):
        if row >= _WAITING_ROWS * 2:
            break
        found.append((wait, row))
        row += 1 + len(wait.reason)
    return found


def _draw_wait(canvas: picture.Canvas, wait: _Wait, y: float) -> None:
    life = wait.lives[0]
    colour = canvas.colours.get(life.queue, -1)
    width = max(2.0, wait.until - wait.x)
    bar = picture.Bar(wait.x, y + 1.5, width, picture.ROW - 3, colour, life.uid, _tooltip_of_wait(canvas, wait.lives))
    bar.kind, bar.label, bar.note = "wait", wait.name if wait.side == 0 else "", wait.name if wait.side else ""
    bar.note_left = wait.side < 0
    canvas.picture.bars.append(bar)
    longest = max(map(len, wait.reason), default=0) * picture.CHARACTER
    left = max(picture.GUTTER + 4, min(wait.x + 4, picture.WIDTH - picture.MARGIN - longest))
    for number, line in enumerate(wait.reason, 1):
        canvas.picture.texts.append(picture.Text(left, y + number * picture.ROW + picture.ROW * 0.7, line))
    for pod in wait.lives:
        canvas.waits[pod.uid] = (wait.x, y + picture.ROW / 2)


def _draw_counts(canvas: picture.Canvas) -> None:
    """Draw the number of waiting pods of each queue as a chart."""
    intervals = [(life.created, life.waited_until(canvas.end), life.queue, 1.0) for life in canvas.lives]
    if not intervals:
        return
    changes = sorted([(a, 1) for a, *_ in intervals] + [(b, -1) for _, b, *_ in intervals])
    most = max(accumulate(step for _, step in changes))
    lane = picture.Lane("waiting", canvas.y, 44.0, "shared", f"at most {most:,} pods")
    lane.areas = canvas.stacked(intervals, float(most), canvas.y, lane.height)
    canvas.picture.lanes.append(lane)
    for life in canvas.lives:
        canvas.waits[life.uid] = (canvas.x(life.created), canvas.y + 22)
    canvas.y += lane.height + picture.GAP


def _similar(canvas: picture.Canvas) -> Iterable[list[Life]]:
    """Group the pods of a workload that began and stopped waiting together; on shared lanes, whatever the times are."""
    groups: dict[tuple[object, ...], list[Life]] = {}
    for life in canvas.lives:
        key: tuple[object, ...] = (life.workload, life.bound is None)
        if not canvas.picture.shared:
            until = round(canvas.x(life.waited_until(canvas.end)) / 6)
            key = (*key, round(canvas.x(life.created)), until, life.reasons[-1][1] if life.reasons else "")
        groups.setdefault(key, []).append(life)
    return groups.values()


def _wait_of(canvas: picture.Canvas, lives: list[Life]) -> _Wait:
    """Return the bar of similar pods while they wait, with their last reason if they waited for long."""
    began, ended = min(life.created for life in lives), max(life.waited_until(canvas.end) for life in lives)
    x, until = canvas.x(began), canvas.x(ended)
    why = next((life.reasons[-1][1] for life in lives if life.reasons), "")
    is_shown = bool(why) and (ended - began > _LONG or any(life.bound is None for life in lives))
    reason = textwrap.wrap(canvas.plain(why), _LINE, break_on_hyphens=False) if is_shown else []
    name = canvas.names[lives[0].uid] if len(lives) == 1 else f"{len(lives)} pods of {lives[0].workload}"
    inside, behind, before = until - x - 8, picture.WIDTH - picture.MARGIN - until - 8, x - picture.GUTTER - 8
    side = 0 if len(name) * picture.CHARACTER <= inside else 1 if behind >= before else -1
    name = picture.fitting(name, {0: inside, 1: behind, -1: before}[side])
    wide = len(name) * picture.CHARACTER + 8
    left, right = (x - wide if side < 0 else x), (until + wide if side > 0 else until)
    return _Wait(lives, x, until, left, right, name, side, reason)


def _tooltip_of_wait(canvas: picture.Canvas, lives: Sequence[Life]) -> str:
    head = f"{len(lives)} pods of {lives[0].workload}" if len(lives) > 1 else canvas.title(lives[0])
    reasons = (f"at {seconds(t)}: {canvas.plain(why)}" for life in lives[:20] for t, why in life.reasons)
    return "\n".join([head, *dict.fromkeys(reasons)])


MAX_NODES, MAX_PODS = 40, 400
"""Above either limit, nodes share lanes."""
SHARED_LANES = 12


def draw_nodes(canvas: picture.Canvas) -> None:
    nodes = _nodes(canvas)
    busy = sum(life.bound is not None for life in canvas.lives)
    canvas.picture.shared = len(nodes) > MAX_NODES or busy > MAX_PODS
    if canvas.picture.shared:
        _shared_lanes(canvas, nodes)
    for name, amounts in nodes if not canvas.picture.shared else ():
        _node(canvas, name, amounts)


def _nodes(canvas: picture.Canvas) -> list[tuple[str, dict[str, float]]]:
    """Return each node's largest capacity, by name. If there are many nodes, leave out those that never had a pod."""
    used = {life.node for life in canvas.lives if life.bound is not None}
    found: dict[str, dict[str, float]] = {}
    for story in canvas.record.objects:
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
    return sorted(found.items(), key=lambda node: natural(node[0]))


def _node(canvas: picture.Canvas, name: str, allocatable: dict[str, float]) -> None:
    dimension = _dimension(allocatable)
    capacity = allocatable.get(dimension, 0.0)
    lives = sorted(
        (life for life in canvas.lives if life.node == name and life.bound is not None),
        key=lambda life: life.bound or 0.0,
    )
    holders = [life for life in lives if life.amounts.get(dimension, 0.0) > 0]
    others = [life for life in lives if life.amounts.get(dimension, 0.0) <= 0]
    intervals = [(life.bound or 0.0, life.released(canvas.end), life.amounts[dimension]) for life in holders]
    parts = picture.place(intervals)
    detail = spoken(dimension, capacity)  # the node's capacity, even if its pods need more rows
    capacity = max([capacity, *(low + size for found in parts for low, size in found)])
    if is_card(dimension) and capacity <= 32:
        unit = picture.ROW
    else:
        together = (sum(start <= began < end for start, end, _ in intervals) for began, _, _ in intervals)
        height = min(120.0, max(30.0, 16.0 * max(together, default=1)))
        unit = height / (capacity or 1.0)
    height = max(picture.ROW, unit * capacity)
    has = ", ".join(spoken(resource, amount) for resource, amount in allocatable.items() if resource != "pods")
    lane = picture.Lane(name, canvas.y, height, "node", detail, title=f"node {name}: {has}")
    if unit == picture.ROW:
        lane.rows = [canvas.y + picture.ROW * n for n in range(1, round(capacity))]
    for life, found in zip(holders, parts, strict=True):
        for n, (low, size) in enumerate(found):
            _bar(canvas, life, canvas.y + low * unit, size * unit, labelled=n == 0)
    canvas.y += height
    if others:
        rows = picture.place([(life.bound or 0.0, life.released(canvas.end), 1.0) for life in others])
        most = min(4.0, max(row[0][0] for row in rows) + 1)
        for life, row in zip(others, rows, strict=True):
            if row[0][0] < most:
                _bar(canvas, life, canvas.y + row[0][0] * picture.ROW + 1, picture.ROW - 1, labelled=True)
        lane.height += most * picture.ROW + 1
        canvas.y += most * picture.ROW + 1
    canvas.picture.lanes.append(lane)
    canvas.y += picture.GAP


def _bar(canvas: picture.Canvas, life: Life, y: float, height: float, *, labelled: bool) -> None:
    bound = life.bound or 0.0
    x, until = canvas.x(bound), canvas.x(life.released(canvas.end))
    width, y, height = max(2.0, until - x), y + 0.75, max(2.0, height - 1.5)
    canvas.places.setdefault(life.uid, (x, y + height / 2))
    name = canvas.names[life.uid]
    label = picture.fitting(name, width - 14) if labelled and height >= 10 else ""
    colour, title = canvas.colours.get(life.queue, -1), canvas.title(life)
    canvas.picture.bars.append(picture.Bar(x, y, width, height, colour, life.uid, title, label))
    started = canvas.x(life.started) if life.started is not None else until
    if started - x > 1.5:
        canvas.picture.bars.append(picture.Bar(x, y, started - x, height, colour, life.uid, "", kind="starting"))
    if life.leaving is not None and life.leaving < life.released(canvas.end):
        left = canvas.x(life.leaving)
        canvas.picture.bars.append(
            picture.Bar(left, y, max(2.0, until - left), height, colour, life.uid, "", kind="leaving")
        )


def _shared_lanes(canvas: picture.Canvas, nodes: Sequence[tuple[str, dict[str, float]]]) -> None:
    size = -(-len(nodes) // SHARED_LANES)
    for n in range(0, len(nodes), size):
        part = nodes[n : n + size]
        names = {name for name, _ in part}
        allocatable: dict[str, float] = {}
        for _, amounts in part:
            for name, amount in amounts.items():
                allocatable[name] = allocatable.get(name, 0.0) + amount
        dimension, height = _dimension(allocatable), 34.0
        lives = [life for life in canvas.lives if life.node in names and life.bound is not None]
        detail = f"{count(len(part), 'node')}, {spoken(dimension, allocatable.get(dimension, 0.0))}"
        title = f"{part[0][0]} to {part[-1][0]}"
        lane = picture.Lane(_range(part[0][0], part[-1][0]), canvas.y, height, "shared", detail, title=title)
        intervals = [
            (life.bound or 0.0, life.released(canvas.end), life.queue, life.amounts.get(dimension, 0.0))
            for life in lives
        ]
        lane.areas = canvas.stacked(intervals, allocatable.get(dimension, 0.0), canvas.y, height)
        canvas.picture.lanes.append(lane)
        for life in lives:
            canvas.places[life.uid] = (canvas.x(life.bound or 0.0), canvas.y + height / 2)
        canvas.y += height + 6
    canvas.y += picture.GAP - 6


def _dimension(allocatable: dict[str, float]) -> str:
    return next((resource for resource, amount in allocatable.items() if is_card(resource) and amount > 0), "cpu")


def _range(first: str, last: str) -> str:
    """Return a range of names such as `node-0000…0083`."""
    same = len(last.rstrip("0123456789"))
    return f"{first}…{last[same if first.startswith(last[:same]) else 0 :]}" if first != last else first


def draw_queues(canvas: picture.Canvas) -> None:
    moments: dict[str, list[QueueMoment]] = {}
    for moment in canvas.record.queues:
        moments.setdefault(moment.queue, []).append(moment)
    of_pods = {life.queue for life in canvas.lives}
    shown = [
        name
        for name in sorted(moments, key=natural)
        if name in of_pods or (name not in ("root", "default") and any(moment.held for moment in moments[name]))
    ]
    dimension = picture.main_dimension(canvas.record)
    for name in shown[:16]:
        _queue(canvas, name, moments[name], dimension)


def _queue(canvas: picture.Canvas, name: str, moments: Sequence[QueueMoment], dimension: str) -> None:
    height = 40.0
    held = [(moment.at, float(moment.held.get(dimension, 0))) for moment in moments]
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
    base, scale = canvas.y + height, (height - 4) / top
    colour = canvas.colours.get(name, -1)
    peak = max(amount for _, amount in held)
    lane = picture.Lane(name, canvas.y, height, "queue", f"held at most {spoken(dimension, peak)}", colour=colour)
    rows = [(picture.GUTTER, 0.0, 0.0), *((canvas.x(at), 0.0, amount) for at, amount in _thinned(held, canvas.x))]
    lane.areas = [picture.Area(picture.band(rows, canvas.x(canvas.end), base, scale), colour, f"held by queue {name}")]
    by_amount: dict[float, list[str]] = {}
    for kind, amount in limits.items():
        by_amount.setdefault(amount, []).append(kind)
    free = canvas.y - 10.0
    for amount, kinds in sorted(by_amount.items(), reverse=True):
        y = base - amount * scale
        label_y = max(y + 9.5, free + 10.0)
        free = label_y
        kind = "guarantee" if "guarantee" in kinds else "deserved" if "deserved" in kinds else "capability"
        lane.levels.append(picture.Level(kind, y, f"{' = '.join(kinds)} {amount:g}", label_y))
    canvas.picture.lanes.append(lane)
    canvas.y += height + picture.GAP


def _thinned(held: Sequence[tuple[float, float]], x: Callable[[float], float]) -> Iterable[tuple[float, float]]:
    """Yield one value for each pixel: the last one."""
    for _, group in groupby(held, key=lambda point: round(x(point[0]))):
        rows = list(group)
        yield rows[0][0], rows[-1][1]


def draw(record: ScenarioRecord) -> picture.Picture:
    canvas = picture.Canvas(record)
    _steps(canvas)
    draw_nodes(canvas)
    draw_waiting(canvas)
    draw_queues(canvas)
    _acts(canvas)
    _findings(canvas)
    canvas.picture.height = canvas.y + 22
    return canvas.picture


def _steps(canvas: picture.Canvas) -> None:
    free = 0.0
    for number, step in enumerate(canvas.record.sentences, 1):
        if step.verdict == "skipped" and not step.seconds:
            continue
        x = canvas.x(step.began)
        width = max(2.0, canvas.x(step.began + step.seconds) - x - 1)
        label = x + min(width / 2, 8)
        shows = label - 7 >= free
        free = label + 9 if shows else free
        title = f"{number}. {step.keyword} {step.text}, at {seconds(step.began)}, took {seconds(step.seconds)}"
        is_when = step.keyword == "When"
        canvas.picture.steps.append(picture.Step(number, x, width, step.verdict, title, shows, is_when))
    canvas.y = canvas.picture.top = 52.0


def _acts(canvas: picture.Canvas) -> None:
    number = 0
    for act in canvas.record.acts:
        where = canvas.places.get(act.uid)
        if where is None:
            continue
        x, y = canvas.x(act.at), where[1]
        if act.act == "bind":
            if not canvas.picture.shared:
                canvas.picture.marks.append(picture.Mark("bind", where[0], y, f"{act.pod} bound to {act.node}"))
            continue
        number += 1
        title = f"{act.pod} evicted at {seconds(act.at)}: {canvas.plain(act.message)}"
        canvas.picture.marks.append(picture.Mark("evict", x, y, title, number))
        to = canvas.places.get(act.preemptor_uid) or canvas.waits.get(act.preemptor_uid)
        if to is not None:
            canvas.picture.arrows.append(picture.Arrow(number, picture.curve(x, y, *to), to, act.inferred))


def _findings(canvas: picture.Canvas) -> None:
    queues = {lane.name: lane.y + 10 for lane in canvas.picture.lanes if lane.kind == "queue"}
    pods = {life.name: canvas.places.get(life.uid) or canvas.waits.get(life.uid) for life in canvas.lives}
    for finding in canvas.record.findings:
        name = finding.about.rpartition("/")[2]
        where = pods.get(name)
        y = where[1] if where else queues.get(name, canvas.picture.top - 8)
        title = f"monitor {finding.monitor}, {finding.about}: {finding.text}"
        canvas.picture.marks.append(picture.Mark("finding", canvas.x(finding.at), y, title))
