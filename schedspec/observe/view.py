"""What people ask of an object, answered from its fields. Pure; every missing field means: not yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..api.kinds import GANGS, Kind
from ..api.marks import READ, USUAL
from .history import Object, View

GROUPS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
WORKLOAD = "schedspec.dev/workload"
"""The label with which our templates name the workload that a pod belongs to."""
_WORKLOADS = (
    WORKLOAD,
    "volcano.sh/job-name",
    "training.kubeflow.org/job-name",
    "batch.kubernetes.io/job-name",
)
"""Labels that name the workload that a pod belongs to."""


def condition(obj: Object, kind: str) -> dict[str, Any]:
    """The condition of that type, or an empty one."""
    found = (it for it in (obj.get("status") or {}).get("conditions") or () if it.get("type") == kind)
    return next(found, {})


def phase(obj: Object) -> str:
    """The phase of a pod or PodGroup, the state of a Volcano Job or Queue; empty if there is none yet."""
    status = obj.get("status") or {}
    state = status.get("state")
    return str(state.get("phase", "") if isinstance(state, dict) else state or status.get("phase") or "")


def is_leaving(obj: Object) -> bool:
    """It was deleted and is not gone yet."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def runs(pod: Object) -> bool:
    """Its containers run and nobody has told it to go."""
    return phase(pod) == "Running" and not is_leaving(pod)


def waits(pod: Object) -> bool:
    """No node has it yet."""
    return phase(pod) in ("", "Pending") and not pod["spec"].get("nodeName") and not is_leaving(pod)


def is_over(pod: Object) -> bool:
    """It ran to its end."""
    return phase(pod) in ("Succeeded", "Failed")


def reason(obj: Object) -> str:
    """Why the scheduler has not placed a pod or PodGroup, in its own words; empty before it has spoken."""
    read = obj.get(READ)
    return str(read["reason"]) if read is not None else USUAL.reason(obj)


def eviction(pod: Object) -> dict[str, Any] | None:
    """The condition with which a scheduler marks its victim, or None."""
    read = pod.get(READ)
    return read["evicted"] if read is not None else USUAL.eviction(pod)


def group_of(pod: Object) -> str:
    """The name of a pod's PodGroup, or empty."""
    annotations = pod["metadata"].get("annotations") or {}
    own = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    return next((str(annotations[key]) for key in GROUPS if annotations.get(key)), str(own or ""))


def workload_of(pod: Object) -> str:
    """The name of the job, service or PyTorchJob that a pod is of; the pod's own if it is of none."""
    labels = pod["metadata"].get("labels") or {}
    return next((str(labels[key]) for key in _WORKLOADS if labels.get(key)), str(pod["metadata"]["name"]))


def pods_of(view: View, workload: str) -> list[Object]:
    """The live pods of a workload, by name."""
    found = [pod for pod in view.mine(Kind.POD) if workload_of(pod) == workload]
    return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))


def podgroup_of(view: View, workload: str) -> Object | None:
    """The PodGroup of a workload: of its name, of its controller, or of one of its pods."""
    names = {workload, *(group_of(pod) for pod in pods_of(view, workload))}
    for group in (group for kind in GANGS for group in view.mine(kind)):
        owners = {owner["name"] for owner in group["metadata"].get("ownerReferences") or ()}
        if group["metadata"]["name"] in names or workload in owners:
            return group
    return None


def queue_of(view: View, workload: str) -> str:
    """The queue that a workload waits or runs in; empty before it has a PodGroup."""
    group = podgroup_of(view, workload)
    return str(group["spec"].get("queue") or "default") if group is not None else ""


def names(objects: Iterable[Object]) -> list[str]:
    """Their names, in order."""
    return sorted(str(obj["metadata"]["name"]) for obj in objects)


def summary(kind: Kind, obj: Object) -> str:
    """One line that says what state an object is in."""
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
        yield f"minCount {((spec.get('schedulingPolicy') or {}).get('gang') or {}).get('minCount')}"
    if kind == Kind.PODGROUP:
        yield f"queue {spec.get('queue') or 'default'}, minMember {spec.get('minMember')}"
    if kind in (Kind.DEPLOYMENT, Kind.PYTORCHJOB, Kind.JOB):
        said = [it["type"] for it in status.get("conditions") or () if it.get("status") == "True"]
        yield ", ".join(said) or "no condition yet"
    victim = eviction(obj)
    if victim is not None:
        yield f"evicted: {victim.get('message', '')}"
    if is_leaving(obj):
        yield "leaving"
    if reason(obj):
        yield f"waits: {reason(obj)}"
