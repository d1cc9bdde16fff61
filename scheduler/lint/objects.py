"""Read queues and nodes with their line numbers from manifests.

Accepts what `kubectl get -o yaml` writes and what users apply: documents and Lists, in YAML or JSON. Every object is
judged as the API server judges it. Other kinds are not read; a file with nothing else is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from ..model import objects, resources
from ..model.documents import DocumentError as ManifestError
from ..model.documents import compose, construct
from ..model.queue import Queue
from ..model.resources import QuantityError, Resource
from ..reasons.text import count

__all__ = ["Document", "LintFinding", "Manifest", "ManifestError", "documents", "read_objects", "refusals"]


@dataclass(frozen=True, slots=True)
class LintFinding:
    """A finding: its place, the problem and the remedy."""

    source: str
    line: int
    field: str
    text: str
    remedy: str
    is_error: bool = False

    def render(self) -> str:
        """Return the finding in a form that editors can jump to."""
        kind = "error" if self.is_error else "warning"
        return f"{self.source}:{self.line}: {kind}: {self.field}: {self.text}; {self.remedy}"


_QUEUES = "scheduling.volcano.sh/"
_REMEDY = "name a file with Queues of scheduling.volcano.sh or Nodes"


class Document(NamedTuple):
    """One object of a manifest, and the line where it begins."""

    line: int
    item: dict[str, Any]
    node: yaml.MappingNode

    @property
    def title(self) -> str:
        """Kind and name, for people."""
        metadata = self.item.get("metadata")
        given = metadata if isinstance(metadata, dict) else {}
        name = given.get("name") or given.get("generateName")
        return f"{self.item.get('kind') or 'object'} {name or 'without a name'}"

    @property
    def name(self) -> tuple[str, ...]:
        """The identity of the object in a cluster: API version, kind, namespace and name; empty without a name."""
        metadata = self.item.get("metadata")
        given = metadata if isinstance(metadata, dict) else {}
        parts = (self.item.get("apiVersion"), self.item.get("kind"), given.get("namespace"), given.get("name"))
        return tuple(map(str, parts)) if given.get("name") else ()

    @property
    def is_served(self) -> bool:
        """Whether an API server wrote the object; a user's file has no uid and no version."""
        metadata = self.item.get("metadata")
        return isinstance(metadata, dict) and bool(metadata.get("uid") or metadata.get("resourceVersion"))

    def line_of(self, path: Sequence[str | int]) -> int:
        """Return the line of a field, or of the closest part of the object that contains it."""
        node, line = self.node, self.line
        for part in path:
            found: Any = None
            if isinstance(node, yaml.MappingNode):
                found = next(((value, key) for key, value in node.value if key.value == part), None)
            elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
                found = (node.value[part], node.value[part])
            if found is None:
                break
            node, line = found[0], found[1].start_mark.line + 1
        return line


@dataclass(slots=True)
class Manifest:
    """Queues by name with file and object, and the sum of all nodes' resources (None without nodes)."""

    queues: dict[str, Queue] = field(default_factory=dict)
    places: dict[str, tuple[str, Document]] = field(default_factory=dict)
    total: Resource | None = None
    podgroups: dict[str, int] = field(default_factory=dict)
    """Number of unfinished PodGroups in each queue's status."""
    findings: list[LintFinding] = field(default_factory=list)
    """What the API server would refuse, and what nothing here reads."""


def read_objects(text: str, source: str, found: Manifest, folder: Path | None = None) -> None:
    """Add the queues and nodes of a file to `found`, with the findings on each of its objects.

    `folder` has the definitions by which objects are judged; None: ours.

    Raises:
        ManifestError: the file is not YAML, or has nothing that lint reads.
    """
    unused: Counter[str] = Counter()
    used = False
    for document in documents(text):
        flaws = found.findings
        refused = list(refusals(document, source, folder))
        flaws += refused
        kind, group = document.item.get("kind"), str(document.item.get("apiVersion", ""))
        is_read = kind == "Node" or (kind == "Queue" and group.startswith(_QUEUES))
        used |= is_read
        unused[f"{kind} of {group}" if kind else "object without a kind"] += not is_read
        if is_read and not any(flaw.is_error for flaw in refused):
            _add(document, source, found)
    if not used:
        kinds = ", ".join(count(number, kind) for kind, number in sorted(unused.items())) or "no object"
        raise ManifestError(1, f"nothing in this file is read: it has {kinds}", _REMEDY)


def refusals(document: Document, source: str, folder: Path | None = None) -> Iterator[LintFinding]:
    """Yield a finding for each reason why the API server would refuse an object: an error in what people write.

    `folder` has the definitions that the API server serves; None: ours.
    """
    from .schemas import OURS, definitions, template_flaws  # noqa: PLC0415 - its libraries take a second

    for flaw in definitions(folder or OURS).flaws(document.item) or template_flaws(document.item, ()):
        field, line = f"{document.title}.{flaw.field}", document.line_of(flaw.path)
        if not document.is_served:
            yield LintFinding(source, line, field, flaw.text, flaw.remedy, is_error=True)
        elif flaw.text == "unknown field":
            yield LintFinding(source, line, field, "is not read here, though the cluster serves it", "remove it")


def _add(document: Document, source: str, found: Manifest) -> None:
    item = document.item
    try:
        if item["kind"] == "Queue":
            queue = Queue(msgspec.convert(item, objects.Queue))
            found.queues[queue.name], found.places[queue.name] = queue, (source, document)
            status = msgspec.convert(item.get("status") or {}, dict[str, Any])
            counts = (status.get(phase) for phase in ("pending", "inqueue", "running", "unknown"))
            found.podgroups[queue.name] = sum(count for count in counts if isinstance(count, int))
        else:
            node = msgspec.convert(item, objects.Node)
            has = resources.parse(node.status.allocatable or node.status.capacity)
            found.total = resources.plus(found.total or {}, has)
    except (msgspec.ValidationError, QuantityError) as error:
        raise ManifestError(document.line, f"{document.title}: {error}", "correct this field") from error


def documents(text: str) -> Iterator[Document]:
    """Yield all objects of a manifest, including the items of Lists.

    Raises:
        ManifestError: the text is not YAML, exceeds a bound, or has an object twice.
    """
    lines: dict[tuple[str, ...], int] = {}
    waiting = [node for node in reversed(compose(text)) if isinstance(node, yaml.MappingNode)]
    while waiting:
        node = waiting.pop()
        items = next((value for key, value in node.value if key.value == "items"), None)
        if isinstance(items, yaml.SequenceNode):
            waiting += [item for item in reversed(items.value) if isinstance(item, yaml.MappingNode)]
            continue
        document = Document(node.start_mark.line + 1, construct(node), node)
        if document.name and (line := lines.setdefault(document.name, document.line)) != document.line:
            text = f"{document.title} is in this file twice, first in line {line}"
            raise ManifestError(document.line, text, "keep one")
        yield document
