"""Find pods and PodGroups of an owner, and collect the objects of a deleted owner.

An owner is looked up by its namespace and its uid. Owner references are not checked by the API server, so a reference
in one namespace must not reach an object of another.
"""

from __future__ import annotations

from typing import Any

from ...kube.informer import Index
from ...kube.resource import Resource
from ...model.objects import Pod, PodGroup
from .pods import controller_of
from .write_through_cache import WriteThroughCache
from .writes import CollectOrphans, Remove

_COLLECT_FOR = 0.05


def scoped(namespace: str, uid: str) -> str:
    """Return the value under which the indexes `uid` and `owner` hold an object of a namespace."""
    return f"{namespace}/{uid}"


def _by_uid(item: Any) -> list[str]:
    return [scoped(item.metadata.namespace, item.metadata.uid)]


def _by_owner(item: Any) -> list[str]:
    owner = controller_of(item.metadata)
    return [scoped(item.metadata.namespace, owner.uid)] if owner else []


def owner_key(owner: Resource[Any], item: Pod | PodGroup | None) -> str:
    """Return the key of the object of kind `owner` that manages a pod or PodGroup; empty if none does."""
    found = controller_of(item.metadata) if item is not None else None
    if item is None or found is None or (found.kind, found.api_version) != (owner.kind, owner.api_version):
        return ""
    return f"{item.metadata.namespace}/{found.name}"


def reconcile_delay(before: Pod | None, after: Pod | None) -> float:
    """Return the delay in seconds before the owner of a changed pod is reconciled: 0 if the pod ended or is deleted.

    Other changes (created, bound, running) are collected, so that a job of a thousand pods does not write a thousand
    counts while the scheduler still binds.
    """
    if after is None or after.metadata.deletion_timestamp is not None or after.status.phase in ("Succeeded", "Failed"):
        return 0.0
    if before is not None and before.status.phase in ("Succeeded", "Failed"):
        return 0.0
    return _COLLECT_FOR


def _by_owner_name(item: Any) -> list[str]:
    owner = controller_of(item.metadata)
    return [f"{owner.kind} {item.metadata.namespace}/{owner.name}"] if owner else []


def removals_of_orphans(owner: Resource[Any], key: str, *views: WriteThroughCache[Any]) -> list[CollectOrphans]:
    """Return the removals of the objects that a deleted owner left."""
    namespace, _, name = key.partition("/")
    left: dict[str, list[Remove]] = {}
    for view in views:
        for item in view.by("owner name", f"{owner.kind} {key}"):
            meta, found = item.metadata, controller_of(item.metadata)
            if found is not None and found.api_version == owner.api_version and meta.deletion_timestamp is None:
                left.setdefault(found.uid, []).append(Remove.of(view.resource, meta))
    return [CollectOrphans(owner, namespace, name, uid, removes) for uid, removes in left.items()]


def _by_target(item: Any) -> list[str]:
    """Return the target of a Command: `Kind namespace/name`, and for queues `Queue name`."""
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
"""Indexes of the views: `uid` and `owner` (the controller's uid) with keys of `scoped`, the controller's name, and a
Command's target.
"""
