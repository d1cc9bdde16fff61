"""Scheduler × version × scenario: what each does, from the results of runs. JSON, Markdown, and a page of the report.
`schedspec matrix` writes it. Runs of one scheduler in one version on one Kubernetes are one column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import msgspec
from markupsafe import Markup

from . import files, html
from .record import ScenarioRecord, slug
from .results import Result, RunResults, Verdict, read

_ORDER: tuple[Verdict, ...] = ("error", "failed", "known", "passed", "lacks", "skipped")
_SIGNS: dict[Verdict, str] = {
    "passed": "✓",
    "failed": "✗",
    "known": "≠",
    "error": "!",
    "lacks": "–",
    "skipped": "·",
}
LEGEND = "✓ passed, ✗ failed, ≠ known difference, – lacks what the scenario needs, ! could not be judged, · skipped"


__all__ = ["Cell", "Column", "Matrix", "Row", "make", "markdown", "read", "view", "write"]


class Column(msgspec.Struct, frozen=True, order=True):
    """One scheduler in one version on one Kubernetes."""

    scheduler: str
    version: str
    kubernetes: str

    @property
    def title(self) -> str:
        on = f" on Kubernetes {self.kubernetes}" if self.kubernetes else ""
        return f"{self.scheduler} {self.version}".strip() + on


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """What one scheduler did with one scenario, over all of its runs."""

    verdict: Verdict
    """The worst of the runs."""
    passed: int
    runs: int
    why: str
    node_id: str = ""
    """Of the worst of the runs: its record has the same."""
    seconds_to_run: float | None
    evictions: float | None
    evicted_to_requested: float | None

    @property
    def text(self) -> str:
        """`✓`, or `2 of 3` where the runs differ."""
        sign = _SIGNS[self.verdict]
        return sign if self.passed in (0, self.runs) else f"{sign} {self.passed} of {self.runs}"

    @property
    def measured(self) -> str:
        """The numbers of what ran: `0.31 s to run, 4 evicted, 2 × what was asked for`; empty where nothing did."""
        if self.verdict in ("lacks", "skipped", "error") or self.seconds_to_run is None:
            return ""
        said = [f"{self.seconds_to_run:.2f} s to run"]
        said += [f"{self.evictions:g} evicted"] if self.evictions else []
        said += [] if self.evicted_to_requested is None else [f"{self.evicted_to_requested:g} × what was asked for"]
        return ", ".join(said)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario, or one row of its examples; its cells in the order of the columns, None where it was not run."""

    feature: str
    scenario: str
    cells: list[Cell | None]


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    schema: int = 1
    columns: list[Column]
    rows: list[Row]

    def totals(self) -> list[dict[Verdict, int]]:
        """For each column how many scenarios came to which verdict: they add up to all that were collected."""
        found = []
        for at in range(len(self.columns)):
            verdicts = [cell.verdict for row in self.rows if (cell := row.cells[at]) is not None]
            found.append({verdict: verdicts.count(verdict) for verdict in _ORDER})
        return found


def make(runs: Iterable[RunResults]) -> Matrix:
    """The matrix of these runs. Pure."""
    found: dict[tuple[str, str], dict[Column, list[Result]]] = {}
    columns: dict[Column, None] = {}
    for run in runs:
        column = Column(run.scheduler, run.version, run.kubernetes)
        columns.setdefault(column)
        for result in run.results:
            place = found.setdefault((result.feature, _named(result)), {})
            place.setdefault(column, []).append(result)
    ordered = sorted(columns)
    rows = [
        Row(feature=feature, scenario=scenario, cells=[_cell(cells.get(it, ())) for it in ordered])
        for (feature, scenario), cells in sorted(found.items(), key=lambda it: it[0][0])
    ]
    return Matrix(columns=ordered, rows=rows)


def markdown(matrix: Matrix) -> str:
    """Tables, one a feature, and below them what happened instead."""
    heads = [column.title for column in matrix.columns]
    lines = [LEGEND, "", *_table(["", *heads], [[name, *row] for name, row in _sums(matrix)]), ""]
    for feature in dict.fromkeys(row.feature for row in matrix.rows):
        rows = [row for row in matrix.rows if row.feature == feature]
        lines += [f"### {feature}", ""]
        body = [[_escaped(row.scenario), *map(_shown, row.cells)] for row in rows]
        lines += [*_table(["scenario", *heads], body), ""]
    surprises = [
        f"- **{column.title}**, {row.feature}, {_escaped(row.scenario)}: {_escaped(cell.why)}"
        for row in matrix.rows
        for column, cell in zip(matrix.columns, row.cells, strict=True)
        if cell is not None and cell.verdict in ("failed", "known", "error")
    ]
    return "\n".join([*lines, "### What happened instead", "", *(surprises or ["Nothing."])]) + "\n"


def view(matrix: Matrix, records: Iterable[ScenarioRecord]) -> html.View:
    """The page of the report: a cell leads to the page of its scenario, where these records have it."""
    anchors = {_place(scenario.record): scenario.anchor for scenario in html.Report(records).scenarios}
    links = [
        [_link(anchors, column, cell) for column, cell in zip(matrix.columns, row.cells, strict=True)]
        for row in matrix.rows
    ]
    rows = list(zip(matrix.rows, links, strict=True))
    body = html.template("matrix.html.j2").render(matrix=matrix, rows=rows, sums=_sums(matrix), legend=LEGEND)
    return html.View("schedulers", "What each scheduler does", Markup(body))  # noqa: S704 - escaped by the template


def pictures(matrix: Matrix, records: Iterable[ScenarioRecord]) -> dict[str, str]:
    """The picture (SVG) of each difference that these records have, by the name of its file."""
    known = {_place(it): it for it in records}
    found = {}
    for row in matrix.rows:
        for column, cell in zip(matrix.columns, row.cells, strict=True):
            if cell is None or cell.verdict not in ("failed", "known"):
                continue
            it = known.get((*msgspec.structs.astuple(column), cell.node_id))
            if it is not None:
                found[f"{slug(f'{column.scheduler}-{column.version}-{it.anchor}')}.svg"] = html.picture(it)
    return found


def _place(record: ScenarioRecord) -> tuple[str, str, str, str]:
    return (record.scheduler.name, record.scheduler.version, record.cluster.version, record.node_id)


def _link(anchors: Mapping[tuple[str, str, str, str], str], column: Column, cell: Cell | None) -> str:
    return anchors.get((*msgspec.structs.astuple(column), cell.node_id), "") if cell is not None else ""


def write(matrix: Matrix, folder: Path, records: Sequence[ScenarioRecord] = ()) -> list[Path]:
    """Write matrix.json, matrix.md, matrix.html (the report of these records, with the matrix as a page), and into
    pictures/ one of each difference. Raises OSError.
    """
    json = msgspec.json.format(msgspec.json.encode(matrix)).decode()
    texts = {
        "matrix.json": f"{json}\n",
        "matrix.md": markdown(matrix),
        "matrix.html": html.render(records, [view(matrix, records)]),
    }
    texts |= {f"pictures/{name}": svg for name, svg in pictures(matrix, records).items()}
    for name, text in texts.items():
        files.make_folder((folder / name).parent)
        files.write(folder / name, text)
    return [folder / name for name in texts]


def _named(result: Result) -> str:
    name = result.scenario
    for key, value in result.example.items():
        name = name.replace(f"<{key}>", value)
    rest = [f"{key}: {value}" for key, value in result.example.items() if f"<{key}>" not in result.scenario]
    return f"{name} ({', '.join(rest)})" if rest else name


def _cell(results: Sequence[Result]) -> Cell | None:
    if not results:
        return None
    worst = min(results, key=lambda it: _ORDER.index(it.verdict))
    numbers = [it.numbers for it in results if it.numbers is not None]
    return Cell(
        verdict=worst.verdict,
        passed=sum(it.verdict == "passed" for it in results),
        runs=len(results),
        why=worst.why,
        node_id=worst.node_id,
        seconds_to_run=_mean(it.seconds_to_run for it in numbers),
        evictions=_mean(it.evictions for it in numbers),
        evicted_to_requested=_mean(it.evicted_to_requested for it in numbers),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    found = [it for it in values if it is not None]
    return round(fmean(found), 2) if found else None


def _sums(matrix: Matrix) -> list[tuple[str, list[str]]]:
    totals = matrix.totals()
    rows = [
        (str(verdict), [str(it[verdict]) for it in totals]) for verdict in _ORDER if any(it[verdict] for it in totals)
    ]
    return [*rows, ("all", [str(sum(it.values())) for it in totals])]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def _shown(cell: Cell | None) -> str:
    return "" if cell is None else f"{cell.text} <br>{cell.measured}" if cell.measured else cell.text


def _escaped(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())
