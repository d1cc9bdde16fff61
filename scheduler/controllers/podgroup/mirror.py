"""Mirror gangs of Kubernetes: one PodGroup of Volcano for each PodGroup of `scheduling.k8s.io` that our pods name.

The mirror has the name of the original, is owned by it, and is deleted with it or with its last pod. Conditions of the
mirror are copied to the original. A gang with an unsupported field waits, and its condition names the field.

The rules are those of `pkg/apis/scheduling` of Kubernetes 1.36 and 1.37.
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
"""The condition of a scheduled gang, by API version. The newer one stays True once it is True."""
_FINAL = "PodGroupInitiallyScheduled"
DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTED = "PreemptionByScheduler"


@dataclass(frozen=True, slots=True)
class ObservedMirror:
    """A PodGroup of Kubernetes, its pods, and the PodGroup of Volcano with its name."""

    resource: Resource[Any]
    """The API version in which Kubernetes' PodGroup is served."""
    original: KubePodGroup | None
    mirror: PodGroup | None
    pods: Sequence[Pod] = ()
    namespace_annotations: Mapping[str, str] | None = None
    now: float = 0.0


class _ConditionContent(NamedTuple):
    """The content of a condition."""

    status: str
    reason: str
    message: str

    @classmethod
    def of(cls, condition: Condition | None) -> _ConditionContent | None:
        return cls(condition.status, condition.reason, condition.message) if condition is not None else None


def gang_of(pod: Pod) -> str:
    """Return the key of the PodGroup of Kubernetes that a pod names, or empty."""
    named = pod.spec.scheduling_group
    return f"{pod.metadata.namespace}/{named.pod_group_name}" if named is not None and named.pod_group_name else ""


def is_terminating(pod: Pod) -> bool:
    """Return True if a pod is being deleted, or is a preemption victim and will be."""
    return pod.metadata.deletion_timestamp is not None or _victim(pod) is not None


def original_of(mirror: PodGroup) -> str:
    """Return the uid of the PodGroup of Kubernetes that a PodGroup mirrors; empty if it mirrors none."""
    owner = controller_of(mirror.metadata)
    return owner.uid if owner is not None and owner.api_version.startswith(API_GROUP) else ""


def reconcile(seen: ObservedMirror) -> ReconcileResult:
    """Return the writes for one gang. Pure: equal input, equal outcome."""
    original, mirror = seen.original, seen.mirror
    mirrored = original_of(mirror) if mirror is not None else ""
    if mirror is not None and mirrored and (original is None or mirrored != original.metadata.uid or not seen.pods):
        return ReconcileResult([] if mirror.metadata.deletion_timestamp else [Remove.of(PODGROUPS, mirror.metadata)])
    pods = [pod for pod in seen.pods if pod.metadata.deletion_timestamp is None]
    if original is None or original.metadata.deletion_timestamp is not None:
        return ReconcileResult()
    if not pods:
        return ReconcileResult(_status(seen, original))
    if mirror is None:
        create = Create(PODGROUPS, _body(seen.resource, original, pods, seen.namespace_annotations))
        return ReconcileResult([create, *_status(seen, original)])
    if not mirrored:
        message = (
            f"PodGroup {mirror.metadata.name} of scheduling.volcano.sh exists and is no mirror; delete or rename it"
        )
        event = EmitEvent(seen.resource, original.metadata, WARNING, "PodGroupExists", message)
        return ReconcileResult([event, *_status(seen, original, _ConditionContent("False", "SchedulerError", message))])
    return ReconcileResult([*_changes(original, mirror, pods), *_status(seen, original, _verdict(mirror))])


def _changes(original: KubePodGroup, mirror: PodGroup, pods: Sequence[Pod]) -> list[Write]:
    """Return the update of the mirror, if `minCount` or the requests of the pods have changed."""
    minimum = _minimum(original)
    request = _gang_request(pods, minimum)
    if mirror.spec.min_member == minimum and resources.parse(mirror.spec.min_resources) == request:
        return []
    wanted = {**dict.fromkeys(mirror.spec.min_resources or ()), **quantities(request)}
    spec = {"spec": {"minMember": minimum, "minResources": wanted}}
    meta = mirror.metadata
    return [ApplyObject(PODGROUPS, meta.namespace, meta.name, spec, uid=meta.uid)]


def _verdict(mirror: PodGroup) -> _ConditionContent | None:
    """Return the scheduler's verdict on the mirror; None if there is none yet."""
    conditions = {condition.type: condition for condition in mirror.status.conditions or ()}
    scheduled, refused = conditions.get("Scheduled"), conditions.get("Unschedulable")
    if scheduled is not None and scheduled.status == "True":
        return _ConditionContent("True", "Scheduled", scheduled.message)
    if refused is not None and refused.status == "True":
        return _ConditionContent("False", "Unschedulable", refused.message)
    return None


def _disruption(seen: ObservedMirror, original: KubePodGroup) -> _ConditionContent | None:
    """Return the condition of a gang that is evicted as a whole, from one of its victims; None if it has no victim.

    A gang that is disrupted pod by pod has no such condition.
    """
    if _mode(original) != DisruptionMode.GROUP:
        return None
    return next((content for pod in seen.pods if (content := _victim(pod)) is not None), None)


def _victim(pod: Pod) -> _ConditionContent | None:
    """Return the condition of a pod that is a preemption victim; None for any other pod."""
    contents = (
        _ConditionContent.of(condition)
        for condition in pod.status.conditions or ()
        if condition.type == DISRUPTION_TARGET
    )
    return next(
        (
            content
            for content in contents
            if content is not None and (content.status, content.reason) == ("True", PREEMPTED)
        ),
        None,
    )


def _status(seen: ObservedMirror, original: KubePodGroup, verdict: _ConditionContent | None = None) -> list[Write]:
    """Return the write of the original's conditions: current ones, and earlier ones that still hold."""
    kind = _CONDITIONS[seen.resource.version]
    before = {
        condition.type: condition
        for condition in original.status.conditions or ()
        if condition.type in (kind, DISRUPTION_TARGET)
    }
    was, gone = before.get(kind), not seen.pods
    settled = verdict is None or (kind == _FINAL and was is not None and was.status == "True")
    wanted = {
        kind: _ConditionContent.of(was) if settled else verdict,
        DISRUPTION_TARGET: _ConditionContent.of(before.get(DISRUPTION_TARGET)) if gone else _disruption(seen, original),
    }
    if all(_ConditionContent.of(before.get(name)) == content for name, content in wanted.items()):
        return []
    conditions = []
    for name, content in wanted.items():
        old = before.get(name)
        if content is not None:
            since = old.last_transition_time if old is not None and old.status == content.status else None
            conditions.append({"type": name, **content._asdict(), "lastTransitionTime": since or timestamp(seen.now)})
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
    if key := _topology_key(original):
        annotations[names.TOPOLOGY_KEY] = key
    if field := _unsupported(original):
        annotations[names.UNSUPPORTED] = field
    spec: dict[str, Any] = {
        "minMember": minimum,
        "queue": given.get(names.QUEUE_NAME) or (namespace or {}).get(names.QUEUE_NAME) or "default",
        "minResources": quantities(_gang_request(pods, minimum)),
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
    """Return the disruption mode. Without one, pods are disrupted one by one, as in Kubernetes."""
    mode = original.spec.disruption_mode
    name = mode if isinstance(mode, str) else next(iter(mode or {}), "")
    return _MODES.get(name, DisruptionMode.POD)


def _unsupported(original: KubePodGroup) -> str:
    """Return the first field that is set and not supported; empty if there is none."""
    spec = original.spec
    constraints = spec.scheduling_constraints
    fields = {
        "schedulingConstraints.topology": constraints is not None
        and constraints.topology
        and not _topology_key(original),
        "resourceClaims": spec.resource_claims,
        "parentCompositePodGroupName": spec.parent_composite_pod_group_name,
        "preemptionPolicy (Never)": spec.preemption_policy == "Never",
    }
    return next((f"spec.{name}" for name, given in fields.items() if given), "")


def _topology_key(original: KubePodGroup) -> str:
    """Return the node label that must have the same value for all pods; empty if there is none, or several."""
    constraints = original.spec.scheduling_constraints
    given = (constraints.topology if constraints is not None else None) or []
    keys = [constraint.get("key", "") for constraint in given if isinstance(constraint, dict)]
    return str(keys[0]) if len(given) == 1 == len(keys) and given[0].keys() == {"key"} else ""


def _in_order(pods: Sequence[Pod]) -> list[Pod]:
    return sorted(pods, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name))


def _gang_request(pods: Sequence[Pod], minimum: int) -> resources.Resource:
    """Return the total requests of the pods that start together. Each missing pod counts like the first pod."""
    first = _in_order(pods)[:minimum]
    requests = [requests_of(pod)[0] for pod in first]
    requests += requests[:1] * (minimum - len(first))
    return {name: amount for name, amount in resources.total_of(requests).items() if name != resources.PODS}
