"""Nodes."""

from __future__ import annotations

import msgspec

from .meta import Condition, Object, ObjectMeta, Quantities


class Taint(Object):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Object):
    unschedulable: bool = False
    taints: list[Taint] | None = None


class ContainerImage(Object):
    names: list[str] | None = None
    size_bytes: int = 0


class NodeStatus(Object):
    allocatable: Quantities | None = None
    capacity: Quantities | None = None
    conditions: list[Condition] | None = None
    images: list[ContainerImage] | None = None


class Node(Object):
    metadata: ObjectMeta
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)
