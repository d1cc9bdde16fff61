"""Read facts from an object's fields. Pure; a missing field means that the fact does not hold yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ..api.kinds import GANGS, KUEUE_DEFAULT, Kind
from ..api.marks import READ, USUAL
from .history import Object, View

GROUPS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name", "kueue.x-k8s.io/workload")
QUEUED: Final = (Kind.PODGROUP, Kind.WORKLOAD)
"""Kinds that put pods into a queue."""
WORKLOAD = "schedspec.dev/workload"
"""Label with the workload that a pod belongs to; our templates set it."""
_WORKLOADS = (
    WORKLOAD,
    "volcano.sh/job-name",
    "training.kubeflow.org/job-name",
    "batch.kubernetes.io/job-name",
)
"""Labels with the workload that a pod belongs to."""


def condition(obj: Object, kind: str) -> dict[str, Any]:
    """Return the condition of that type, or an empty one."""
    found = (cond for cond in (obj.get("status") or {}).get("conditions") or () if cond.get("type") == kind)
    return next(found, {})


def phase(obj: Object) -> str:
    """Return the phase of a pod or PodGroup, or the state of a Volcano Job or Queue; empty if none is set."""
    status = obj.get("status") or {}
    state = status.get("state")
    return str(state.get("phase", "") if isinstance(state, dict) else state or status.get("phase") or "")


def is_leaving(obj: Object) -> bool:
    """Whether the object is being deleted."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def runs(pod: Object) -> bool:
    """Whether the pod's containers run and the pod is not being evicted or deleted."""
    return phase(pod) == "Running" and not is_leaving(pod)


def waits(pod: Object) -> bool:
    """Whether the pod has no node yet."""
    return phase(pod) in ("", "Pending") and not pod["spec"].get("nodeName") and not is_leaving(pod)


def is_over(pod: Object) -> bool:
    """Whether the pod has succeeded or failed."""
    return phase(pod) in ("Succeeded", "Failed")


def reason(obj: Object) -> str:
    """Return the scheduler's reason why a pod or PodGroup waits; empty before one is published."""
    read = obj.get(READ)
    return str(read["reason"]) if read is not None else USUAL.reason(obj)


def eviction(pod: Object) -> dict[str, Any] | None:
    """Return the condition that marks a victim, or None."""
    read = pod.get(READ)
    return read["evicted"] if read is not None else USUAL.eviction(pod)


def group_of(pod: Object) -> str:
    """Return the name of a pod's PodGroup, or an empty text."""
    annotations = pod["metadata"].get("annotations") or {}
    own = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    return next((str(annotations[key]) for key in GROUPS if annotations.get(key)), str(own or ""))


def workload_of(pod: Object) -> str:
    """Return the name of the pod's job, service or PyTorchJob; the pod's own name if it has none."""
    labels = pod["metadata"].get("labels") or {}
    return next((str(labels[key]) for key in _WORKLOADS if labels.get(key)), str(pod["metadata"]["name"]))


def pods_of(view: View, workload: str) -> list[Object]:
    """Return the live pods of a workload, by name."""
    return sorted(view.mine_by(Kind.POD, workload_of, workload), key=lambda pod: str(pod["metadata"]["name"]))


def podgroup_of(view: View, workload: str) -> Object | None:
    """Return the PodGroup that has the workload's name, is named by its pods, or is owned by it or its pods."""
    names = {workload, *(name for pod in pods_of(view, workload) for name in (group_of(pod), pod["metadata"]["name"]))}
    for group in (group for kind in GANGS for group in view.mine(kind)):
        owners = {owner["name"] for owner in group["metadata"].get("ownerReferences") or ()}
        if group["metadata"]["name"] in names or names & owners:
            return group
    return None


def queue_of(view: View, workload: str) -> str:
    """Return the queue of a workload; empty before the workload has a PodGroup."""
    group = podgroup_of(view, workload)
    return queue_named_by(group) if group is not None else ""


def queue_named_by(group: Object) -> str:
    """Return the queue that a PodGroup or a Workload names."""
    spec = group.get("spec") or {}
    found = str(spec.get("queue") or spec.get("queueName") or "default")
    return "default" if found == KUEUE_DEFAULT else found


def minimum_of(group: Object) -> int:
    """Return how many pods of a gang start together, for any kind of group; 0 if the group leaves that open.

    A Workload of Kueue starts with fewer pods than it names if its pod sets permit that (`minCount`).
    """
    spec = group.get("spec") or {}
    if "schedulingPolicy" in spec:
        return int(((spec["schedulingPolicy"] or {}).get("gang") or {}).get("minCount") or 0)
    if "podSets" in spec:
        return sum(int(each.get("minCount") or each.get("count") or 1) for each in spec["podSets"] or ())
    return int(spec.get("minMember") or 0)


def is_gated(pod: Object) -> bool:
    """Whether a controller holds the pod back from the scheduler. The reason is then on the pod's Workload."""
    return bool(pod["spec"].get("schedulingGates"))


def group_of_gated(view: View, pod: Object) -> Object | None:
    """Return the Workload of a gated pod: the Workload that the pod owns, possibly together with other pods."""
    uid = pod["metadata"].get("uid")
    owned = (
        workload
        for workload in view.mine(Kind.WORKLOAD)
        if any(owner.get("uid") == uid for owner in workload["metadata"].get("ownerReferences") or ())
    )
    return next(owned, None)


def count(number: int, noun: str) -> str:
    """Format a count: `1 pod`, `2 pods`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def names(objects: Iterable[Object]) -> list[str]:
    """Return the sorted names of objects."""
    return sorted(str(obj["metadata"]["name"]) for obj in objects)


def summary(kind: Kind, obj: Object) -> str:
    """Summarize an object's state in one line."""
    return ", ".join(_summary(kind, obj)) or "(nothing yet)"


def _summary(kind: Kind, obj: Object) -> Iterator[str]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    if kind == Kind.EVENT:
        yield f"{obj.get('reason')}: {obj.get('message')}"
        return
    if phase(obj):
        yield phase(obj)
    if kind == Kind.POD and spec.get("nodeName"):
        yield f"on {spec['nodeName']}"
    if kind == Kind.NODE:
        yield f"Ready={condition(obj, 'Ready').get('status', '?')}"
        yield ", ".join(f"{name} {amount}" for name, amount in (status.get("allocatable") or {}).items())
    if kind in (Kind.GANG, Kind.GANG_ALPHA):
        yield f"minCount {minimum_of(obj) or None}"
    if kind == Kind.PODGROUP:
        yield f"queue {spec.get('queue') or 'default'}, minMember {spec.get('minMember')}"
    if kind in (Kind.DEPLOYMENT, Kind.STATEFULSET, Kind.PYTORCHJOB, Kind.JOB):
        true = [cond["type"] for cond in status.get("conditions") or () if cond.get("status") == "True"]
        yield ", ".join(true) or "no condition yet"
    victim = eviction(obj)
    if victim is not None:
        yield f"evicted: {victim.get('message', '')}"
    if is_leaving(obj):
        yield "leaving"
    if reason(obj):
        yield f"waits: {reason(obj)}"
