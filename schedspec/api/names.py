"""Rename a run's cluster-wide objects on a cluster that already has objects of the same names.

This module owns the mapping between a scenario's name and the real name. The mapping is used where an object is
applied, observed or named by a policy; every other module sees the scenario's names.

1. `rename` adds a suffix, which no other run has, to the name of an object that collides.
2. `path`, `outgoing` and `policy` write the real names into requests to the API server and into policies.
3. `plain` and `text` remove the suffix from everything received: objects, events, reasons, logs, recordings.

The suffix begins with the two characters that sort before all other characters of a name, so the order is preserved.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import yaml

from .kinds import BUILT_IN_QUEUES, SERVED, Kind, Ref, kind_of

SAME_NAMED: Final = {
    Kind.CLUSTERQUEUE: Kind.QUEUE,
    Kind.COHORT: Kind.QUEUE,
    Kind.WORKLOADPRIORITYCLASS: Kind.PRIORITYCLASS,
    Kind.KAI_QUEUE: Kind.QUEUE,
}
"""Kueue's and KAI's objects that have the name of a scenario's object, and the kind of that object."""
_OWN: Final = (Kind.QUEUE, Kind.PRIORITYCLASS, Kind.NODE)
_CLUSTER_WIDE: Final = (*_OWN, *SAME_NAMED)
"""Kinds whose objects a scenario creates outside of its namespace."""
_FIELDS: Final = {
    "queue": Kind.QUEUE,
    "parent": Kind.QUEUE,
    "scheduling.volcano.sh/queue-name": Kind.QUEUE,
    "priorityClassName": Kind.PRIORITYCLASS,
    "priorityClass": Kind.PRIORITYCLASS,
    "nodeName": Kind.NODE,
    "clusterQueue": Kind.QUEUE,
    "cohortName": Kind.QUEUE,
    "parentName": Kind.QUEUE,
    "parentQueue": Kind.QUEUE,
    "kai.scheduler/queue": Kind.QUEUE,
    "kueue.x-k8s.io/priority-class": Kind.PRIORITYCLASS,
}
"""Fields, labels and annotations that name a cluster-wide object."""
_IN_POLICIES: Final = ("queue", "queues")
"""Arguments of a policy that name queues: one, a list, or several separated by commas."""


class Names:
    """The real names of one run. Without a suffix every name is real."""

    def __init__(self, suffix: str = "") -> None:
        self.suffix = suffix
        self._renamed: set[Ref] = set()

    @classmethod
    def of_run(cls, token: str) -> Names:
        """Return the names of the run with this token."""
        return cls(f"--{token}")

    def rename(self, ref: Ref) -> bool:
        """Add the suffix to the name of an object of the run. Return False if the name must not change."""
        if not self.suffix or ref.kind not in _OWN or (ref.kind == Kind.QUEUE and ref.name in BUILT_IN_QUEUES):
            return False
        self._renamed.add(ref)
        return True

    def renamed(self) -> list[Ref]:
        """Return the objects with a suffix, by their names in scenarios."""
        return sorted(self._renamed)

    def is_renamed(self, kind: Kind, name: str) -> bool:
        """Whether the run's object of that name has a suffix."""
        return Ref(SAME_NAMED.get(kind, kind), name) in self._renamed

    def real(self, kind: Kind, name: str) -> str:
        """Return the name on the cluster of a scenario's object."""
        return name + self.suffix if self.is_renamed(kind, name) else name

    def hint(self, refs: Iterable[Ref]) -> str:
        """Return the command that shows the objects with a suffix; empty if there are none."""
        renamed = [(SERVED[ref.kind], self.real(ref.kind, ref.name)) for ref in sorted(refs) if ref in self._renamed]
        groups = {
            served: f".{served.api_version.partition('/')[0]}" * ("/" in served.api_version) for served, _ in renamed
        }
        objects = " ".join(f"{served.plural}{groups[served]}/{name}" for served, name in renamed)
        return f"kubectl get {objects}" if objects else ""

    def path(self, path: str) -> str:
        """Return the path of a request with the real name."""
        for kind in _CLUSTER_WIDE if self._renamed else ():
            before, _, rest = path.partition(SERVED[kind].path() + "/")
            if not before and rest:
                name, slash, more = rest.partition("/")
                return f"{SERVED[kind].path()}/{self.real(kind, name)}{slash}{more}"
        return path

    def outgoing(self, body: Any) -> Any:
        """Return the body of a request (an object, a patch) with the real names. The body stays unchanged."""
        return self._outgoing(body) if self._renamed else body

    def policy(self, text: str) -> str:
        """Return the text of a policy with the real names of queues; everything else stays as written."""
        if not self._renamed:
            return text
        try:
            roots = list(yaml.compose_all(text, yaml.SafeLoader))
        except yaml.YAMLError:
            return text  # the scheduler reports the error
        found = sorted((node.start_mark.index, node.end_mark.index) for root in roots for node in _queues_in(root))
        for start, end in reversed(found):
            text = text[:start] + self._listed(text[start:end]) + text[end:]
        return text

    def plain(self, data: bytes) -> bytes:
        """Return bytes from the API server or the scheduler with the scenarios' names."""
        return data.replace(self.suffix.encode(), b"") if self.suffix else data

    def text(self, text: str) -> str:
        """Return a text with the scenarios' names."""
        return text.replace(self.suffix, "") if self.suffix else text

    def _outgoing(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._outgoing(part) for part in value]
        if not isinstance(value, dict):
            return value
        made = {key: self._field(key, part) for key, part in value.items()}
        kind = (
            kind_of(value) if isinstance(value.get("kind"), str) and isinstance(value.get("apiVersion"), str) else None
        )
        if kind is not None:
            made = self._named(kind, made)  # a reference
            if isinstance(made.get("metadata"), dict):
                made["metadata"] = self._named(kind, made["metadata"])
        if isinstance(value.get("op"), str) and isinstance(value.get("path"), str):  # a step of a JSON patch
            made["value"] = self._field(value["path"].rpartition("/")[2], value.get("value"))
        return made

    def _field(self, key: str, value: Any) -> Any:
        if key in _FIELDS and isinstance(value, str):
            return self.real(_FIELDS[key], value)
        return self._outgoing(value)

    def _named(self, kind: Kind, value: dict[str, Any]) -> dict[str, Any]:
        name = value.get("name")
        return {**value, "name": self.real(kind, name)} if isinstance(name, str) else value

    def _listed(self, written: str) -> str:
        parts = written.split(",")
        return ",".join(part.replace(name, self.real(Kind.QUEUE, name)) for part in parts for name in [_bare(part)])


def _bare(part: str) -> str:
    return part.strip().strip("\"'").strip()


def _queues_in(node: yaml.nodes.Node | None, *, named: bool = False) -> list[yaml.nodes.Node]:
    """Return the scalars of a policy that name queues, in the order of the text."""
    if isinstance(node, yaml.MappingNode):
        pairs = [(str(key.value).rpartition(".")[2] in _IN_POLICIES, value) for key, value in node.value]
        return [scalar for is_queue, value in pairs for scalar in _queues_in(value, named=is_queue)]
    if isinstance(node, yaml.SequenceNode):
        return [scalar for value in node.value for scalar in _queues_in(value, named=named)]
    return [node] if named and isinstance(node, yaml.ScalarNode) else []
