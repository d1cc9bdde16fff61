"""Draw a scenario over time: sentences, lanes of nodes, of waiting pods and of queues, marks and arrows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from ..monitors.amounts import spoken
from .axis import seconds
from .canvas import Canvas, band, curve
from .lives import natural
from .node_lanes import draw_nodes
from .objects import is_card
from .picture import GAP, GUTTER, Area, Arrow, Lane, Level, Mark, Picture, Step, main_dimension
from .record import QueueMoment, ScenarioRecord
from .waiting_lane import draw_waiting


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


def draw(record: ScenarioRecord) -> Picture:
    canvas = Canvas(record)
    _steps(canvas)
    draw_nodes(canvas)
    draw_waiting(canvas)
    draw_queues(canvas)
    _acts(canvas)
    _findings(canvas)
    canvas.picture.height = canvas.y + 22
    return canvas.picture


def _steps(canvas: Canvas) -> None:
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
        canvas.picture.steps.append(Step(number, x, width, step.verdict, title, shows, is_when))
    canvas.y = canvas.picture.top = 52.0


def _acts(canvas: Canvas) -> None:
    number = 0
    for act in canvas.record.acts:
        where = canvas.places.get(act.uid)
        if where is None:
            continue
        x, y = canvas.x(act.at), where[1]
        if act.act == "bind":
            if not canvas.picture.shared:
                canvas.picture.marks.append(Mark("bind", where[0], y, f"{act.pod} bound to {act.node}"))
            continue
        number += 1
        title = f"{act.pod} evicted at {seconds(act.at)}: {canvas.plain(act.message)}"
        canvas.picture.marks.append(Mark("evict", x, y, title, number))
        to = canvas.places.get(act.preemptor_uid) or canvas.waits.get(act.preemptor_uid)
        if to is not None:
            canvas.picture.arrows.append(Arrow(number, curve(x, y, *to), to, act.inferred))


def _findings(canvas: Canvas) -> None:
    queues = {lane.name: lane.y + 10 for lane in canvas.picture.lanes if lane.kind == "queue"}
    pods = {life.name: canvas.places.get(life.uid) or canvas.waits.get(life.uid) for life in canvas.lives}
    for finding in canvas.record.findings:
        name = finding.about.rpartition("/")[2]
        where = pods.get(name)
        y = where[1] if where else queues.get(name, canvas.picture.top - 8)
        title = f"monitor {finding.monitor}, {finding.about}: {finding.text}"
        canvas.picture.marks.append(Mark("finding", canvas.x(finding.at), y, title))
