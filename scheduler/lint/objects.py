"""Read queues and nodes with their line numbers from manifests.

Accepts what `kubectl get -o yaml` writes and what users apply: documents and Lists. Other kinds are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import yaml

from ..model import objects, resources
from ..model.queue import Queue
from ..model.resources import QuantityError, Resource

_QUEUES = "scheduling.volcano.sh/"


class ManifestError(ValueError):
    """An unreadable manifest."""

    def __init__(self, line: int, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.line, self.problem, self.remedy = line, problem, remedy


@dataclass(slots=True)
class Manifest:
    """Queues by name with file and line, and the sum of all nodes' resources (None without nodes)."""

    queues: dict[str, Queue] = field(default_factory=dict)
    places: dict[str, tuple[str, int]] = field(default_factory=dict)
    total: Resource | None = None
    podgroups: dict[str, int] = field(default_factory=dict)
    """Number of unfinished PodGroups in each queue's status."""


def read_objects(text: str, source: str, found: Manifest) -> None:
    """Add the queues and nodes of a file to `found`.

    Raises:
        ManifestError: the file is not YAML, or the API would refuse an object in it.
    """
    for line, item in documents(text):
        kind, group = item.get("kind"), str(item.get("apiVersion", ""))
        try:
            if kind == "Queue" and group.startswith(_QUEUES):
                queue = Queue(msgspec.convert(item, objects.Queue))
                found.queues[queue.name], found.places[queue.name] = queue, (source, line)
                status = msgspec.convert(item.get("status") or {}, dict[str, Any])
                counts = (status.get(phase) for phase in ("pending", "inqueue", "running", "unknown"))
                found.podgroups[queue.name] = sum(count for count in counts if isinstance(count, int))
            elif kind == "Node":
                node = msgspec.convert(item, objects.Node)
                has = resources.parse(node.status.allocatable or node.status.capacity)
                found.total = resources.plus(found.total or {}, has)
        except (msgspec.ValidationError, QuantityError) as error:
            name = (item.get("metadata") or {}).get("name", "without a name")
            raise ManifestError(line, f"{kind} {name}: {error}", "correct this field") from error


def documents(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield all objects of a manifest, including the items of Lists, each with the line where it begins.

    Raises:
        ManifestError: the text is not YAML.
    """
    try:
        nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ManifestError(line, f"not YAML: {error.problem}", "correct the indentation or quoting there") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        found = f"character #x{error.character:04x}: {error.reason}"
        raise ManifestError(line, f"not YAML: {found}", "remove this character") from error
    waiting = [node for node in nodes if isinstance(node, yaml.MappingNode)]
    while waiting:
        node = waiting.pop(0)
        items = next((value for key, value in node.value if key.value == "items"), None)
        if isinstance(items, yaml.SequenceNode):
            waiting = [item for item in items.value if isinstance(item, yaml.MappingNode)] + waiting
            continue
        line = node.start_mark.line + 1
        try:
            document = yaml.SafeLoader("").construct_document(node)
        except (yaml.constructor.ConstructorError, ValueError) as error:  # an unknown tag, an impossible date
            problem = error.problem if isinstance(error, yaml.MarkedYAMLError) else str(error)
            raise ManifestError(line, f"not an object: {problem}", "write plain YAML without tags") from error
        yield line, document
