"""Draw the lanes of nodes: one row for each card or a band of cpu, with the pods that held them.

Many nodes share lanes, which show sums by queue.
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

MOST_NODES, MOST_PODS = 40, 400
"""Above either limit, nodes share lanes."""
SHARED_LANES = 12


def draw_nodes(canvas: Canvas) -> None:
    """Draw one lane for each node, or a few lanes for many nodes."""
    nodes = _nodes(canvas)
    busy = sum(life.bound is not None for life in canvas.lives)
    canvas.picture.shared = len(nodes) > MOST_NODES or busy > MOST_PODS
    if canvas.picture.shared:
        _shared_lanes(canvas, nodes)
    else:
        for name, amounts in nodes:
            _node(canvas, name, amounts)


def _nodes(canvas: Canvas) -> list[tuple[str, dict[str, float]]]:
    """Return each node's largest capacity, by name; of many nodes, those that never had a pod are left out."""
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


def _node(canvas: Canvas, name: str, offers: dict[str, float]) -> None:
    dimension = next((resource for resource, amount in offers.items() if is_card(resource) and amount > 0), "cpu")
    capacity = offers.get(dimension, 0.0)
    guests = sorted(
        (life for life in canvas.lives if life.node == name and life.bound is not None),
        key=lambda life: life.bound or 0.0,
    )
    some = [life for life in guests if life.amounts.get(dimension, 0.0) > 0]
    none = [life for life in guests if life.amounts.get(dimension, 0.0) <= 0]
    stays = [(life.bound or 0.0, life.released(canvas.end), life.amounts[dimension]) for life in some]
    parts = place(stays)
    what = spoken(dimension, capacity)  # the node's capacity, even if its pods need more rows
    capacity = max([capacity, *(low + size for found in parts for low, size in found)])
    if is_card(dimension) and capacity <= 32:
        unit = ROW
    else:
        height = min(120.0, max(30.0, 16.0 * max((len(stay) for stay in _together(stays)), default=1)))
        unit = height / (capacity or 1.0)
    height = max(ROW, unit * capacity)
    lane = Lane(name, canvas.y, height, "node", what, title=_offers(name, offers))
    if unit == ROW:
        lane.rows = [canvas.y + ROW * n for n in range(1, round(capacity))]
    for life, found in zip(some, parts, strict=True):
        for n, (low, size) in enumerate(found):
            _bar(canvas, life, canvas.y + low * unit, size * unit, labelled=n == 0)
    canvas.y += height
    if none:
        rows = place([(life.bound or 0.0, life.released(canvas.end), 1.0) for life in none])
        most = min(4.0, max(row[0][0] for row in rows) + 1)
        for life, row in zip(none, rows, strict=True):
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
        offers: dict[str, float] = {}
        for _, amounts in part:
            for name, amount in amounts.items():
                offers[name] = offers.get(name, 0.0) + amount
        dimension = next((resource for resource, amount in offers.items() if is_card(resource) and amount > 0), "cpu")
        height = 34.0
        guests = [life for life in canvas.lives if life.node in names and life.bound is not None]
        detail = f"{count(len(part), 'node')}, {spoken(dimension, offers.get(dimension, 0.0))}"
        lane = Lane(_range(part[0][0], part[-1][0]), canvas.y, height, "shared", detail)
        lane.title = f"{part[0][0]} to {part[-1][0]}"
        stays = [
            (life.bound or 0.0, life.released(canvas.end), life.queue, life.amounts.get(dimension, 0.0))
            for life in guests
        ]
        lane.areas = canvas.stacked(stays, offers.get(dimension, 0.0), canvas.y, height)
        canvas.picture.lanes.append(lane)
        for life in guests:
            canvas.places[life.uid] = (canvas.x(life.bound or 0.0), canvas.y + height / 2)
        canvas.y += height + 6
    canvas.y += GAP - 6


def _offers(name: str, amounts: dict[str, float]) -> str:
    return f"node {name}: " + ", ".join(spoken(what, amount) for what, amount in amounts.items() if what != "pods")


def _range(first: str, last: str) -> str:
    """Return a range of names such as `node-0000…0083`."""
    same = len(last.rstrip("0123456789"))
    return f"{first}…{last[same if first.startswith(last[:same]) else 0 :]}" if first != last else first


def _together(stays: Sequence[tuple[float, float, float]]) -> Iterable[list[int]]:
    for began, _, _ in stays:
        yield [n for n, (start, end, _) in enumerate(stays) if start <= began < end]
