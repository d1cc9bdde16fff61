"""Render one or two worlds as a page that loads nothing, or as a section of another page."""

from __future__ import annotations

import base64
import gzip
import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from markupsafe import Markup

from ....report import files, html
from ..against import verdict
from . import metrics
from .charts import FIRST_DATE, Area, Chart, DrawnChart, Line, distribution, moment
from .world import SERIES, WORST, ResultWorld, StepSeries

_QUEUES = 40
"""Maximum number of queues with a chart; the remaining queues are only in the tables."""
_REASONS = 5
"""Maximum number of reasons shown for a job."""
_LINES = ("deserved", "guarantee", "capability")


@dataclass(frozen=True, slots=True)
class Difference:
    """A metric in two worlds, formatted."""

    name: str
    before: str
    after: str
    change: str
    mark: str
    """`better`, `worse`, or empty."""


@dataclass(frozen=True, slots=True)
class Page:
    title: str
    worlds: Sequence[ResultWorld]
    """One world, or two: before and now."""
    colours: Mapping[str, int]
    """Queue → the number of its colour."""
    charts: Sequence[tuple[Chart, DrawnChart]]
    waits: DrawnChart
    hidden: int
    """The number of queues without a chart."""
    rounded: float
    """Seconds to which times of the charts are rounded."""
    verdict: Mapping[str, Sequence[str]]
    """`better` and `worse` → the metrics of the whole cluster by which the second world is."""
    differences: Sequence[Difference]
    changed: Sequence[tuple[str, float, float]]
    """Jobs whose wait changed most: name, wait before, wait now."""
    parting: float | None
    """Seconds after the start until a queue of one world holds or waits for another amount than in the other world."""
    data: str
    """The steps and charts for the script: JSON, gzip, base64."""
    start: float
    span: float
    named: Callable[[str], str]
    """Replaces the names of jobs in a text by those that the page shows."""

    @property
    def lines(self) -> set[str]:
        """The kinds of lines that the charts have."""
        return {line.kind for chart, _ in self.charts for line in chart.lines}

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Names and values of the inputs and results of a run; both values where two worlds differ."""
        rows = zip(*(self._facts(world) for world in self.worlds), strict=True)
        found = [(row[0][0], " → ".join(dict.fromkeys(value for _, value in row))) for row in rows]
        return [("Worlds", " → ".join(world.title for world in self.worlds)), *found] if self.worlds[1:] else found

    def _facts(self, world: ResultWorld) -> list[tuple[str, str]]:
        run, found, waits = world.run, world.metrics, world.metrics["wait_seconds"]
        until = self.at(world.end.at) + (" (interrupted)" if world.end.interrupted else "")
        spread = " / ".join(metrics.time(waits[part]) for part in ("mean", "p95", "max")) if waits["jobs"] else "–"
        return [
            ("Load", run.load),
            ("Policy", run.policy),
            ("Cluster", f"{run.nodes:,} nodes, {run.cards:,g} cards"),
            ("Until", until),
            ("Jobs", ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(found["outcomes"].items()))),
            ("Wait, mean / p95 / max", spread),
            ("Utilisation", self.share(found["utilisation"])),
            ("Evicted", f"{found['evicted_pods']:,} pods of {found['evicted_jobs']:,} jobs"),
            ("Lost", f"{found['lost_card_hours']:,.1f} of {found['used_card_hours']:,.1f} card-hours"),
        ]

    def at(self, seconds: float) -> str:
        if self.start < FIRST_DATE:
            return moment(seconds, self.start)
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")

    @staticmethod
    def reasons(job: Any) -> tuple[Sequence[Any], int]:
        """Return the reasons for which a job waited longest, in order of time, and the number of further reasons."""
        most = heapq.nlargest(_REASONS, job.waits, key=lambda wait: wait.seconds)
        return sorted(most, key=lambda wait: wait.since), len(job.waits) - len(most)

    @staticmethod
    def time(seconds: float | None) -> str:
        return metrics.time(seconds)

    @staticmethod
    def share(part: float | None) -> str:
        return "–" if part is None else f"{part:.1%}"


def make(worlds: Sequence[ResultWorld], title: str = "", named: Callable[[str], str] = str) -> Page:
    """Make the content of the page from one world, or from two: before and now."""
    start = min(world.start for world in worlds)
    span = max(world.end.at - start for world in worlds) or 1.0
    longest = max([2.0, *(max(queue.waits, default=0.0) for world in worlds for queue in world.queues.values())])
    names = list(dict.fromkeys(name for world in worlds for name in world.by_use()))
    most = SERIES if len(names) <= SERIES else SERIES - 1
    colours = {name: number for number, name in enumerate(names[:most])}
    steps = {f"{number}/{name}": it for number, world in enumerate(worlds) for name, it in _steps(world, start).items()}
    charts = list(_charts(worlds, names, colours, steps))
    packed = {
        "start": start,
        "span": span,
        "steps": {name: amounts.packed() for name, amounts in steps.items()},
        "charts": [chart.packed() for chart in charts],
    }
    both = (worlds[0], worlds[1]) if len(worlds) == 2 else None
    return Page(
        title or f"{worlds[-1].metrics['jobs']:,} jobs of {worlds[-1].run.load}",
        worlds,
        colours,
        [(chart, chart.draw(steps, start, span)) for chart in charts],
        distribution(worlds, colours, longest),
        max(len(names) - _QUEUES, 0),
        max((amounts.rounded for amounts in steps.values()), default=0.0),
        verdict(*(world.metrics for world in both)) if both else {},
        list(_differences(*both)) if both else [],
        _changed(*both) if both else [],
        _parting(steps),
        base64.b64encode(gzip.compress(msgspec.json.encode(packed), 6, mtime=0)).decode(),
        start,
        span,
        named,
    )


def section(page: Page) -> Markup:
    """Return the content as a section of another page, which has to include `load.css` and `load.js`."""
    return Markup(html.template("load.html.j2").module.content(page))  # type: ignore[attr-defined] # noqa: S704


def write(page: Page, path: Path) -> Path:
    """Write the page as a file of its own. Raises OSError."""
    files.make_folder(path.parent, private=False)
    return files.write(path, html.template("load.html.j2").render(page=page), private=False)


def _steps(world: ResultWorld, start: float) -> dict[str, StepSeries]:
    found = {}
    for name in world.queues:
        for kind in ("held", "waiting", *_LINES):
            steps = world.steps(name, start, kind)
            if len(steps.times):
                found[f"{name}.{kind}"] = steps
    return found


def _charts(
    worlds: Sequence[ResultWorld], names: Sequence[str], colours: Mapping[str, int], steps: Mapping[str, StepSeries]
) -> Iterator[Chart]:
    """Yield the charts: the whole cluster, then each queue. A first of two worlds is a dashed line over the second."""
    now = len(worlds) - 1
    known = [name for name in names if any(name in world.queues for world in worlds)]

    def parts(world: int, kind: str, chosen: Sequence[str] = known) -> list[str]:
        return [key for name in chosen if (key := f"{world}/{name}.{kind}") in steps]

    def areas(kind: str) -> list[Area]:
        if now:
            return [Area(7, worlds[now].title, parts(now, kind))]
        others = [name for name in known if name not in colours]
        found = [Area(colours[name], name, parts(now, kind, [name])) for name in known if name in colours]
        return [*found, Area(7, f"{len(others)} other queues", parts(now, kind, others))] if others else found

    def was(kind: str, chosen: Sequence[str] = known) -> list[Line]:
        return [Line("was", worlds[0].title, parts(0, kind, chosen))] if now and parts(0, kind, chosen) else []

    suffix = "" if now else " by queue"
    cards = [Line("cards", "all cards", value=worlds[now].run.cards)]
    if worlds[0].run.cards != worlds[now].run.cards:
        cards.append(Line("cards past", f"all cards {worlds[0].title}", value=worlds[0].run.cards))
    yield Chart("held", f"Held{suffix}", "cards", areas("held"), [*cards, *was("held")])
    yield Chart("waiting", f"Jobs waiting{suffix}", "jobs", areas("waiting"), was("waiting"))
    for name in known[:_QUEUES]:
        area = Area(colours.get(name, 7), worlds[now].title if now else "held", parts(now, "held", [name]))
        yield Chart("queue", name, "cards", [area], [*_limits(worlds, name, steps), *was("held", [name])])


def _limits(worlds: Sequence[ResultWorld], name: str, steps: Mapping[str, StepSeries]) -> Iterator[Line]:
    """Yield the limits of a queue. A limit that both worlds have alike is one line."""
    for kind in _LINES:
        found = [
            (key, world)
            for number, world in enumerate(worlds)
            if name in world.queues and _is_limit(world, name, kind) and (key := f"{number}/{name}.{kind}") in steps
        ]
        if len(found) == 2 and steps[found[0][0]].parting(steps[found[1][0]]) is None:
            del found[0]
        for key, world in found:
            is_now = world is worlds[-1]
            yield Line(kind if is_now else f"{kind} past", kind if is_now else f"{kind} {world.title}", [key])


def _parting(steps: Mapping[str, StepSeries]) -> float | None:
    """Return when a queue of the second world first holds, or waits for, another amount than in the first world."""
    none = StepSeries.of([], [])
    names = {key.partition("/")[2] for key in steps if key.endswith((".held", ".waiting"))}
    found = [steps.get(f"0/{name}", none).parting(steps.get(f"1/{name}", none)) for name in names]
    return min((at for at in found if at is not None), default=None)


def _is_limit(world: ResultWorld, name: str, kind: str) -> bool:
    """Whether the chart draws a limit: it omits one that is always 0, and a capability that always covers all cards."""
    _, values = world.queues[name].samples.get(kind, ([], []))
    return any(values) and not (kind == "capability" and min(values) >= world.run.cards)


def _differences(before: ResultWorld, after: ResultWorld) -> Iterator[Difference]:
    queues = dict.fromkeys([*before.by_use(), *after.by_use()])
    compared = [*metrics.OF_ALL, *(found for name in queues for found in metrics.of_queue(name))]
    for number, (label, path) in enumerate(compared):
        was, now = metrics.value(before.metrics, path), metrics.value(after.metrics, path)
        if was != now or number < len(metrics.OF_ALL):
            change = "" if was is None or now is None or was == now else metrics.signed(path, now - was)
            before_text, after_text = metrics.text(path, was), metrics.text(path, now)
            yield Difference(label, before_text, after_text, change, metrics.mark(path, was, now))


def _changed(before: ResultWorld, after: ResultWorld) -> list[tuple[str, float, float]]:
    both = [(name, before.waited[name], wait) for name, wait in after.waited.items() if name in before.waited]
    found = heapq.nlargest(WORST, both, key=lambda change: abs(change[2] - change[1]))
    return [change for change in found if change[1] != change[2]]
