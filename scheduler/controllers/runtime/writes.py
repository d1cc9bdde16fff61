"""The writes of controllers: plain values that the pure part returns and the shell carries out.

A controller creates objects that do not exist and changes only objects that carry its owner reference with the owner's
uid. Each write may be repeated: a create ends if the owner's object exists, a delete names the uid of its object, and a
status names the version that it was computed from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...kube.resource import Resource
from ...model.objects import ObjectMeta

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Create:
    """Create `body` (its metadata has the name).

    If the same owner's object exists already, nothing is done. An object of another owner is left alone, and the
    reconciliation ends with `NameTaken`.

    With `update`, `body` is merged into an existing object of the same owner.
    """

    resource: Resource[Any]
    body: Body
    update: bool = False

    @property
    def name(self) -> str:
        found: str = self.body["metadata"]["name"]
        return found


@dataclass(frozen=True, slots=True)
class ApplyObject:
    """Merge `body` into an object, or into its status (`sub`).

    With `version`, only that version is changed; with `uid`, no successor of the same name. With `manager` it is a
    server-side apply: that manager's fields become exactly those of `body`.

    If the API server refuses `body`, what `on_refusal` returns for the text of the refusal is merged into the object.
    """

    resource: Resource[Any]
    namespace: str
    name: str
    body: Body
    sub: str = ""
    version: str = ""
    uid: str = ""
    manager: str = ""
    on_refusal: Callable[[str], Body] | None = None


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete the object with this name and uid, and no successor."""

    resource: Resource[Any]
    namespace: str
    name: str
    uid: str
    propagation: str = ""

    @classmethod
    def of(cls, resource: Resource[Any], meta: ObjectMeta, propagation: str = "") -> Remove:
        """Return the deletion of the object with this metadata."""
        return cls(resource, meta.namespace, meta.name, meta.uid, propagation)


@dataclass(frozen=True, slots=True)
class CollectOrphans:
    """Delete the objects of an owner with this uid, if the API server confirms that the owner is gone.

    The cluster's garbage collector does the same, but takes half a minute for kinds that were defined a moment ago.
    """

    owner: Resource[Any]
    namespace: str
    name: str
    uid: str
    left: Sequence[Remove]


@dataclass(frozen=True, slots=True)
class EmitEvent:
    """Emit an event on an object, for people."""

    resource: Resource[Any]
    about: ObjectMeta
    kind: str
    """`Normal` or `Warning`."""
    reason: str
    message: str


Write = Create | ApplyObject | Remove | CollectOrphans | EmitEvent


@dataclass(frozen=True, slots=True)
class ReconcileResult:
    """The writes, in this order; after `again` seconds the object is reconciled again even if nothing changes."""

    writes: Sequence[Write] = field(default_factory=tuple)
    again: float | None = None


def owned_by(resource: Resource[Any], meta: ObjectMeta) -> dict[str, Any]:
    """Return the owner reference for an object that a controller creates."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
