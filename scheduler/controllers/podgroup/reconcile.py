"""Decide what the PodGroup controller writes: a PodGroup for pods that name none.

The pods of one owner (such as a ReplicaSet, StatefulSet or Job) share a PodGroup, which is deleted with the owner. A
pod without an owner has a PodGroup of its own. The rules are those of Volcano's `pkg/controllers/podgroup`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...kube.resource import PODGROUPS, PODS, Resource
from ...model import names, resources
from ...model.demand import requests_of
from ...model.objects import Pod, PodGroup
from ...model.resources import quantities
from ..runtime.objects import BATCH_JOBS, REPLICA_SETS, STATEFUL_SETS, Workload
from ..runtime.pods import controller_of
from ..runtime.writes import ApplyObject, CollectOrphans, Create, EmitEvent, ReconcileResult, Remove, Write

OWNERS: tuple[Resource[Any], ...] = (REPLICA_SETS, STATEFUL_SETS, BATCH_JOBS)
"""Owners whose annotations and replicas are read. Of other owners, only the owner reference is used."""
_PREFIX = "podgroup-"


@dataclass(frozen=True, slots=True)
class ObservedGang:
    """The pods of one owner (or one pod without owner), and what determines their PodGroup."""

    namespace: str
    name: str
    """Name of the PodGroup."""
    pods: Sequence[Pod] = ()
    group: PodGroup | None = None
    owner: Workload | None = None
    namespace_annotations: Mapping[str, str] | None = None


def group_of(pod: Pod) -> str:
    """Return the name of the PodGroup that this controller creates for a pod; empty if the pod names another."""
    if pod.spec.scheduling_group is not None:
        return ""
    owner = controller_of(pod.metadata)
    name = f"{_PREFIX}{owner.uid if owner else pod.metadata.uid}"
    given = (pod.metadata.annotations or {}).get(names.GROUP_NAME)
    return name if given in (None, "", name) else ""


def reconcile(seen: ObservedGang) -> ReconcileResult:
    """Return the writes for one PodGroup. Pure: equal input, equal outcome."""
    pods = [pod for pod in seen.pods if pod.metadata.deletion_timestamp is None]
    if seen.group is not None and not _is_ours(seen.group):
        return ReconcileResult(_name_taken(seen, pods))
    if not pods:
        return ReconcileResult(_removal(seen))
    first = _first(pods)
    spec, problem = _spec(seen, first)
    writes: list[Write] = []
    if problem:
        writes.append(_warning(seen, first, "InvalidMinMember", problem))
    group = seen.group
    if group is None:
        writes.append(Create(PODGROUPS, _body(seen, first, spec)))
    elif group.metadata.deletion_timestamp is not None:
        return ReconcileResult()
    elif group.spec.min_member != spec["minMember"] or (
        resources.parse(group.spec.min_resources) != resources.parse(spec["minResources"])
    ):
        changed = {key: spec[key] for key in ("minMember", "minResources")}
        changed["minResources"] = {**dict.fromkeys(group.spec.min_resources or ()), **changed["minResources"]}
        writes.append(ApplyObject(PODGROUPS, seen.namespace, seen.name, {"spec": changed}, uid=group.metadata.uid))
    mark = {"metadata": {"annotations": {names.GROUP_NAME: seen.name}}}
    writes += [
        ApplyObject(PODS, seen.namespace, pod.metadata.name, mark, uid=pod.metadata.uid)
        for pod in pods
        if (pod.metadata.annotations or {}).get(names.GROUP_NAME) != seen.name
    ]
    return ReconcileResult(writes)


def _is_ours(group: PodGroup) -> bool:
    """Whether the PodGroup is named after the uid in its owner reference."""
    owner = controller_of(group.metadata)
    return owner is not None and group.metadata.name == f"{_PREFIX}{owner.uid}"


def _name_taken(seen: ObservedGang, pods: Sequence[Pod]) -> list[Write]:
    """Return the warning that a PodGroup of another owner has the gang's name. The gang's pods do not join it."""
    if not pods:
        return []
    text = f"PodGroup {seen.name} exists and belongs to somebody else; delete or rename it"
    return [_warning(seen, _first(pods), "NameTaken", text)]


def _warning(seen: ObservedGang, pod: Pod, reason: str, message: str) -> EmitEvent:
    """Return a warning on the owner of a pod, or on the pod where the owner is not read."""
    resource = next((r for r in OWNERS if seen.owner and r.kind == _owner_kind(pod)), PODS)
    return EmitEvent(resource, seen.owner.metadata if seen.owner else pod.metadata, "Warning", reason, message)


def _first(pods: Sequence[Pod]) -> Pod:
    return min(pods, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name))


def _removal(seen: ObservedGang) -> list[Write]:
    """Return the removal of a PodGroup whose owner has zero replicas or no longer exists."""
    group, owner = seen.group, seen.owner
    if group is None or group.metadata.deletion_timestamp is not None or seen.pods:
        return []
    removal = Remove(PODGROUPS, seen.namespace, seen.name, group.metadata.uid)
    if owner is not None:
        return [removal] if owner.spec.replicas == 0 else []
    gone = controller_of(group.metadata)
    kind = next((one for one in (*OWNERS, PODS) if gone and one.kind == gone.kind), None)
    if gone is None or kind is None:
        return []
    return [CollectOrphans(kind, seen.namespace, gone.name, gone.uid, [removal])]


def _spec(seen: ObservedGang, pod: Pod) -> tuple[dict[str, Any], str]:
    """Return the PodGroup's spec, from its first pod and its owner, and the fault of an annotation; empty if none."""
    of_pod = pod.metadata.annotations or {}
    of_owner = (seen.owner.metadata.annotations if seen.owner else None) or {}
    text = of_owner.get(names.GROUP_MIN_MEMBER, of_pod.get(names.GROUP_MIN_MEMBER, "1"))
    problem = ""
    if not text.isdecimal() or int(text) < 1:
        problem = f"annotation {names.GROUP_MIN_MEMBER}: {text!r} is not a number of at least 1; using 1"
        text = "1"
    minimum = int(text)
    request, _ = requests_of(pod)
    amounts = {name: amount * minimum for name, amount in request.items() if name != resources.PODS}
    by_namespace = (seen.namespace_annotations or {}).get(names.QUEUE_NAME)
    queue = of_pod.get(names.QUEUE_NAME) or of_owner.get(names.QUEUE_NAME) or by_namespace or "default"
    spec: dict[str, Any] = {"minMember": minimum, "queue": queue, "minResources": quantities(amounts)}
    if pod.spec.priority_class_name:
        spec["priorityClassName"] = pod.spec.priority_class_name
    return spec, problem


def _body(seen: ObservedGang, pod: Pod, spec: dict[str, Any]) -> dict[str, Any]:
    given = {**((seen.owner.metadata.annotations if seen.owner else None) or {}), **(pod.metadata.annotations or {})}
    metadata: dict[str, Any] = {
        "name": seen.name,
        "namespace": seen.namespace,
        "annotations": {key: value for key, value in given.items() if key.startswith(names.VOLCANO_PREFIX)},
        "ownerReferences": [_owner(pod)],
    }
    preemptable = (pod.metadata.labels or {}).get(names.PREEMPTABLE)
    if preemptable is not None:
        metadata["labels"] = {names.PREEMPTABLE: preemptable}
    return {"metadata": metadata, "spec": spec}


def _owner_kind(pod: Pod) -> str:
    owner = controller_of(pod.metadata)
    return owner.kind if owner else ""


def _owner(pod: Pod) -> dict[str, Any]:
    owner = controller_of(pod.metadata)
    if owner is None:
        owner_of = {"apiVersion": "v1", "kind": "Pod", "name": pod.metadata.name, "uid": pod.metadata.uid}
    else:
        owner_of = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
    return {**owner_of, "controller": True}
