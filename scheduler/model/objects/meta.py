"""The common parts of all API objects."""

from __future__ import annotations

import msgspec

Quantity = str | int | float
Quantities = dict[str, Quantity]


class Object(msgspec.Struct, rename="camel"):
    """Base class of all objects: camelCase names, unknown fields skipped."""


class OwnerReference(Object):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Object):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone for objects without a namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def read_annotations(annotations: dict[str, str] | None) -> dict[str, str] | None:
    """Return the annotations that the scheduler reads: those of Volcano, of schedspec, and a few others.

    All other annotations (kubectl's copy of the object, a device plugin's heartbeat, notes of other programs) are
    neither kept nor recorded, and their changes do not count.

    >>> read_annotations({"volcano.sh/preemptable": "true", "kubectl.kubernetes.io/last-applied-configuration": "…"})
    {'volcano.sh/preemptable': 'true'}
    """
    if not annotations:
        return annotations
    return {key: value for key, value in annotations.items() if _is_read(key)} or None


def _is_read(key: str) -> bool:
    domain, _, name = key.rpartition("/")
    return (
        (domain in ("volcano.sh", "scheduling.k8s.io", "schedspec.dev") and name != "node-vgpu-handshake")
        or domain.endswith(".volcano.sh")
        or name in ("sla-waiting-time", "use-gputype", "nouse-gputype")
    )


class Condition(Object):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    transition_id: str | None = msgspec.field(default=None, name="transitionID")


class SelectorRequirement(Object):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class NodeSelectorTerm(Object):
    match_expressions: list[SelectorRequirement] | None = None
    match_fields: list[SelectorRequirement] | None = None


class NodeSelector(Object):
    node_selector_terms: list[NodeSelectorTerm] = msgspec.field(default_factory=list)


class LabelSelector(Object):
    match_labels: dict[str, str] | None = None
    match_expressions: list[SelectorRequirement] | None = None
