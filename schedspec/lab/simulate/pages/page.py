"""Render one or two worlds as a page that loads nothing, or as a section of another page."""

from __future__ import annotations

import base64
import gzip
import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from markupsafe import Markup

from ....report import files, html
from .charts import FIRST_DATE, Area, Chart, Distribution, Drawn, Line, distribution, moment
from .steps import Steps
from .world import SERIES, WORST, World

_QUEUES = 40
"""Maximum number of queues with a chart; the remaining queues are only in the tables."""
_REASONS = 5
"""Maximum number of reasons shown for a job."""
_LINES = ("deserved", "guarantee", "capability")


@dataclass(frozen=True, slots=True)
class Shown:
    """One world with its charts."""

    world: World
    colours: Mapping[str, int]
    charts: Sequence[Chart]
    drawn: Sequence[Drawn]
    waits: Distribution
    hidden: int
    """The number of queues without a chart."""
    rounded: float
    """Seconds to which times of the charts are rounded."""


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
    """What the template shows."""

    title: str
    shown: Sequence[Shown]
    differences: Sequence[Difference]
    changed: Sequence[tuple[str, float, float]]
    """Jobs whose wait changed most: name, wait before, wait now."""
    data: str
    """The steps and charts for the script: JSON, gzip, base64."""
    start: float

    def at(self, seconds: float) -> str:
        """Format a moment in full."""
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
        """Format a duration with a suitable unit."""
        return _time(seconds)

    @staticmethod
    def share(part: float | None) -> str:
        """Format a part of a whole in percent."""
        return "–" if part is None else f"{part:.1%}"


def make(worlds: Sequence[World], title: str = "") -> Page:
    """Make the content of the page from one world, or from two: before and now."""
    start = min(world.start for world in worlds)
    span = max(world.end.at - start for world in worlds) or 1.0
    longest = max([2.0, *(max(queue.waits, default=0.0) for world in worlds for queue in world.queues.values())])
    names = list(dict.fromkeys(name for world in worlds for name in world.by_use()))
    most = SERIES if len(names) <= SERIES else SERIES - 1
    colours = {name: number for number, name in enumerate(names[:most])}
    shown, packed = [], []
    for index, world in enumerate(worlds):
        other = worlds[1 - index] if len(worlds) == 2 else None
        steps = _steps(world, start)
        charts = list(_charts(world, names, colours))
        drawn = [chart.draw(steps, start, span) for chart in charts]
        waits = distribution(world, colours, other, longest)
        rounded = max((amounts.rounded for amounts in steps.values()), default=0.0)
        shown.append(Shown(world, colours, charts, drawn, waits, max(len(names) - _QUEUES, 0), rounded))
        packed.append(
            {
                "steps": {name: amounts.packed() for name, amounts in steps.items()},
                "charts": [chart.packed() for chart in charts],
            }
        )
    data = msgspec.json.encode({"start": start, "span": span, "worlds": packed})
    text = base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()
    both = (worlds[0], worlds[1]) if len(worlds) == 2 else None
    return Page(
        title or f"{worlds[-1].metrics['jobs']} jobs of {worlds[-1].run.load}",
        shown,
        list(_differences(*both)) if both else [],
        _changed(*both) if both else [],
        text,
        start,
    )


def section(page: Page) -> Markup:
    """Return the content as a section of another page, which has to include `load.css` and `load.js`."""
    return Markup(html.template("load.html.j2").module.content(page))  # type: ignore[attr-defined] # noqa: S704


def write(page: Page, path: Path) -> Path:
    """Write the page as a file of its own. Raises OSError."""
    files.make_folder(path.parent, private=False)
    return files.write(path, html.template("load.html.j2").render(page=page), private=False)


def _steps(world: World, start: float) -> dict[str, Steps]:
    found = {}
    for name in world.queues:
        for kind in ("held", "waiting", *_LINES):
            steps = world.steps(name, start, kind)
            if len(steps.times):
                found[f"{name}.{kind}"] = steps
    return found


def _charts(world: World, names: Sequence[str], colours: Mapping[str, int]) -> Iterator[Chart]:
    known = [name for name in names if name in world.queues]
    others = [name for name in known if name not in colours]

    def areas(kind: str) -> list[Area]:
        found = [Area(colours[name], name, [f"{name}.{kind}"]) for name in known if name in colours]
        rest = [f"{name}.{kind}" for name in others]
        return [*found, Area(7, f"{len(others)} other queues", rest)] if rest else found

    yield Chart("held", "Held by queue", "cards", areas("held"), [Line("cards", value=world.run.cards)])
    yield Chart("waiting", "Jobs waiting by queue", "jobs", areas("waiting"))
    for name in known[:_QUEUES]:
        area = Area(colours.get(name, 7), name, [f"{name}.held"])
        limits = [kind for kind in _LINES if _is_limit(world, name, kind)]
        lines = [Line(kind, f"{name}.{kind}") for kind in limits]
        yield Chart("queue", name, "cards", [area], lines)


def _is_limit(world: World, name: str, kind: str) -> bool:
    """Whether the chart draws a limit: it omits one that is always 0, and a capability that always covers all cards."""
    _, values = world.queues[name].samples.get(kind, ([], []))
    return any(values) and not (kind == "capability" and min(values) >= world.run.cards)


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length * 2:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.3g} s"


_COUNTS = {"jobs", "evicted_pods", "evicted_jobs"}
_SHARES = {"utilisation", "distance_from_deserved"}
_OF_ALL = (
    *((f"wait {part}", ("wait_seconds", part)) for part in ("mean", "p50", "p95", "p99", "max")),
    *((f"completion {part}", ("completion_seconds", part)) for part in ("mean", "p95")),
    *((name.removesuffix("_seconds").replace("_", " "), (name,)) for name in (
        "makespan_seconds", "utilisation", "lost_card_hours", "evicted_pods", "evicted_jobs", "evicted_to_requested",
        "distance_from_deserved", "jain",
    )),
)  # fmt: skip
_MORE_IS_BETTER = {"utilisation", "jain"}
"""Of all other metrics of the table, less is better."""
_OF_A_QUEUE = ("lost_card_hours", "below_deserved_seconds", "below_guarantee_seconds")


def _differences(before: World, after: World) -> Iterator[Difference]:
    compared: list[tuple[str, tuple[str, ...]]] = [*_OF_ALL]
    for name in dict.fromkeys([*before.by_use(), *after.by_use()]):
        compared.append((f"queue {name}: wait p95", ("wait_seconds_by_queue", name, "p95")))
        for metric in _OF_A_QUEUE:
            words = metric.removesuffix("_seconds").replace("_", " ")
            compared.append((f"queue {name}: {words}", ("queues", name, metric)))
    for number, (label, path) in enumerate(compared):
        was, now = _at(before.metrics, path), _at(after.metrics, path)
        if was != now or number < len(_OF_ALL):
            change = "" if was is None or now is None or was == now else _signed(path, now - was)
            more_is_better = path[0] in _MORE_IS_BETTER
            mark = "" if not change else "better" if ((now or 0.0) > (was or 0.0)) is more_is_better else "worse"
            yield Difference(label, _text(path, was), _text(path, now), change, mark)


def _at(metrics: Mapping[str, Any], path: Sequence[str]) -> float | None:
    found: Any = metrics
    for word in path:
        found = found.get(word) if isinstance(found, Mapping) else None
    return found if isinstance(found, (int, float)) else None


def _text(path: Sequence[str], value: float | None) -> str:
    if value is None:
        return "–"
    if any("_seconds" in word for word in (path[0], path[-1])):
        return _time(value)
    if path[-1] in _SHARES:
        return f"{value:.1%}"
    return f"{value:,.0f}" if path[-1] in _COUNTS else f"{value:,.4g}"


def _signed(path: Sequence[str], change: float) -> str:
    return f"{'+' if change > 0 else '−'}{_text(path, abs(change))}"


def _changed(before: World, after: World) -> list[tuple[str, float, float]]:
    both = [(name, before.waited[name], wait) for name, wait in after.waited.items() if name in before.waited]
    found = heapq.nlargest(WORST, both, key=lambda change: abs(change[2] - change[1]))
    return [change for change in found if change[1] != change[2]]
