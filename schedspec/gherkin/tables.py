"""Tables of a feature, as parameters of a template. A column that nobody reads is an error, never ignored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..api.errors import HarnessError

Column = tuple[str, Callable[[str], object]]
"""The parameter that a column fills, and how its text is read."""
Table = Sequence[Sequence[str]]


class TableError(HarnessError):
    """A table of a feature that cannot be read."""


def rows(table: Table, columns: Mapping[str, Column], *, required: Sequence[str] = ()) -> list[dict[str, object]]:
    """One dict of parameters a row; an empty cell leaves its parameter out.

    Raises TableError for a column that is unknown, missing or there twice, and for a cell that cannot be read.
    """
    header, found = list(table[0]), []
    for name in header:
        if name not in columns:
            raise TableError(f"unknown column {name!r}; this table takes: {', '.join(columns)}")
        if header.count(name) > 1:
            raise TableError(f"the column {name!r} is there twice")
    for name in required:
        if name not in header:
            raise TableError(f"the column {name!r} is missing; there are: {', '.join(header)}")
    for number, cells in enumerate(table[1:], 1):
        row: dict[str, object] = {}
        for name, cell in zip(header, cells, strict=True):
            parameter, read = columns[name]
            if not cell and name in required:
                raise TableError(f"row {number}: {name!r} is empty")
            if cell:
                try:
                    row[parameter] = read(cell)
                except ValueError as problem:
                    raise TableError(f"row {number}: {name} {cell!r}: {problem}") from None
        found.append(row)
    return found


def amounts(text: str) -> dict[str, str]:
    """`cpu 4, memory 8Gi` as {cpu: 4, memory: 8Gi}. Raises ValueError."""
    found: dict[str, str] = {}
    for part in (part.strip() for part in text.split(",")):
        name, _, amount = part.partition(" ")
        if not amount.strip():
            raise ValueError("write a list of resources, for instance: cpu 4, memory 8Gi")
        found[name] = amount.strip()
    return found


def yes(text: str) -> bool:
    """`yes` or `no`. Raises ValueError."""
    if text not in ("yes", "no"):
        raise ValueError("write yes or no")
    return text == "yes"


def names(text: str) -> list[str]:
    """`a, b` as [a, b]."""
    return [part.strip() for part in text.split(",") if part.strip()]
