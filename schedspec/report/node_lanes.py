"""Draw one lane for each node: a row for each card, or a band of cpu, with the pods that held them.

If there are many nodes, several share a lane, which shows sums by queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..monitors.amounts import spoken
from ..observe.view import count
from .canvas import Canvas, fitting
from .lives import Life, natural
from .objects import is_card
from .picture import GAP, ROW, Bar, Lane
from .slots import place

MAX_NODES, MAX_PODS = 40, 400
"""Above either limit, nodes share lanes."""
SHARED_LANES = 12


def draw_nodes(canvas: Canvas) -> None:
    nodes = _nodes(canvas)
    busy = sum(life.bound is not None for life in canvas.lives)
    canvas.picture.shared = len(nodes) > MAX_NODES or busy > MAX_PODS
    if canvas.picture.shared:
        _shared_lanes(canvas, nodes)
    else:
        for name, amounts in nodes:
            _node(canvas, name, amounts)


def _nodes(canvas: Canvas) -> list[tuple[str, dict[str, float]]]:
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


def _node(canvas: Canvas, name: str, allocatable: dict[str, float]) -> None:
    dimension = _dimension(allocatable)
    capacity = allocatable.get(dimension, 0.0)
    lives = sorted(
        (life for life in canvas.lives if life.node == name and life.bound is not None),
        key=lambda life: life.bound or 0.0,
    )
    holders = [life for life in lives if life.amounts.get(dimension, 0.0) > 0]
    others = [life for life in lives if life.amounts.get(dimension, 0.0) <= 0]
    intervals = [(life.bound or 0.0, life.released(canvas.end), life.amounts[dimension]) for life in holders]
    parts = place(intervals)
    detail = spoken(dimension, capacity)  # the node's capacity, even if its pods need more rows
    capacity = max([capacity, *(low + size for found in parts for low, size in found)])
    if is_card(dimension) and capacity <= 32:
        unit = ROW
    else:
        height = min(120.0, max(30.0, 16.0 * max(map(len, _overlaps(intervals)), default=1)))
        unit = height / (capacity or 1.0)
    height = max(ROW, unit * capacity)
    lane = Lane(name, canvas.y, height, "node", detail, title=_tooltip(name, allocatable))
    if unit == ROW:
        lane.rows = [canvas.y + ROW * n for n in range(1, round(capacity))]
    for life, found in zip(holders, parts, strict=True):
        for n, (low, size) in enumerate(found):
            _bar(canvas, life, canvas.y + low * unit, size * unit, labelled=n == 0)
    canvas.y += height
    if others:
        rows = place([(life.bound or 0.0, life.released(canvas.end), 1.0) for life in others])
        most = min(4.0, max(row[0][0] for row in rows) + 1)
        for life, row in zip(others, rows, strict=True):
            if row[0][0] < most:
                _bar(canvas, life, canvas.y + row[0][0] * ROW + 1, ROW - 1, labelled=True)
        lane.height += most * ROW + 1
        canvas.y += most * ROW + 1
    canvas.picture.lanes.append(lane)
    canvas.y += GAP


def _bar(canvas: Canvas, life: Life, y: float, height: float, *, labelled: bool) -> None:
    bound = life.bound or 0.0
    x, until = canvas.x(bound), canvas.x(life.released(canvas.end))
    width, y, height = max(2.0, until - x), y + 0.75, max(2.0, height - 1.5)
    canvas.places.setdefault(life.uid, (x, y + height / 2))
    name = canvas.names[life.uid]
    label = fitting(name, width - 14) if labelled and height >= 10 else ""
    colour, title = canvas.colours.get(life.queue, -1), canvas.title(life)
    canvas.picture.bars.append(Bar(x, y, width, height, colour, life.uid, title, label))
    started = canvas.x(life.started) if life.started is not None else until
    if started - x > 1.5:
        canvas.picture.bars.append(Bar(x, y, started - x, height, colour, life.uid, "", kind="starting"))
    if life.leaving is not None and life.leaving < life.released(canvas.end):
        left = canvas.x(life.leaving)
        canvas.picture.bars.append(Bar(left, y, max(2.0, until - left), height, colour, life.uid, "", kind="leaving"))


def _shared_lanes(canvas: Canvas, nodes: Sequence[tuple[str, dict[str, float]]]) -> None:
    size = -(-len(nodes) // SHARED_LANES)
    for n in range(0, len(nodes), size):
        part = nodes[n : n + size]
        names = {name for name, _ in part}
        allocatable: dict[str, float] = {}
        for _, amounts in part:
            for name, amount in amounts.items():
                allocatable[name] = allocatable.get(name, 0.0) + amount
        dimension = _dimension(allocatable)
        height = 34.0
        lives = [life for life in canvas.lives if life.node in names and life.bound is not None]
        detail = f"{count(len(part), 'node')}, {spoken(dimension, allocatable.get(dimension, 0.0))}"
        lane = Lane(_range(part[0][0], part[-1][0]), canvas.y, height, "shared", detail)
        lane.title = f"{part[0][0]} to {part[-1][0]}"
        intervals = [
            (life.bound or 0.0, life.released(canvas.end), life.queue, life.amounts.get(dimension, 0.0))
            for life in lives
        ]
        lane.areas = canvas.stacked(intervals, allocatable.get(dimension, 0.0), canvas.y, height)
        canvas.picture.lanes.append(lane)
        for life in lives:
            canvas.places[life.uid] = (canvas.x(life.bound or 0.0), canvas.y + height / 2)
        canvas.y += height + 6
    canvas.y += GAP - 6


def _dimension(allocatable: dict[str, float]) -> str:
    return next((resource for resource, amount in allocatable.items() if is_card(resource) and amount > 0), "cpu")


def _tooltip(node: str, amounts: dict[str, float]) -> str:
    return f"node {node}: " + ", ".join(spoken(name, amount) for name, amount in amounts.items() if name != "pods")


def _range(first: str, last: str) -> str:
    """Return a range of names such as `node-0000…0083`."""
    same = len(last.rstrip("0123456789"))
    return f"{first}…{last[same if first.startswith(last[:same]) else 0 :]}" if first != last else first


def _overlaps(intervals: Sequence[tuple[float, float, float]]) -> Iterable[list[int]]:
    for began, _, _ in intervals:
        yield [n for n, (start, end, _) in enumerate(intervals) if start <= began < end]
