"""A Queue as the scheduler sees it: its spec, parsed once. The queue plugins compute its usage in each cycle."""

from __future__ import annotations

from typing import Any, Final

from . import names, objects, resources
from .times import seconds

ROOT, DEFAULT = "root", "default"
DEFAULT_QUEUES: Final[dict[str, dict[str, Any]]] = {
    ROOT: {"weight": 1, "reclaimable": False},
    DEFAULT: {"weight": 1, "reclaimable": True, "parent": ROOT},
}
"""Specs of the default queues: the parent of queues without one, and the queue of jobs without one."""


class Queue:
    """One Queue. Amounts are resources (`scheduler.model.resources`); a dimension that the spec lacks is absent."""

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
        listed = self.annotations.get(names.NAMESPACES)
        self.namespaces = None if listed is None else frozenset(filter(None, map(str.strip, listed.split(","))))
        """Namespaces whose jobs the queue accepts; None for all."""
        self.weight = spec.weight
        self.priority = spec.priority
        self.parent = spec.parent
        self.reclaimable = spec.reclaimable is not False
        self.capability = resources.parse(spec.capability)
        self.deserved = resources.parse(spec.deserved)
        self.guarantee = resources.parse(spec.guarantee.resource if spec.guarantee else None)
        self.is_open = queue.status.state in ("", "Open")
        self.creation = seconds(queue.metadata.creation_timestamp)

    @property
    def resource_names(self) -> set[str]:
        """The resources that the queue's spec names."""
        return {*self.capability, *self.deserved, *self.guarantee}

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"
