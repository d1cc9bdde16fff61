"""Compare the results of two runs: flipped verdicts, changed numbers of evictions, changed times until pods run.

`schedspec report --against OTHER` prints the comparison and adds it to the page. Scenarios are matched by feature, name
and example. Of repeated runs of a scenario, the worst verdict and the means of the numbers count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import msgspec
from markupsafe import Markup

from ..results import RunResults
from . import html, matrix
from .matrix import Cell

VIEW = "against"
_SLOWER, _SECONDS = 1.5, 0.5
"""A smaller factor, or fewer seconds, between two times is noise of the machine and no difference."""

Kind = Literal["verdict", "evictions", "time", "new", "gone"]


class Difference(msgspec.Struct, frozen=True):
    """One difference: `before` is the other run's value, `after` this run's."""

    kind: Kind
    feature: str
    scenario: str
    before: str = ""
    after: str = ""
    why: str = ""
    """The reason of a verdict that changed."""


def compare(before: Iterable[RunResults], after: Iterable[RunResults]) -> list[Difference]:
    """Return what differs between two runs, verdicts first. Pure."""
    old, new = _cells(before), _cells(after)
    order: tuple[Kind, ...] = ("verdict", "evictions", "time", "new", "gone")
    found = [difference for place in sorted(old.keys() | new.keys()) for difference in _differences(place, old, new)]
    return sorted(found, key=lambda difference: order.index(difference.kind))


def lines(found: list[Difference]) -> Iterator[str]:
    for difference in found:
        change = " → ".join(filter(None, (difference.before, difference.after)))
        yield f"{_WORDS[difference.kind]}: {difference.feature}: {difference.scenario}: {change}"
    if not found:
        yield "no difference: the same verdicts, evictions and times"


def view(found: list[Difference], other: str) -> html.View:
    """Return the page of the report that shows the differences."""
    body = html.template("against.html.j2").render(found=found, words=_WORDS, other=other)
    return html.View(VIEW, f"Against {other}", Markup(body))  # noqa: S704 - escaped by the template


_WORDS: dict[Kind, str] = {
    "verdict": "verdict",
    "evictions": "evictions",
    "time": "seconds until pods run",
    "new": "only in this run",
    "gone": "only in the other run",
}
_Place = tuple[str, str]


def _cells(runs: Iterable[RunResults]) -> Mapping[_Place, Cell]:
    """Return each scenario's cell; the worst if one run has several schedulers."""
    found: dict[_Place, Cell] = {}
    for row in matrix.make(runs).rows:
        cells = [cell for cell in row.cells if cell is not None]
        found[row.feature, row.scenario] = min(cells, key=lambda cell: matrix.ORDER.index(cell.verdict))
    return found


def _differences(place: _Place, old: Mapping[_Place, Cell], new: Mapping[_Place, Cell]) -> Iterator[Difference]:
    before, after = old.get(place), new.get(place)
    if before is None or after is None:
        only = before or after
        yield Difference("gone" if after is None else "new", *place, "", only.verdict if only is not None else "")
        return
    if before.verdict != after.verdict:
        yield Difference("verdict", *place, before.verdict, after.verdict, after.why or before.why)
    if before.evictions != after.evictions and None not in (before.evictions, after.evictions):
        yield Difference("evictions", *place, f"{before.evictions:g}", f"{after.evictions:g}")
    less, more = sorted((before.seconds_to_run or 0.0, after.seconds_to_run or 0.0))
    if less and more - less > _SECONDS and more > _SLOWER * less:
        yield Difference("time", *place, f"{before.seconds_to_run:.2f} s", f"{after.seconds_to_run:.2f} s")
