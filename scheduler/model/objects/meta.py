"""What all objects of the API have in common."""

from __future__ import annotations

import msgspec

Quantity = str | int | float
Quantities = dict[str, Quantity]


class Object(msgspec.Struct, rename="camel"):
    """Base of all: camelCase names, unknown fields skipped."""


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
        """``namespace/name``, or the bare name of what has no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Condition(Object):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    transition_id: str | None = msgspec.field(default=None, name="transitionID")
