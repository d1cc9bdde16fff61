"""The matrix on one screen: how many scenarios of each conformance level each scheduler passes, and what differs."""

from __future__ import annotations

from .matrix import LEGEND, Cell, Matrix

NO_LEVEL = "without a level"


def summary(matrix: Matrix) -> str:
    """Return Markdown: one row for each level and column, then one row for each difference."""
    heads = [column.title for column in matrix.columns]
    levels = sorted({row.level for row in matrix.rows}, key=lambda name: (not name, name))
    lines = ["| profile |" + "".join(f" {head} |" for head in heads), "| --- |" + " --- |" * len(heads)]
    for level in levels:
        cells = [_passed(matrix, level, at) for at in range(len(heads))]
        lines.append(f"| {level or NO_LEVEL} |" + "".join(f" {cell} |" for cell in cells))
    lines += [
        "",
        LEGEND,
        "",
        "## Differences",
        "",
        "| scheduler | scenario | what happens instead |",
        "| --- | --- | --- |",
    ]
    differences = [
        f"| {column.title} | {row.feature}: {_escaped(row.scenario)} | {cell.text} {_escaped(_first_line(cell))} |"
        for row in matrix.rows
        for column, cell in zip(matrix.columns, row.cells, strict=True)
        if cell is not None and cell.verdict in ("failed", "known", "error")
    ]
    return "\n".join([*lines, *(differences or ["| – | – | nothing differs |"])]) + "\n"


def _passed(matrix: Matrix, level: str, at: int) -> str:
    """Return `12 of 13 ✓, 2 –`: passed of judged, and how many lack a capability or were skipped."""
    cells = [cell for row in matrix.rows if row.level == level and (cell := row.cells[at]) is not None]
    lacking = sum(cell.verdict in ("lacks", "skipped") for cell in cells)
    passed = sum(cell.verdict == "passed" for cell in cells)
    parts = [f"{passed} of {len(cells) - lacking} ✓"] if len(cells) > lacking else []
    parts += [f"{lacking} –"] if lacking else []
    return ", ".join(parts)


def _first_line(cell: Cell) -> str:
    return cell.why.strip().partition("\n")[0].removeprefix("known difference: ")


def _escaped(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())
