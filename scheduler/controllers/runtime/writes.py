"""What a controller wants written: plain values that the pure part returns and the shell carries out.

The one rule: every write can be carried out twice, or after somebody else did it, without doing harm. A create that
finds its object is done, a delete names the uid that it means, a status names the version that it was computed from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...kube.resource import Resource
from ...model.objects import ObjectMeta

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Create:
    """Create ``body`` (it names itself in its metadata). Found there already under the same owner, it is done."""

    resource: Resource[Any]
    body: Body

    @property
    def name(self) -> str:
        found: str = self.body["metadata"]["name"]
        return found


@dataclass(frozen=True, slots=True)
class ApplyObject:
    """Merge ``body`` into an object, or into its status (``sub``). With ``version``, only into that version of it; with
    ``uid``, into no successor of the same name.

    With ``manager`` it is a server-side apply: that manager's fields become exactly those of ``body``.
    """

    resource: Resource[Any]
    namespace: str
    name: str
    body: Body
    sub: str = ""
    version: str = ""
    uid: str = ""
    manager: str = ""


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete the object of this name and uid, and none that came after it."""

    resource: Resource[Any]
    namespace: str
    name: str
    uid: str
    propagation: str = ""

    @classmethod
    def of(cls, resource: Resource[Any], meta: ObjectMeta, propagation: str = "") -> Remove:
        """Delete the object that this is the metadata of."""
        return cls(resource, meta.namespace, meta.name, meta.uid, propagation)


@dataclass(frozen=True, slots=True)
class CollectOrphans:
    """Delete what an owner of this uid left behind, if the API server says that it is gone indeed.

    The cluster's garbage collector does the same; for kinds that were defined a moment ago it takes half a minute.
    """

    owner: Resource[Any]
    namespace: str
    name: str
    uid: str
    left: Sequence[Remove]


@dataclass(frozen=True, slots=True)
class EmitEvent:
    """An event on an object, for people."""

    resource: Resource[Any]
    about: ObjectMeta
    kind: str
    """``Normal`` or ``Warning``."""
    reason: str
    message: str


Write = Create | ApplyObject | Remove | CollectOrphans | EmitEvent


@dataclass(frozen=True, slots=True)
class ReconcileResult:
    """What to write, in this order, and in how many seconds to look again even if nothing changes."""

    writes: Sequence[Write] = field(default_factory=tuple)
    again: float | None = None


def owned_by(resource: Resource[Any], meta: ObjectMeta) -> dict[str, Any]:
    """The owner reference of what a controller makes for an object."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
