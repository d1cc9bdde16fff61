"""Read the cluster and the queues of a simulation from `--nodes` and from manifests.

A file of nodes is CSV, one node a row, plain or compressed with gzip. Besides our own column names, those of two public
node lists are accepted: Alibaba's openb and its spot trace.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ...scheduler.lint.objects import ManifestError, documents, refusals
from ...scheduler.lint.resource_rules import NATIVE, may_be_of_a_node
from ...scheduler.model import objects, resources
from ...scheduler.policy.source import suggest
from ...virtual import node
from .columns import CellError, InputError, RowError, quantity, unreadable
from .present import opened
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
            rows = csv.reader(file, strict=True)
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
        raise unreadable(path, error) from error


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
        for given, (dimension, unit) in self._units.items():
            if given in cells:
                try:
                    amounts[dimension] = quantity(dimension)(cells[given] + unit)
                except CellError as error:
                    raise wrong(given, error.problem, error.remedy) from None
        return node(name, amounts, {MODEL: cells["model"]} if cells.get("model") else None)


_NODES = re.compile(r"(?P<count>[1-9]\d{0,5})x(?P<cards>\d{1,6})(?P<more>(,[^,=]+=[^,=]+)*)", re.ASCII)


@dataclass(slots=True)
class Scene:
    """The objects that exist when a simulation begins."""

    nodes: list[objects.Node] = field(default_factory=list)
    queues: list[objects.Queue] = field(default_factory=list)
    priority_classes: list[objects.PriorityClass] = field(default_factory=list)

    @property
    def total(self) -> dict[str, int]:
        """The capacity of all nodes, in the units of `model.resources`."""
        return resources.total_of(
            resources.parse(node.status.allocatable or node.status.capacity) for node in self.nodes
        )


def read_scene(nodes: Sequence[str], manifests: Sequence[Path], resource: str) -> Scene:
    """Read the options `--nodes` and `--queues`. Raises InputError."""
    scene = Scene()
    for path in manifests:
        _read_manifest(path, scene)
    for text in nodes:
        is_file = text.endswith((".csv", ".csv.gz"))
        scene.nodes += read_nodes(Path(text), resource) if is_file else _parse_nodes(text, resource, len(scene.nodes))
    if not scene.nodes:
        remedy = "write --nodes 125x8, or name a CSV file, or manifests of Nodes with --queues"
        raise InputError("--nodes", "the cluster has no node", remedy)
    return scene


def add_queues(scene: Scene, names: Iterable[str]) -> list[str]:
    """Add a queue of weight 1 for each name without a queue. Return the names of the added queues."""
    known = {queue.metadata.name for queue in scene.queues}
    added = [name for name in names if name not in known]
    scene.queues += [opened(objects.Queue(objects.ObjectMeta(name=name))) for name in added]
    return added


def _parse_nodes(text: str, resource: str, before: int) -> list[objects.Node]:
    match = _NODES.fullmatch(text)
    if match is None:
        remedy = "write 125x8, or 125x8,cpu=96,memory=768Gi, or the name of a CSV file"
        raise InputError("--nodes", f"{text!r} is not COUNTxCARDS", remedy)
    more: dict[str, str] = {}
    for part in filter(None, match["more"].split(",")):
        name, _, amount = part.partition("=")
        if name in more or name == resource:
            raise InputError("--nodes", f"{text!r} has {name} twice", "write each resource once")
        if not may_be_of_a_node(name):
            remedy = suggest(name, (*NATIVE, "example.com/resource"))
            raise InputError("--nodes", f"{name!r} is no resource of a node", remedy)
        try:
            more[name] = quantity(name)(amount)
        except CellError as error:
            raise InputError("--nodes", f"{name}={amount} {error.problem}", error.remedy) from None
        if name in ("cpu", "memory", "pods") and not resources.amount_of(more[name], 1):
            raise InputError("--nodes", f"{name}={amount}: no pod could run on these nodes", f"name more {name}")
    allocatable = {resource: match["cards"], **more}
    return [node(f"node-{before + index:05}", allocatable) for index in range(int(match["count"]))]


def _read_manifest(path: Path, scene: Scene) -> None:
    place, ignored, used = str(path), Counter[str](), False
    try:
        for document in documents(path.read_text("utf-8")):
            place = f"{path}:{document.line}"
            for refusal in refusals(document, str(path)):
                if refusal.is_error:
                    problem = f"{refusal.field}: {refusal.text}"
                    raise InputError(f"{path}:{refusal.line}", problem, refusal.remedy)
            is_read = _add(document.item, scene)
            used |= is_read
            ignored[str(document.item.get("kind") or "an object without a kind")] += not is_read
    except ManifestError as error:
        raise InputError(f"{path}:{error.line}", error.problem, error.remedy) from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(path), f"cannot be read: {error}", "name a file with manifests in UTF-8") from error
    except (msgspec.ValidationError, resources.QuantityError) as error:
        raise InputError(place, str(error), "correct this field") from error
    if not used:
        kinds = ", ".join(sorted(ignored)) or "no object"
        remedy = "name a file with Queues of scheduling.volcano.sh, Nodes or PriorityClasses"
        raise InputError(str(path), f"has nothing that a simulation reads: {kinds}", remedy)


def _add(item: dict[str, Any], scene: Scene) -> bool:
    """Add a queue, a node or a priority class to the scene; return False for any other object."""
    match item.get("kind"), str(item.get("apiVersion", "")).partition("/")[0]:
        case "Queue", "scheduling.volcano.sh":
            scene.queues.append(opened(msgspec.convert(item, objects.Queue)))
        case "Node", _:
            found = msgspec.convert(item, objects.Node)
            resources.parse(found.status.allocatable or found.status.capacity)
            scene.nodes.append(found)
        case "PriorityClass", _:
            scene.priority_classes.append(msgspec.convert(item, objects.PriorityClass))
        case _:
            return False
    return True
