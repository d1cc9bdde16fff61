"""Read the nodes of a cluster from a CSV file with one node a row, plain or compressed with gzip.

Besides our own column names, those of two public node lists are accepted: Alibaba's openb and its spot trace.
"""

from __future__ import annotations

import csv
from pathlib import Path

from ...scheduler.model import objects
from ...virtual import node
from .columns import CellError, quantity
from .errors import InputError, RowError
from .trace import open_text

MODEL = "nvidia.com/gpu.product"
"""The label of a node with the model of its cards."""
_COLUMNS = {
    "name": ("name", "sn", "node_name"),
    "cards": ("cards", "gpu", "gpu_capacity_num"),
    "cpu": ("cpu", "cpu_num"),
    "cpu_milli": ("cpu_milli",),
    "memory": ("memory",),
    "memory_mib": ("memory_mib",),
    "model": ("model", "gpu_model"),
}
_NEEDED = ("name", "cards")
_UNITS = {"cpu": ("cpu", ""), "cpu_milli": ("cpu", "m"), "memory": ("memory", ""), "memory_mib": ("memory", "Mi")}
"""Field → resource, and the unit that turns its number into a quantity."""


def read_nodes(path: Path, resource: str) -> list[objects.Node]:
    """Return the nodes of a file; `resource` is the resource name of cards. Raises InputError, RowError."""
    try:
        with open_text(path) as file:
            rows = csv.reader(file)
            header = next(rows, [])
            places = {
                field: header.index(column)
                for field, columns in _COLUMNS.items()
                for column in columns
                if column in header
            }
            for field in _NEEDED:
                if field not in places:
                    named = " or ".join(_COLUMNS[field])
                    raise InputError(f"{path}:1", f"no column {named}", f"columns are {', '.join(header) or 'missing'}")
            read = _Rows(str(path), header, places, resource)
            return [read.node(row, rows.line_num) for row in rows if row]
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        remedy = "name a CSV file in UTF-8, or one compressed with gzip"
        raise InputError(str(path), f"cannot be read: {reason}", remedy) from error


class _Rows:
    """Makes nodes from rows."""

    def __init__(self, source: str, header: list[str], places: dict[str, int], resource: str) -> None:
        self._source, self._header, self._places = source, header, places
        self._units = {"cards": (resource, ""), **_UNITS}
        self._names: set[str] = set()

    def node(self, row: list[str], line: int) -> objects.Node:
        """Return the node of a row. Raises RowError."""
        cells = {field: row[at].strip() if at < len(row) else "" for field, at in self._places.items()}

        def wrong(field: str, problem: str, remedy: str) -> RowError:
            column = self._header[self._places[field]]
            return RowError((self._source, line), column, cells[field], problem=problem, remedy=remedy)

        name, amounts = cells["name"], dict[str, str]()
        if not name or name in self._names:
            raise wrong("name", "is the name of another node" if name else "is no name", "name each node once")
        self._names.add(name)
        for field, (dimension, unit) in self._units.items():
            if field in cells:
                try:
                    amounts[dimension] = quantity(dimension)(cells[field] + unit)
                except CellError as error:
                    raise wrong(field, error.problem, error.remedy) from None
        return node(name, amounts, {MODEL: cells["model"]} if cells.get("model") else None)
