"""Tables of a feature, as parameters of a template. A column that nobody reads is an error, never ignored."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from kubernetes.utils.quantity import parse_quantity

from ..api.errors import HarnessError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_WORD = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_./|]*[A-Za-z0-9])?")

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
    """An amount of a resource. Raises ValueError."""
    try:
        parse_quantity(text if text == text.strip() else "")  # type: ignore[no-untyped-call]
    except (ValueError, ArithmeticError):
        raise ValueError("write a quantity, for instance: 4, 500m or 8Gi") from None
    return text


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
    found: dict[str, str] = {}
    for part in (part.strip() for part in text.split(",")):
        resource, _, amount = part.partition(" ")
        if not amount.strip():
            raise ValueError("write a list of resources, for instance: cpu 4, memory 8Gi")
        if resource in found:
            raise ValueError(f"{resource} is there twice")
        found[word(resource)] = quantity(amount.strip())
    return found


def yes(text: str) -> bool:
    """`yes` or `no`. Raises ValueError."""
    if text not in ("yes", "no"):
        raise ValueError("write yes or no")
    return text == "yes"


def names(text: str) -> list[str]:
    """`a, b` as [a, b]."""
    return [part.strip() for part in text.split(",") if part.strip()]
