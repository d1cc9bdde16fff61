"""Read tables of a feature as parameters of a template. An unknown column is an error; no column is ignored.

A `Shape` declares the form of a table. The collection uses it to report all problems of a table, and the step uses it
to read the rows: both use the same columns.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, cast

from kubernetes.utils.quantity import parse_quantity

from ..api.errors import HarnessError
from ..api.kinds import GPU

BY_RESOURCE = "resources"
"""The parameter of all columns that have a resource's name: resource → amount."""
ANY_RESOURCE = "any resource by its name, such as amd.com/gpu"
"""The last entry in the list of columns of a table that accepts resources."""
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_QUANTITY = re.compile(r"\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?")
"""Kubernetes' own form; `parse_quantity` of the client accepts blanks in it."""
_MEBIBYTES = {"Mi": 1, "Gi": 1024}
_WHOLE = re.compile(r"-?[0-9]{1,10}")
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_KEY = re.compile(rf"((?!.{{254,}}/){_LABEL}(\.{_LABEL})*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NOT_EXTENDED = re.compile(r"requests\.|(.*\.)?kubernetes\.io/")
"""Beginnings of names of resources that no device plugin may announce."""

LARGEST = 2**31 - 1
"""Largest number that Kubernetes' fields for weights, priorities and replicas hold."""
LEAST_MEMORY = 2**20
"""A smaller amount of memory is a number whose unit was forgotten."""
MOST = 150_000
"""Maximum number of pods, or of cards of a row."""
LONGEST_NAME = 63
"""Maximum number of characters of a label's value."""
LONGEST_SPACE = 16
"""Maximum number of characters of the name of a namespace."""
RESOURCES = {"gpus": GPU, "gpu": GPU, "cards": GPU}
"""Short names of resources in lists of amounts, such as `cpu 8, gpus 16`."""

Column = tuple[str, Callable[[str], object]]
"""The parameter of a column, and the function that reads its text.

`GROUP KEY` names one value of the parameter GROUP, which several columns fill together.
"""
Table = Sequence[Sequence[str]]


class TableError(HarnessError):
    """A table of a feature that cannot be read."""


Row = dict[str, object]
Amounts = Mapping[str, Decimal]
"""Resource → amount."""
Flaw = tuple[int, str]
"""The number of a row (0 for the header), and its problem."""
Judge = Callable[[Row], Iterator[tuple[str, str]]]
"""Yield each problem of a row as a whole: the kind of thing whose presence solves it (or empty), and the text."""


def nothing(_: object) -> Iterator[Any]:
    """Yield no problem and no thing."""
    return iter(())


def one_row(rows: Sequence[Row]) -> Iterator[Flaw]:
    """Report the second row of a sentence about one thing: with several, it would say nothing of which it means."""
    if len(rows) > 1:
        yield 2, "this sentence is about one thing: keep one row, and write a sentence for each other one"


def nowhere(_: Row) -> Amounts:
    """Return no amounts."""
    return {}


@dataclass(frozen=True)
class Shape:
    """The form of a sentence's table: its columns, the required ones, and a check of each row."""

    columns: Mapping[str, Column]
    required: tuple[str, ...] = ()
    judge: Judge = nothing
    refers: Mapping[str, str] = field(default_factory=dict)
    """Columns whose cells name things that other sentences create → the kinds of these things."""
    unique: str = ""
    """The column whose cells must be unique; empty if there is none."""
    needs: Callable[[Row], Iterable[tuple[str, str]]] = nothing
    """Kind and name of each thing that a row uses; a sentence of its scenario, also a later one, must create it."""
    settings: frozenset[str] = frozenset()
    """Columns that have an effect only if the policy reads them."""
    parent: str = ""
    """The column that names the parent of the thing in the column `unique`; empty if the things form no tree."""
    judge_all: Callable[[Sequence[Row]], Iterator[Flaw]] = nothing
    """Yield each contradiction between rows."""
    provides: Callable[[Row], Amounts] = nowhere
    """Return the capacity that a row adds to the cluster."""
    reserves: Callable[[Row], Amounts] = nowhere
    """Return what a row keeps for the thing in the column `unique`: a guarantee."""

    def rows(self, table: Table) -> list[Row]:
        """Return one dict of parameters for each row.

        Raises:
            TableError: The table cannot be read.
        """
        return rows(table, self.columns, required=self.required)

    def read(self, table: Table) -> tuple[list[Row], list[Flaw]]:
        """Return the rows that can be read, and all problems."""
        return _read(table, self.columns, self.required)

    def repeated(self, table: Table) -> Iterator[tuple[int, int, str]]:
        """Yield each row with a repeated name, the earlier row with the same name, and the name."""
        if self.unique not in table[0]:
            return
        place, seen = list(table[0]).index(self.unique), dict[str, int]()
        for number, cells in enumerate(table[1:], 1):
            if cells[place] in seen:
                yield number, seen[cells[place]], cells[place]
            seen.setdefault(cells[place], number)

    def filled(self, table: Table, columns: Collection[str]) -> Iterator[tuple[int, str, str]]:
        """Yield row, column and text of each filled cell of these columns."""
        for place, column in enumerate(table[0]):
            if column in columns:
                yield from ((n, column, row[place]) for n, row in enumerate(table[1:], 1) if row[place])

    def with_names(self, names: Mapping[str, str], header: Sequence[str]) -> Shape:
        """Return this shape with other column names (ours → theirs); a column with our name in the header keeps it."""

        def name_of(column: str) -> str:
            return column if column in header else names.get(column, column)

        return replace(
            self,
            columns={name_of(ours): column for ours, column in self.columns.items()},
            required=tuple(map(name_of, self.required)),
            unique=name_of(self.unique),
            refers={name_of(ours): kind for ours, kind in self.refers.items()},
            settings=frozenset(map(name_of, self.settings)),
            parent=name_of(self.parent),
        )


def rows(table: Table, columns: Mapping[str, Column], *, required: Sequence[str] = ()) -> list[Row]:
    """Return one dict of parameters for each row; an empty cell leaves its parameter out.

    Raises:
        TableError: A column is unknown, missing or repeated, or a cell cannot be read.
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
            parameter, read = columns.get(name) or _column_of_resource(name, columns) or ("", str)
            if not cell and name in required:
                flaws.append((number, f"{name!r} is empty"))
            if cell and parameter:
                try:
                    group, _, key = parameter.partition(" ")
                    if key:
                        row[group] = {**cast("dict[str, object]", row.get(group, {})), key: read(cell)}
                    else:
                        row[parameter] = read(cell)
                except ValueError as problem:
                    flaws.append((number, f"{name} {cell!r}: {problem}"))
        found.append(row)
    return found, flaws


def _header_flaws(header: Sequence[str], columns: Mapping[str, Column], required: Sequence[str]) -> Iterator[str]:
    unknown = [name for name in dict.fromkeys(header) if name not in columns and not _column_of_resource(name, columns)]
    if unknown:
        listed = ", ".join(f"{name!r}{nearest(name, set(columns) - set(header))}" for name in unknown)
        accepted = ", ".join(columns) + (f"; {ANY_RESOURCE}" if _takes_resources(columns) else "")
        yield f"unknown column{'s' * (len(unknown) > 1)} {listed}; this table takes: {accepted}"
    for name in dict.fromkeys(header):
        if header.count(name) > 1:
            yield f"the column {name!r} appears twice"
    first: dict[str, str] = {}
    for name in dict.fromkeys(header):
        parameter, _ = columns.get(name) or _column_of_resource(name, columns) or ("", str)
        if parameter and first.setdefault(parameter, name) != name:
            yield f"the columns {first[parameter]!r} and {name!r} mean the same: keep one of them"
    for name in required:
        if name not in header:
            yield f"the column {name!r} is missing; there are: {', '.join(header)}"


def _column_of_resource(name: str, columns: Mapping[str, Column]) -> Column | None:
    """Return the column of a resource by its full name (`amd.com/gpu`); None if the table takes no resources."""
    if not _takes_resources(columns):
        return None
    if "/" in name and _KEY.fullmatch(name) and not _NOT_EXTENDED.match(name):
        return of_resource(name), whole_amount
    return (of_resource(name), memory) if name == "ephemeral-storage" or name.startswith("hugepages-") else None


def _takes_resources(columns: Mapping[str, Column]) -> bool:
    return any(parameter.startswith(f"{BY_RESOURCE} ") for parameter, _ in columns.values())


def of_resource(name: str) -> str:
    """Return the parameter of a column that has amounts of this resource, whatever the column is called."""
    return f"{BY_RESOURCE} {name}"


def resource(word: str) -> str:
    """Return the name of a resource: nvidia.com/gpu for `gpus`; any other word is already a name."""
    return RESOURCES.get(word, word)


def nearest(word: str, known: Collection[str], cutoff: float = 0.6) -> str:
    """Return ` (is 'weight' meant?)`, or an empty text if no known word is near."""
    found = difflib.get_close_matches(word, sorted(known), n=1, cutoff=cutoff)
    return f" (is {found[0]!r} meant?)" if found else ""


def name(text: str) -> str:
    """Return the name of an object, which templates also write into labels. Raises ValueError."""
    if not _NAME.fullmatch(text):
        raise ValueError("write a valid Kubernetes name: lower-case letters, digits, '-' and '.'")
    if len(text) > LONGEST_NAME:
        raise ValueError(f"write at most {LONGEST_NAME} characters: labels hold no more")
    return text


def plain_name(text: str) -> str:
    """Return the name of a job or a task, whose pods and services are named after it. Raises ValueError."""
    if "." in name(text):
        raise ValueError("write a name without '.': lower-case letters, digits and '-'")
    return text


def in_namespace(read: Callable[[str], str]) -> Callable[[str], str]:
    """Return the function that reads `train`, or `team-b/train` in a namespace of its own: both parts are names."""

    def name_in_namespace(text: str) -> str:
        space, slash, own = text.rpartition("/")
        if slash and len(plain_name(space)) > LONGEST_SPACE:
            raise ValueError(f"write at most {LONGEST_SPACE} characters before the '/': they end the namespace's name")
        return f"{space}{slash}{read(own)}"

    return name_in_namespace


def word(text: str) -> str:
    """Return one word, which a label may have as its value: the model of a card. Raises ValueError."""
    if not text or not _VALUE.fullmatch(text):
        raise ValueError(f"write one word of at most {LONGEST_NAME} characters: letters, digits and any of - _ .")
    return text


def models(text: str) -> str:
    """Return the models that work accepts, `A` or `A|B`. Raises ValueError."""
    found = text.split("|")
    if len({*map(word, found)}) < len(found):
        raise ValueError("has a model twice")
    return text


def amount(text: str) -> Decimal:
    """Return the number that a quantity stands for. Raises ValueError."""
    found: Decimal = parse_quantity(quantity(text))  # type: ignore[no-untyped-call]
    return found


def quantity(text: str) -> str:
    """Return an amount of a resource that is not negative. Raises ValueError."""
    if not _QUANTITY.fullmatch(text):
        raise ValueError("write a quantity, for instance: 4, 500m or 8Gi")
    return text


def cpus(text: str) -> str:
    """Return an amount of cpu: a quantity without a unit of memory. Raises ValueError."""
    if text.endswith("i"):
        raise ValueError("write cpus, for instance: 4 or 500m (Ki, Mi and Gi are for memory)")
    return quantity(text)


def whole(text: str) -> int:
    """Return a whole number. Raises ValueError."""
    if not _WHOLE.fullmatch(text):
        raise ValueError("write a whole number, for instance: 3")
    if abs(int(text)) > LARGEST:
        raise ValueError(f"write at most {LARGEST}")
    return int(text)


def count(text: str) -> int:
    """Return a number of pods or devices. Raises ValueError."""
    number = whole(text)
    if number < 0:
        raise ValueError("write a whole number that is not below 0")
    if number > MOST:
        raise ValueError(f"write at most {MOST}: Kubernetes supports that many pods in a cluster")
    return number


def at_least_one(text: str) -> int:
    """Return a number of pods of work, or of cards. Raises ValueError."""
    if not (number := count(text)):
        raise ValueError("write at least 1: of none nothing can be shown")
    return number


def memory(text: str) -> str:
    """Return an amount of memory in whole bytes. Raises ValueError."""
    if (number := amount(text)) % 1:
        raise ValueError("is less than a byte: write bytes, for instance 8Gi or 512Mi (m means thousandths)")
    if 0 < number < LEAST_MEMORY:
        raise ValueError(f"is {number:f} bytes, which is hardly meant: write a unit, for instance 8Gi or 512Mi")
    return text


def above_zero(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a function that reads an amount as `read` does, and refuses zero: a node without it holds no pod."""

    def read_above_zero(text: str) -> Any:
        found = read(text)
        if not amount(text):
            raise ValueError("write more than 0: on a node without it no pod could run")
        return found

    return read_above_zero


def devices(text: str) -> str:
    """Return an amount of a device, as a quantity. Raises ValueError."""
    if amount(text) % 1 or text.endswith("i"):
        raise ValueError("write whole devices, for instance: 4")
    return text


def mebibytes(text: str) -> str:
    """Return an amount of a card's memory in MiB, from `8Gi` or `512Mi`. Raises ValueError."""
    number, unit = text[:-2], text[-2:]
    if unit not in _MEBIBYTES or not _WHOLE.fullmatch(number) or int(number) <= 0:
        raise ValueError("write an amount of memory, for instance: 8Gi or 512Mi")
    return str(int(number) * _MEBIBYTES[unit])


def whole_amount(text: str) -> str:
    """Return a number of devices, as a quantity. Raises ValueError."""
    return str(count(text))


def seconds(text: str) -> float:
    """Return the seconds of a duration such as `500ms` or `1m30s`. Raises ValueError."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError("write a duration, for instance: 500ms, 2s or 1m30s")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def duration(text: str) -> str:
    """Return a duration as it is written. Raises ValueError."""
    seconds(text)
    return text


def amounts(text: str) -> dict[str, str]:
    """Return `cpu 4, gpus 8` as {cpu: 4, nvidia.com/gpu: 8}. Raises ValueError."""
    return {resource: amount_of(resource)(amount) for resource, amount in claims(text).items()}


def amount_of(resource: str) -> Callable[[str], str]:
    """Return the function that reads amounts of a resource: memory in bytes, whole devices, any other as a quantity."""
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return memory
    return devices if "/" in resource else cpus if resource == "cpu" else quantity


def claims(text: str) -> dict[str, str]:
    """Parse as `amounts` does, but allow invalid amounts, which the API server must reject. Raises ValueError."""
    found: dict[str, str] = {}
    for part in (part.strip() for part in text.split(",")):
        label, _, amount = part.partition(" ")
        if not amount.strip():
            raise ValueError("write a list of resources, for instance: cpu 4, memory 8Gi")
        name = resource(label)
        if not _KEY.fullmatch(name):
            raise ValueError(f"{label!r} is no name: write letters, digits and any of - _ . /")
        if name in found:
            raise ValueError(f"{label} appears twice")
        found[name] = amount.strip()
    return found


def keys(text: str) -> list[str]:
    """Return `spot, gpu` as a list of the keys of labels or taints. Raises ValueError."""
    found = names(text)
    if not all(map(_KEY.fullmatch, found)):
        raise ValueError("write keys, for instance: spot, example.com/gpu")
    return found


def labels(text: str) -> dict[str, str]:
    """Return `zone=a, disk=ssd` as {zone: a, disk: ssd}. Raises ValueError."""
    found: dict[str, str] = {}
    for part in names(text):
        key, equals, value = part.partition("=")
        if not equals or not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
            raise ValueError("write labels, for instance: zone=a, disk=ssd")
        if key in found:
            raise ValueError(f"{key} appears twice")
        found[key] = value
    return found


def taints(text: str) -> list[dict[str, str]]:
    """Return `spot=true:NoSchedule` as the taints of a node. Raises ValueError."""
    found = []
    for part in names(text):
        label, _, effect = part.rpartition(":")
        key, equals, value = label.partition("=")
        if effect not in _EFFECTS or not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
            raise ValueError(f"write taints, for instance: spot:NoSchedule; effects are {', '.join(_EFFECTS)}")
        found.append({"key": key, "effect": effect} | ({"value": value} if equals else {}))
    return found


def yes(text: str) -> bool:
    """Return a bool for `yes` or `no`. Raises ValueError."""
    if text not in ("yes", "no"):
        raise ValueError("write yes or no")
    return text == "yes"


def names(text: str) -> list[str]:
    """Return `a, b` as [a, b]. Raises ValueError."""
    found = [part.strip() for part in text.split(",")]
    if not all(found):
        raise ValueError("has an empty part: write a list such as: a, b")
    return found
