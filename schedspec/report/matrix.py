"""Compare schedulers and versions, scenario by scenario, from the results of runs: JSON, Markdown, and a report page.

`schedspec matrix` writes these files. Runs of one scheduler in one version on one Kubernetes are one column.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import msgspec
from markupsafe import Markup

from ..results import BY_DESIGN, SIMULATED, Result, RunResults, Verdict, read, where
from . import files, html
from .record import ScenarioRecord, slug

ORDER: tuple[Verdict, ...] = ("error", "failed", "known", "by design", "passed", "lacks", "skipped")
_SIGNS: dict[Verdict, str] = dict(zip(ORDER, "!✗≠≙✓–·", strict=True))
DIFFERS: tuple[Verdict, ...] = ("failed", "known", "by design", "error")
VIEW = "schedulers"
LEGEND = (
    "✓ passed, ✗ failed, ≠ known difference, ≙ differs by design, – lacks what the scenario needs, ! could not be "
    "judged, · skipped"
)


__all__ = ["Cell", "Column", "Matrix", "Row", "make", "markdown", "read", "sums", "table", "view", "write"]


class Column(msgspec.Struct, frozen=True, order=True):
    """One scheduler in one version on one Kubernetes."""

    scheduler: str
    version: str
    kubernetes: str
    """Version of Kubernetes; `simulated` if virtual time decided."""

    @property
    def short(self) -> list[str]:
        """The text below the scheduler's name in the head of a column."""
        kubernetes = self.kubernetes.removeprefix("v")
        parts = [self.version, kubernetes if kubernetes in ("", SIMULATED) else f"on {kubernetes}"]
        return [part for part in parts if part]

    @property
    def title(self) -> str:
        on = f" on Kubernetes {self.kubernetes}" if self.kubernetes else ""
        return f"{self.scheduler} {self.version}".strip() + (f", {SIMULATED}" if self.kubernetes == SIMULATED else on)


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one scenario with one scheduler, over all of its runs."""

    verdict: Verdict
    passed: int
    runs: int
    why: str
    node_id: str = ""
    """The pytest node id of the worst run; matches that of its record."""
    seconds_to_run: float | None
    evictions: float | None
    evicted_to_requested: float | None

    @property
    def text(self) -> str:
        """The sign of the verdict, such as `✓`; `✗ 2 of 3` if only some runs passed."""
        sign = _SIGNS[self.verdict]
        return sign if self.passed in (0, self.runs) else f"{sign} {self.passed} of {self.runs}"

    @property
    def measured(self) -> str:
        """The measurements, for instance `0.31 s to run, 4 evicted, 2 × the requests`; empty if not judged."""
        if self.verdict in ("lacks", "skipped", "error") or self.seconds_to_run is None:
            return ""
        parts = [f"{self.seconds_to_run:.2f} s to run"]
        parts += [f"{self.evictions:g} evicted"] if self.evictions else []
        parts += [] if self.evicted_to_requested is None else [f"{self.evicted_to_requested:g} × the requests"]
        return ", ".join(parts)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario, or one row of its examples; its cells in the order of the columns, None if it was not run."""

    feature: str
    scenario: str
    level: str = ""
    """Conformance level; empty for a scenario without one."""
    cells: list[Cell | None]

    @property
    def differs(self) -> bool:
        """Whether the verdicts differ; `lacks` and `skipped` do not count."""
        return len({cell.verdict for cell in self.cells if cell is not None} - {"lacks", "skipped"}) > 1


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    columns: list[Column]
    rows: list[Row]

    def differences(self) -> Iterator[tuple[Row, Column, Cell]]:
        """Yield each cell that is not as the scenario says."""
        for row in self.rows:
            for column, cell in zip(self.columns, row.cells, strict=True):
                if cell is not None and cell.verdict in DIFFERS:
                    yield row, column, cell

    def totals(self) -> list[dict[Verdict, int]]:
        """Return for each column the number of scenarios of each verdict; they add up to all collected scenarios."""
        found = []
        for at in range(len(self.columns)):
            verdicts = [cell.verdict for row in self.rows if (cell := row.cells[at]) is not None]
            found.append({verdict: verdicts.count(verdict) for verdict in ORDER})
        return found


def make(runs: Iterable[RunResults]) -> Matrix:
    found: dict[tuple[str, str], dict[Column, list[Result]]] = {}
    columns: dict[Column, None] = {}
    levels: dict[tuple[str, str], str] = {}
    for run in runs:
        column = Column(run.scheduler, run.version, where(run.cluster, run.kubernetes))
        columns.setdefault(column)
        for result in run.results:
            key = (result.feature, title_of(result.scenario, result.example))
            levels[key] = result.level or levels.get(key, "")
            place = found.setdefault(key, {})
            place.setdefault(column, []).append(result)
    ordered = sorted(columns)
    rows = []
    for (feature, scenario), of_row in sorted(found.items(), key=lambda entry: entry[0][0]):
        cells = [_cell(of_row.get(head, ())) for head in ordered]
        rows.append(Row(feature=feature, scenario=scenario, level=levels[feature, scenario], cells=cells))
    return Matrix(columns=ordered, rows=rows)


def title_of(scenario: str, example: Mapping[str, str]) -> str:
    """Return the title with the values of a row of examples; values that the title does not use follow in brackets."""
    title = scenario
    for key, value in example.items():
        title = title.replace(f"<{key}>", value)
    rest = [f"{key}: {value}" for key, value in example.items() if f"<{key}>" not in scenario]
    return f"{title} ({', '.join(rest)})" if rest else title


def markdown(matrix: Matrix) -> str:
    """Return one table for each feature, and below the tables the differences."""
    heads = [column.title for column in matrix.columns]
    lines = [LEGEND, "", *table(["", *heads], [[name, *row] for name, row in sums(matrix)]), ""]
    for feature in dict.fromkeys(row.feature for row in matrix.rows):
        rows = [row for row in matrix.rows if row.feature == feature]
        lines += [f"### {feature}", ""]
        body = [[_escaped(row.scenario), *map(_shown, row.cells)] for row in rows]
        lines += [*table(["scenario", *heads], body), ""]
    differences = [
        _item(f"**{column.title}**, {row.feature}, {_escaped(row.scenario)}: {_escaped(cell.why)}")
        for row, column, cell in matrix.differences()
    ]
    return "\n".join([*lines, "### What happened instead", "", *(differences or ["Nothing."])]) + "\n"


def _item(text: str) -> str:
    """Return an item of a list in Markdown, on lines that fit a screen."""
    return textwrap.fill(
        text, 120, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def view(matrix: Matrix, records: Iterable[ScenarioRecord]) -> html.View:
    """Return the page of the report. A cell links to the page of its scenario, if these records contain it."""
    anchors = {_place(scenario.record): scenario.anchor for scenario in html.Report(records).scenarios}
    links = [
        [_link(anchors, column, cell) for column, cell in zip(matrix.columns, row.cells, strict=True)]
        for row in matrix.rows
    ]
    rows = list(zip(matrix.rows, links, strict=True))
    body = html.template("matrix.html.j2").render(
        matrix=matrix, rows=rows, sums=sums(matrix), folders=_by_folder(matrix), legend=LEGEND
    )
    return html.View(VIEW, "What each scheduler does", Markup(body))  # noqa: S704 - escaped by the template


def pictures(matrix: Matrix, records: Iterable[ScenarioRecord]) -> dict[str, str]:
    """Return the picture (SVG) of each difference that has a record, by file name."""
    known = {_place(record): record for record in records}
    found = {}
    for _, column, cell in matrix.differences():
        record = known.get((*msgspec.structs.astuple(column), cell.node_id))
        if record is not None and cell.verdict != "error":
            found[f"{slug(f'{column.scheduler}-{column.version}-{record.anchor}')}.svg"] = html.picture(record)
    return found


def _place(record: ScenarioRecord) -> tuple[str, str, str, str]:
    scheduler, cluster = record.scheduler, record.cluster
    return scheduler.name, scheduler.version, where(cluster.name, cluster.version), record.node_id


def _link(anchors: Mapping[tuple[str, str, str, str], str], column: Column, cell: Cell | None) -> str:
    return anchors.get((*msgspec.structs.astuple(column), cell.node_id), "") if cell is not None else ""


def write(matrix: Matrix, folder: Path, records: Sequence[ScenarioRecord] = ()) -> list[Path]:
    """Write the matrix as JSON, Markdown and a page of the report, and one picture of each difference into `pictures/`.

    Raises:
        OSError: A file cannot be written.
    """
    json = msgspec.json.format(msgspec.json.encode(matrix)).decode()
    texts = {
        "matrix.json": f"{json}\n",
        "matrix.md": markdown(matrix),
        "matrix.html": html.render(records, [view(matrix, records)], opens_on=VIEW),
    }
    texts |= {f"pictures/{name}": svg for name, svg in pictures(matrix, records).items()}
    for name, text in texts.items():
        files.make_folder((folder / name).parent)
        files.write(folder / name, text)
    return [folder / name for name in texts]


def _cell(results: Sequence[Result]) -> Cell | None:
    if not results:
        return None
    worst = min(results, key=lambda result: ORDER.index(result.verdict))
    numbers = [result.numbers for result in results if result.numbers is not None]
    return Cell(
        verdict=worst.verdict,
        passed=sum(result.verdict == "passed" for result in results),
        runs=len(results),
        why=worst.why,
        node_id=worst.node_id,
        seconds_to_run=_mean(run.seconds_to_run for run in numbers),
        evictions=_mean(run.evictions for run in numbers),
        evicted_to_requested=_mean(run.evicted_to_requested for run in numbers),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    found = [value for value in values if value is not None]
    return round(fmean(found), 2) if found else None


def sums(matrix: Matrix) -> list[tuple[str, list[str]]]:
    """Return for each verdict, and for all of them, the number of scenarios of each column."""
    totals = matrix.totals()
    rows = [
        (str(verdict), [str(total[verdict]) for total in totals])
        for verdict in ORDER
        if any(total[verdict] for total in totals)
    ]
    return [*rows, ("all", [str(sum(total.values())) for total in totals])]


def _by_folder(matrix: Matrix) -> list[tuple[str, list[str]]]:
    """Return how many scenarios of each folder each column passed (`7 of 9`); `lacks` and `skipped` do not count."""
    found: dict[str, list[tuple[int, int]]] = {}
    for row in matrix.rows:
        sums = found.setdefault(Path(row.feature).parent.as_posix(), [(0, 0)] * len(matrix.columns))
        for at, cell in enumerate(row.cells):
            if cell is not None and cell.verdict not in ("lacks", "skipped"):
                sums[at] = (sums[at][0] + (cell.verdict == "passed"), sums[at][1] + 1)
    return [
        (folder, [f"{passed} of {judged}" if judged else "–" for passed, judged in sums])
        for folder, sums in sorted(found.items())
    ]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def _shown(cell: Cell | None) -> str:
    return "" if cell is None else f"{cell.text} <br>{cell.measured}" if cell.measured else cell.text


def _escaped(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


NO_LEVEL = "without a level"


def summary(matrix: Matrix) -> str:
    """Return Markdown: each column by conformance level and by verdict, then one row for each difference."""
    heads = [column.title for column in matrix.columns]
    levels = sorted({row.level for row in matrix.rows}, key=lambda name: (not name, name))
    profiles = [(level or NO_LEVEL, [row for row in matrix.rows if row.level == level]) for level in levels]
    passed = [
        [name, *(_passed(rows, number) for number in range(len(heads)))]
        for name, rows in [*profiles, ("all", matrix.rows)]
    ]
    differences = [
        [column.title, f"{row.feature}: {_escaped(row.scenario)}", f"{cell.text} {_escaped(_first_line(cell))}"]
        for row, column, cell in matrix.differences()
    ]
    lines = [
        *table(["profile", *heads], passed),
        "",
        LEGEND,
        "",
        *table(["verdict", *heads], [[name, *row] for name, row in sums(matrix)]),
        "",
        "## Differences",
        "",
        *table(["scheduler", "scenario", "what happens instead"], differences or [["–", "–", "nothing differs"]]),
    ]
    return "\n".join(lines) + "\n"


def _passed(rows: Sequence[Row], number: int) -> str:
    """Return `12 of 13 ✓, 2 –`: passed and judged scenarios, then those that lack a capability or were skipped."""
    cells = [cell for row in rows if (cell := row.cells[number]) is not None]
    lacking = sum(cell.verdict in ("lacks", "skipped") for cell in cells)
    passed = sum(cell.verdict == "passed" for cell in cells)
    parts = [f"{passed} of {len(cells) - lacking} ✓"] if len(cells) > lacking else []
    parts += [f"{lacking} –"] if lacking else []
    return ", ".join(parts)


def _first_line(cell: Cell) -> str:
    return cell.why.strip().partition("\n")[0].removeprefix("known difference: ").removeprefix(f"{BY_DESIGN}: ")
