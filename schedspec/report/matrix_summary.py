"""The matrix on one screen: how many scenarios of each conformance level each scheduler passes, and what differs."""

from __future__ import annotations

from collections.abc import Sequence

from ..results import BY_DESIGN
from .matrix import DIFFERS, LEGEND, Cell, Matrix, Row, sums, table

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
        for row in matrix.rows
        for column, cell in zip(matrix.columns, row.cells, strict=True)
        if cell is not None and cell.verdict in DIFFERS
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


def _escaped(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())
