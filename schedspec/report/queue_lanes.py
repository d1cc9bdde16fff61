"""Draw the lanes of queues: what each queue held over time, against its deserved share, guarantee and capability."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from ..monitors.amounts import spoken
from .canvas import Canvas
from .lives import natural
from .objects import is_card
from .paths import band
from .picture import GAP, GUTTER, Area, Lane, Level, main_dimension
from .record import QueueMoment


def draw_queues(canvas: Canvas) -> None:
    moments: dict[str, list[QueueMoment]] = {}
    for moment in canvas.record.queues:
        moments.setdefault(moment.queue, []).append(moment)
    of_pods = {life.queue for life in canvas.lives}
    shown = [
        name
        for name in sorted(moments, key=natural)
        if name in of_pods or (name not in ("root", "default") and any(moment.held for moment in moments[name]))
    ]
    dimension = main_dimension(canvas.record)
    for name in shown[:16]:
        _queue(canvas, name, moments[name], dimension)


def _queue(canvas: Canvas, name: str, moments: Sequence[QueueMoment], dimension: str) -> None:
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
    lane = Lane(name, canvas.y, height, "queue", f"held at most {spoken(dimension, peak)}", colour=colour)
    rows = [(GUTTER, 0.0, 0.0), *((canvas.x(at), 0.0, amount) for at, amount in _thinned(held, canvas.x))]
    lane.areas = [Area(band(rows, canvas.x(canvas.end), base, scale), colour, f"held by queue {name}")]
    by_amount: dict[float, list[str]] = {}
    for kind, amount in limits.items():
        by_amount.setdefault(amount, []).append(kind)
    free = canvas.y - 10.0
    for amount, kinds in sorted(by_amount.items(), reverse=True):
        y = base - amount * scale
        label_y = max(y + 9.5, free + 10.0)
        free = label_y
        kind = "guarantee" if "guarantee" in kinds else "deserved" if "deserved" in kinds else "capability"
        lane.levels.append(Level(kind, y, f"{' = '.join(kinds)} {amount:g}", label_y))
    canvas.picture.lanes.append(lane)
    canvas.y += height + GAP


def _thinned(held: Sequence[tuple[float, float]], x: Callable[[float], float]) -> Iterable[tuple[float, float]]:
    """Yield one value for each pixel: the last one."""
    for _, group in groupby(held, key=lambda point: round(x(point[0]))):
        rows = list(group)
        yield rows[0][0], rows[-1][1]
