"""Who owns what: how pods and PodGroups are found from their owner, and what becomes of them when it is gone."""

from __future__ import annotations

from typing import Any

from ...kube.informer import Index
from ...kube.resource import Resource
from ...model.objects import Pod, PodGroup
from .pods import controller_of
from .write_through_cache import WriteThroughCache
from .writes import CollectOrphans, Remove

_CALM = 0.05


def _by_uid(item: Any) -> list[str]:
    return [item.metadata.uid]


def _by_owner(item: Any) -> list[str]:
    owner = controller_of(item.metadata)
    return [owner.uid] if owner else []


def owner_key(owner: Resource[Any], item: Pod | PodGroup | None) -> str:
    """The key of the object of a kind that manages a pod or PodGroup; empty if none of that kind does."""
    found = controller_of(item.metadata) if item is not None else None
    if item is None or found is None or (found.kind, found.api_version) != (owner.kind, owner.api_version):
        return ""
    return f"{item.metadata.namespace}/{found.name}"


def delay_of(before: Pod | None, after: Pod | None) -> float:
    """In how many seconds to look at the owner of a pod that changed: at once where it ended, failed or is going.

    What is only on its way (created, bound, running) is gathered: a job of a thousand pods does not write a thousand
    times that one more runs while the scheduler still binds.
    """
    if after is None or after.metadata.deletion_timestamp is not None or after.status.phase in ("Succeeded", "Failed"):
        return 0.0
    if before is not None and before.status.phase in ("Succeeded", "Failed"):
        return 0.0
    return _CALM


def _by_owner_name(item: Any) -> list[str]:
    owner = controller_of(item.metadata)
    return [f"{owner.kind} {item.metadata.namespace}/{owner.name}"] if owner else []


def left_behind(owner: Resource[Any], key: str, *views: WriteThroughCache[Any]) -> list[CollectOrphans]:
    """What there is to do when the owner of this key is gone: what it owned goes too."""
    namespace, _, name = key.partition("/")
    left: dict[str, list[Remove]] = {}
    for view in views:
        for item in view.by("owner name", f"{owner.kind} {key}"):
            meta, found = item.metadata, controller_of(item.metadata)
            if found is not None and found.api_version == owner.api_version and meta.deletion_timestamp is None:
                left.setdefault(found.uid, []).append(Remove.of(view.resource, meta))
    return [CollectOrphans(owner, namespace, name, uid, removes) for uid, removes in left.items()]


def _by_target(item: Any) -> list[str]:
    """Of a Command: ``Kind namespace/name`` of what it is for, of a queue ``Queue name``."""
    target = getattr(item, "target", None)
    if target is None:
        return []
    return [f"{target.kind} {item.metadata.namespace}/{target.name}", f"{target.kind} {target.name}"]


INDEXES: dict[str, Index[Any]] = {
    "uid": _by_uid,
    "owner": _by_owner,
    "owner name": _by_owner_name,
    "target": _by_target,
}
"""How objects are looked up: by their uid, their controller's uid or its name, a Command's target."""
