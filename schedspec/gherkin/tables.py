"""Tables of a feature, as parameters of a template. A column that nobody reads is an error, never ignored.

A `Shape` says what a table may look like. The collection asks it for what is wrong with a table, all of it, and the
step for the rows: both read with the same columns.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kubernetes.utils.quantity import parse_quantity

from ..api.errors import HarnessError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_WHOLE = re.compile(r"-?[0-9]+")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_WORD = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_./|]*[A-Za-z0-9])?")

Column = tuple[str, Callable[[str], object]]
"""The parameter that a column fills, and how its text is read."""
Table = Sequence[Sequence[str]]


class TableError(HarnessError):
    """A table of a feature that cannot be read."""


Row = dict[str, object]
Flaw = tuple[int, str]
"""The row that it is in, 0 for the header, and what is wrong."""
Judge = Callable[[Row], Iterator[tuple[str, str]]]
"""What is wrong with a row as a whole, and the kind of thing that puts it right where one is there (empty: none)."""


def _nothing(_: Row) -> Iterator[tuple[str, str]]:
    return iter(())


@dataclass(frozen=True)
class Shape:
    """What a table of a sentence may look like: its columns, those that it needs, and what a row must not say."""

    columns: Mapping[str, Column]
    required: tuple[str, ...] = ()
    judge: Judge = _nothing
    refers: Mapping[str, str] = field(default_factory=dict)
    """Columns whose cells name things that other sentences have made, and what kind of things."""

    def rows(self, table: Table) -> list[Row]:
        """One dict of parameters a row, as `rows` gives them. Raises TableError."""
        return rows(table, self.columns, required=self.required)

    def read(self, table: Table) -> tuple[list[Row], list[Flaw]]:
        """The rows as far as they can be read, and everything that cannot."""
        return _read(table, self.columns, self.required)

    def cells(self, table: Table) -> Iterator[tuple[int, str, str]]:
        """Row, kind and text of each cell that refers to something."""
        for place, column in enumerate(table[0]):
            if column in self.refers:
                yield from ((n, self.refers[column], row[place]) for n, row in enumerate(table[1:], 1) if row[place])

    def called(self, names: Mapping[str, str], header: Sequence[str]) -> Shape:
        """The same with columns of other names (ours → theirs); one that the header calls as we do keeps its name."""

        def name_of(column: str) -> str:
            return column if column in header else names.get(column, column)

        return replace(
            self,
            columns={name_of(it): column for it, column in self.columns.items()},
            required=tuple(map(name_of, self.required)),
            refers={name_of(it): kind for it, kind in self.refers.items()},
        )


def rows(table: Table, columns: Mapping[str, Column], *, required: Sequence[str] = ()) -> list[Row]:
    """One dict of parameters a row; an empty cell leaves its parameter out.

    Raises TableError for columns that are unknown, missing or there twice, and for cells that cannot be read.
    """
    found, flaws = _read(table, columns, required)
    if flaws:
        raise TableError("\n".join(f"row {row}: {text}" if row else text for row, text in flaws))
    return found


def _read(table: Table, columns: Mapping[str, Column], required: Sequence[str]) -> tuple[list[Row], list[Flaw]]:
    header, found = list(table[0]), []
    flaws = [(0, text) for text in _header_flaws(header, columns, required)]
    for number, cells in enumerate(table[1:], 1):
        row: Row = {}
        for name, cell in zip(header, cells, strict=True):
            parameter, read = columns.get(name, ("", str))
            if not cell and name in required:
                flaws.append((number, f"{name!r} is empty"))
            if cell and parameter:
                try:
                    row[parameter] = read(cell)
                except ValueError as problem:
                    flaws.append((number, f"{name} {cell!r}: {problem}"))
        found.append(row)
    return found, flaws


def _header_flaws(header: Sequence[str], columns: Mapping[str, Column], required: Sequence[str]) -> Iterator[str]:
    unknown = [name for name in dict.fromkeys(header) if name not in columns]
    if unknown:
        told = ", ".join(f"{name!r}{nearest(name, set(columns) - set(header))}" for name in unknown)
        yield f"unknown column{'s' * (len(unknown) > 1)} {told}; this table takes: {', '.join(columns)}"
    for name in dict.fromkeys(header):
        if header.count(name) > 1:
            yield f"the column {name!r} is there twice"
    for name in required:
        if name not in header:
            yield f"the column {name!r} is missing; there are: {', '.join(header)}"


def nearest(word: str, known: Collection[str], cutoff: float = 0.6) -> str:
    """` (is 'weight' meant?)`, or nothing where no known word is near."""
    found = difflib.get_close_matches(word, sorted(known), n=1, cutoff=cutoff)
    return f" (is {found[0]!r} meant?)" if found else ""


def name(text: str) -> str:
    """The name of an object. Raises ValueError."""
    if not _NAME.fullmatch(text):
        raise ValueError("write a name as Kubernetes takes it: lower-case letters, digits, '-' and '.'")
    return text


def word(text: str) -> str:
    """One word: a card's model (`A|B` for either), an action, a value of an annotation. Raises ValueError."""
    if not _WORD.fullmatch(text):
        raise ValueError("write one word: letters, digits and any of - _ . / |")
    return text


def quantity(text: str) -> str:
    """An amount of a resource, not below nothing. Raises ValueError."""
    try:
        amount = parse_quantity(text if text == text.strip() else "")  # type: ignore[no-untyped-call]
    except (ValueError, ArithmeticError):
        amount = None
    if amount is None or not amount.is_finite() or amount < 0:
        raise ValueError("write a quantity, for instance: 4, 500m or 8Gi")
    return text


def whole(text: str) -> int:
    """A whole number. Raises ValueError."""
    if not _WHOLE.fullmatch(text):
        raise ValueError("write a whole number, for instance: 3")
    return int(text)


def count(text: str) -> int:
    """A whole number that is not below 0. Raises ValueError."""
    number = whole(text)
    if number < 0:
        raise ValueError("write a whole number that is not below 0")
    return number


def seconds(text: str) -> float:
    """How many seconds `500ms` or `1m30s` are. Raises ValueError."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError("write a duration, for instance: 500ms, 2s or 1m30s")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def duration(text: str) -> str:
    """How long, as it is written. Raises ValueError."""
    seconds(text)
    return text


def amounts(text: str) -> dict[str, str]:
    """`cpu 4, memory 8Gi` as {cpu: 4, memory: 8Gi}. Raises ValueError."""
    return {resource: quantity(amount) for resource, amount in claims(text).items()}


def claims(text: str) -> dict[str, str]:
    """As `amounts`, where an amount may be none: what the API server is to refuse. Raises ValueError."""
    found: dict[str, str] = {}
    for part in (part.strip() for part in text.split(",")):
        resource, _, amount = part.partition(" ")
        if not amount.strip():
            raise ValueError("write a list of resources, for instance: cpu 4, memory 8Gi")
        if resource in found:
            raise ValueError(f"{resource} is there twice")
        found[word(resource)] = amount.strip()
    return found


def yes(text: str) -> bool:
    """`yes` or `no`. Raises ValueError."""
    if text not in ("yes", "no"):
        raise ValueError("write yes or no")
    return text == "yes"


def names(text: str) -> list[str]:
    """`a, b` as [a, b]."""
    return [part.strip() for part in text.split(",") if part.strip()]
