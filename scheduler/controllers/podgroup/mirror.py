"""Gangs of Kubernetes itself: for each PodGroup of ``scheduling.k8s.io`` that pods of ours name, one of Volcano's.

The one rule: the mirror has the name of what it stands for, belongs to it and goes with it, or with its last pod; what
the scheduler says of the mirror is said of the original. A field that is not honoured keeps the gang waiting, by name.
(Rules: ``pkg/apis/scheduling`` of Kubernetes 1.36 and 1.37.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...kube import WARNING
from ...kube.resource import PODGROUPS, Resource
from ...model import names, resources
from ...model.demand import requests_of
from ...model.job import DisruptionMode
from ...model.objects import Condition, Pod, PodGroup
from ...model.resources import quantities
from ...model.times import timestamp
from ..runtime.objects import KubePodGroup
from ..runtime.pods import controller_of
from ..runtime.writes import ApplyObject, Create, EmitEvent, ReconcileResult, Remove, Write, owned_by

API_GROUP = "scheduling.k8s.io/"
MANAGER = "schedspec-podgroup"
_MODES = {
    "Pod": DisruptionMode.POD,
    "PodGroup": DisruptionMode.GROUP,
    "single": DisruptionMode.POD,
    "all": DisruptionMode.GROUP,
}
_CONDITIONS = {"v1alpha2": "PodGroupScheduled", "v1beta1": "PodGroupInitiallyScheduled"}
"""What tells, by version of the API, whether a gang is scheduled; the younger one stays True once it was."""
_FINAL = "PodGroupInitiallyScheduled"
DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTED = "PreemptionByScheduler"


@dataclass(frozen=True, slots=True)
class ObservedMirror:
    """A PodGroup of Kubernetes, its pods, and the PodGroup of Volcano that has its name."""

    resource: Resource[Any]
    """The version in which Kubernetes' PodGroup is served."""
    original: KubePodGroup | None
    mirror: PodGroup | None
    pods: Sequence[Pod] = ()
    namespace_annotations: Mapping[str, str] | None = None
    now: float = 0.0


class _Said(NamedTuple):
    """What a condition says."""

    status: str
    reason: str
    message: str

    @classmethod
    def of(cls, condition: Condition | None) -> _Said | None:
        return cls(condition.status, condition.reason, condition.message) if condition is not None else None


def gang_of(pod: Pod) -> str:
    """The key of the PodGroup of Kubernetes that a pod names; or empty."""
    named = pod.spec.scheduling_group
    return f"{pod.metadata.namespace}/{named.pod_group_name}" if named is not None and named.pod_group_name else ""


def is_going(pod: Pod) -> bool:
    """Whether it is being deleted, or is a victim and about to be."""
    return pod.metadata.deletion_timestamp is not None or _victim(pod) is not None


def original_of(mirror: PodGroup) -> str:
    """The uid of the PodGroup of Kubernetes that a PodGroup stands for; empty where it stands for none."""
    owner = controller_of(mirror.metadata)
    return owner.uid if owner is not None and owner.api_version.startswith(API_GROUP) else ""


def reconcile(seen: ObservedMirror) -> ReconcileResult:
    """What to write for one gang. Pure: equal input, equal outcome."""
    original, mirror = seen.original, seen.mirror
    stands_for = original_of(mirror) if mirror is not None else ""
    if mirror is not None and stands_for and (original is None or stands_for != original.metadata.uid or not seen.pods):
        return ReconcileResult([] if mirror.metadata.deletion_timestamp else [Remove.of(PODGROUPS, mirror.metadata)])
    pods = [pod for pod in seen.pods if pod.metadata.deletion_timestamp is None]
    if original is None or original.metadata.deletion_timestamp is not None:
        return ReconcileResult()
    if not pods:
        return ReconcileResult(_status(seen, original))
    if mirror is None:
        create = Create(PODGROUPS, _body(seen.resource, original, pods, seen.namespace_annotations))
        return ReconcileResult([create, *_status(seen, original)])
    if not stands_for:
        told = f"PodGroup {mirror.metadata.name} of scheduling.volcano.sh exists and is another; delete or rename it"
        event = EmitEvent(seen.resource, original.metadata, WARNING, "PodGroupExists", told)
        return ReconcileResult([event, *_status(seen, original, _Said("False", "SchedulerError", told))])
    return ReconcileResult([*_changes(original, mirror, pods), *_status(seen, original, _verdict(mirror))])


def _changes(original: KubePodGroup, mirror: PodGroup, pods: Sequence[Pod]) -> list[Write]:
    """``minCount`` may change, and with it, or with the pods, what the gang asks for to start."""
    minimum = _minimum(original)
    asked = _asked(pods, minimum)
    if mirror.spec.min_member == minimum and resources.parse(mirror.spec.min_resources) == asked:
        return []
    wanted = {**dict.fromkeys(mirror.spec.min_resources or ()), **quantities(asked)}
    spec = {"spec": {"minMember": minimum, "minResources": wanted}}
    meta = mirror.metadata
    return [ApplyObject(PODGROUPS, meta.namespace, meta.name, spec, uid=meta.uid)]


def _verdict(mirror: PodGroup) -> _Said | None:
    """What the scheduler said of the mirror; None where it has not."""
    said = {condition.type: condition for condition in mirror.status.conditions or ()}
    scheduled, refused = said.get("Scheduled"), said.get("Unschedulable")
    if scheduled is not None and scheduled.status == "True":
        return _Said("True", "Scheduled", scheduled.message)
    if refused is not None and refused.status == "True":
        return _Said("False", "Unschedulable", refused.message)
    return None


def _disruption(seen: ObservedMirror, original: KubePodGroup) -> _Said | None:
    """Whether a gang that goes as a whole is going: one of its pods is a victim. A gang that is disrupted pod by pod
    does not go.
    """
    if _mode(original) != DisruptionMode.GROUP:
        return None
    return next((said for pod in seen.pods if (said := _victim(pod)) is not None), None)


def _victim(pod: Pod) -> _Said | None:
    """What a victim of preemption is told; None where a pod is none."""
    said = (_Said.of(it) for it in pod.status.conditions or () if it.type == DISRUPTION_TARGET)
    return next((it for it in said if it is not None and (it.status, it.reason) == ("True", PREEMPTED)), None)


def _status(seen: ObservedMirror, original: KubePodGroup, verdict: _Said | None = None) -> list[Write]:
    """The conditions of the original: what is said of it now, and what was said and still holds."""
    kind = _CONDITIONS[seen.resource.version]
    before = {it.type: it for it in original.status.conditions or () if it.type in (kind, DISRUPTION_TARGET)}
    was, gone = before.get(kind), not seen.pods
    settled = verdict is None or (kind == _FINAL and was is not None and was.status == "True")
    wanted = {
        kind: _Said.of(was) if settled else verdict,
        DISRUPTION_TARGET: _Said.of(before.get(DISRUPTION_TARGET)) if gone else _disruption(seen, original),
    }
    if all(_Said.of(before.get(name)) == said for name, said in wanted.items()):
        return []
    conditions = []
    for name, said in wanted.items():
        old = before.get(name)
        if said is not None:
            since = old.last_transition_time if old is not None and old.status == said.status else None
            conditions.append({"type": name, **said._asdict(), "lastTransitionTime": since or timestamp(seen.now)})
    meta, body = original.metadata, {"status": {"conditions": conditions}}
    version = meta.resource_version
    return [
        ApplyObject(seen.resource, meta.namespace, meta.name, body, "status", version=version, manager=MANAGER),
    ]


def _body(
    resource: Resource[Any], original: KubePodGroup, pods: Sequence[Pod], namespace: Mapping[str, str] | None
) -> dict[str, Any]:
    meta, first, minimum = original.metadata, _in_order(pods)[0], _minimum(original)
    given = {**(first.metadata.annotations or {}), **(meta.annotations or {})}
    annotations = {key: value for key, value in given.items() if key.startswith(names.VOLCANO_PREFIX)}
    annotations[names.DISRUPTION_MODE] = _mode(original)
    if field := _unsupported(original):
        annotations[names.UNSUPPORTED] = field
    spec: dict[str, Any] = {
        "minMember": minimum,
        "queue": given.get(names.QUEUE_NAME) or (namespace or {}).get(names.QUEUE_NAME) or "default",
        "minResources": quantities(_asked(pods, minimum)),
    }
    if original.spec.priority_class_name:
        spec["priorityClassName"] = original.spec.priority_class_name
    owner = {**owned_by(resource, meta), "blockOwnerDeletion": False}
    place = {"name": meta.name, "namespace": meta.namespace}
    return {"metadata": {**place, "annotations": annotations, "ownerReferences": [owner]}, "spec": spec}


def _minimum(original: KubePodGroup) -> int:
    gang = original.spec.scheduling_policy.gang
    return max(gang.min_count, 1) if gang is not None else 1


def _mode(original: KubePodGroup) -> DisruptionMode:
    """Pod by pod where nothing is said, as Kubernetes has it."""
    mode = original.spec.disruption_mode
    said = mode if isinstance(mode, str) else next(iter(mode or {}), "")
    return _MODES.get(said, DisruptionMode.POD)


def _unsupported(original: KubePodGroup) -> str:
    """The first field that is set and not honoured; empty if there is none."""
    spec = original.spec
    constraints = spec.scheduling_constraints
    asked = {
        "schedulingConstraints.topology": constraints is not None and constraints.topology,
        "resourceClaims": spec.resource_claims,
        "parentCompositePodGroupName": spec.parent_composite_pod_group_name,
        "preemptionPolicy (Never)": spec.preemption_policy == "Never",
    }
    return next((f"spec.{name}" for name, given in asked.items() if given), "")


def _in_order(pods: Sequence[Pod]) -> list[Pod]:
    return sorted(pods, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name))


def _asked(pods: Sequence[Pod], minimum: int) -> resources.Resource:
    """What the first pods ask for, as many as start together; those that are not there yet count as the first."""
    first = _in_order(pods)[:minimum]
    requests = [requests_of(pod)[0] for pod in first]
    requests += requests[:1] * (minimum - len(first))
    return {name: amount for name, amount in resources.total_of(requests).items() if name != resources.PODS}
