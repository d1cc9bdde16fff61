"""A Queue as the scheduler sees it: the spec, parsed once. What it has is computed per cycle by the queue plugins."""

from __future__ import annotations

from typing import Any, Final

from . import names, objects, resources
from .times import seconds

ROOT, DEFAULT = "root", "default"
ALWAYS_THERE: Final[dict[str, dict[str, Any]]] = {
    ROOT: {"weight": 1, "reclaimable": False},
    DEFAULT: {"weight": 1, "reclaimable": True, "parent": ROOT},
}
"""The specs of the queues that jobs and queues which name none are in."""


class Queue:
    """One Queue. Amounts are resources (:mod:`scheduler.model.resources`); an absent dimension is one that the spec
    does not name.
    """

    __slots__ = (
        "annotations",
        "capability",
        "creation",
        "deserved",
        "guarantee",
        "is_open",
        "name",
        "namespaces",
        "object",
        "parent",
        "priority",
        "reclaimable",
        "weight",
    )

    def __init__(self, queue: objects.Queue) -> None:
        spec = queue.spec
        self.object = queue
        self.name = queue.metadata.name
        self.annotations = queue.metadata.annotations or {}
        given = self.annotations.get(names.NAMESPACES)
        self.namespaces = None if given is None else frozenset(filter(None, map(str.strip, given.split(","))))
        """Whose jobs it takes; None where it does not say."""
        self.weight = spec.weight
        self.priority = spec.priority
        self.parent = spec.parent
        self.reclaimable = spec.reclaimable is not False
        self.capability = resources.parse(spec.capability)
        self.deserved = resources.parse(spec.deserved)
        self.guarantee = resources.parse(spec.guarantee.resource if spec.guarantee else None)
        self.is_open = queue.status.state in ("", "Open")
        self.creation = seconds(queue.metadata.creation_timestamp)

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"
