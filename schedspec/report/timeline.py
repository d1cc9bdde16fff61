"""Draw a scenario over time: sentences, lanes of nodes, of waiting pods and of queues, marks and arrows."""

from __future__ import annotations

from .axis import seconds
from .canvas import Canvas
from .node_lanes import draw_nodes
from .paths import curve
from .picture import Arrow, Mark, Picture, Step
from .queue_lanes import draw_queues
from .record import ScenarioRecord
from .waiting_lane import draw_waiting


def draw(record: ScenarioRecord) -> Picture:
    """Return the picture of one scenario, in drawing order."""
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
