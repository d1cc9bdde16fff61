"""Gangs of Kubernetes: each gets a PodGroup of Volcano, and conditions of that PodGroup are copied to the original."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from schedspec.scheduler.controllers.podgroup import reconcile as plain
from schedspec.scheduler.controllers.podgroup.mirror import ObservedMirror, gang_of, reconcile
from schedspec.scheduler.controllers.runtime.objects import KUBE_PODGROUPS, KubePodGroup
from schedspec.scheduler.controllers.runtime.writes import ApplyObject, Create, EmitEvent, Remove, Write
from schedspec.scheduler.kube.resource import PODGROUPS
from schedspec.scheduler.model.objects import Pod, PodGroup

BETA, ALPHA = KUBE_PODGROUPS
OWNER = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "name": "g", "uid": "uid-g", "controller": True}
GANG_OF_TWO = {"schedulingPolicy": {"gang": {"minCount": 2}}}


def pod(name: str = "p", cpu: str = "1", meta: Any = None, conditions: Any = None, **spec: Any) -> Pod:
    containers = [{"name": "x", "resources": {"requests": {"cpu": cpu}}}]
    given = {"containers": containers, "schedulingGroup": {"podGroupName": "g"}, **spec}
    about = {"name": name, "namespace": "ns", "uid": f"uid-{name}", **(meta or {})}
    return msgspec.convert({"metadata": about, "spec": given, "status": {"conditions": conditions}}, Pod)


def original(conditions: Any = None, meta: dict[str, Any] | None = None, **spec: Any) -> KubePodGroup:
    about = {"name": "g", "namespace": "ns", "uid": "uid-g", "resourceVersion": "7", **(meta or {})}
    body = {"metadata": about, "spec": {**GANG_OF_TWO, **spec}, "status": {"conditions": conditions}}
    return msgspec.convert(body, KubePodGroup)


def mirror(owner: dict[str, Any] | None = OWNER, status: dict[str, Any] | None = None, **spec: Any) -> PodGroup:
    meta = {"name": "g", "namespace": "ns", "uid": "uid-m", "ownerReferences": [owner] if owner else []}
    wanted = {"minMember": 2, "minResources": {"cpu": "2"}, **spec}
    return msgspec.convert({"metadata": meta, "spec": wanted, "status": status or {}}, PodGroup)


def writes(
    gang: KubePodGroup | None, group: PodGroup | None = None, *pods: Pod, version: Any = BETA, **given: Any
) -> list[Write]:
    members = pods or (pod("a"), pod("b"))
    return list(reconcile(ObservedMirror(version, gang, group, members, now=1000.0, **given)).writes)


def created(gang: KubePodGroup, *pods: Pod, **given: Any) -> dict[str, Any]:
    (write,) = writes(gang, None, *pods, **given)
    assert isinstance(write, Create)
    assert write.resource is PODGROUPS
    return dict(write.body)


def test_the_mirror_of_a_gang_has_its_name_and_is_owned_by_it() -> None:
    body = created(original(priorityClassName="high"))
    assert (body["metadata"]["name"], body["metadata"]["namespace"]) == ("g", "ns")
    (owner,) = body["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"], owner["uid"]) == ("scheduling.k8s.io/v1beta1", "PodGroup", "uid-g")
    assert body["spec"] == {
        "minMember": 2,
        "queue": "default",
        "minResources": {"cpu": "2"},
        "priorityClassName": "high",
    }


def test_pods_with_the_basic_policy_start_one_by_one() -> None:
    assert created(original(schedulingPolicy={"basic": {}}))["spec"]["minMember"] == 1


@pytest.mark.parametrize(
    ("content", "mode"),
    [
        (None, "pod"),
        ("Pod", "pod"),
        ("PodGroup", "group"),
        ({"single": {}}, "pod"),
        ({"all": {}}, "group"),
    ],
)
def test_the_disruption_mode_of_either_version_is_copied_to_the_mirror(content: Any, mode: str) -> None:
    body = created(original(disruptionMode=content))
    assert body["metadata"]["annotations"]["schedspec.dev/disruption-mode"] == mode


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([pod("a", "3")], "6", id="missing pods count like the first"),
        pytest.param([pod("a", "3"), pod("b", "1"), pod("c", "9")], "4", id="only the pods that start together"),
    ],
)
def test_minimum_resources_are_the_requests_of_the_first_pods(pods: list[Pod], expected: str) -> None:
    assert created(original(), *pods)["spec"]["minResources"] == {"cpu": expected}


QUEUE = "scheduling.volcano.sh/queue-name"


@pytest.mark.parametrize(
    ("of_gang", "of_pod", "of_namespace", "queue"),
    [
        ({}, {}, None, "default"),
        ({}, {}, {QUEUE: "n"}, "n"),
        ({}, {QUEUE: "p"}, {QUEUE: "n"}, "p"),
        ({QUEUE: "g"}, {QUEUE: "p"}, None, "g"),
    ],
)
def test_the_queue_is_the_gangs_then_the_pods_then_the_namespaces(
    of_gang: dict, of_pod: dict, of_namespace: dict | None, queue: str
) -> None:
    gang, member = original(meta={"annotations": of_gang}), pod(meta={"annotations": of_pod})
    assert created(gang, member, namespace_annotations=of_namespace)["spec"]["queue"] == queue


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}}, "spec.schedulingConstraints.topology"),
        ({"schedulingConstraints": {"topology": [{"key": "rack"}]}}, None),
        ({"schedulingConstraints": {"topology": []}}, None),
        ({"resourceClaims": [{"name": "gpus"}]}, "spec.resourceClaims"),
        ({"parentCompositePodGroupName": "all"}, "spec.parentCompositePodGroupName"),
        ({"preemptionPolicy": "Never"}, "spec.preemptionPolicy (Never)"),
        ({"preemptionPolicy": "PreemptLowerPriority"}, None),
    ],
)
def test_an_unsupported_field_is_named(given: dict[str, Any], field: str | None) -> None:
    assert created(original(**given))["metadata"]["annotations"].get("schedspec.dev/unsupported") == field


def test_the_topology_key_is_copied_to_the_mirror() -> None:
    gang = original(schedulingConstraints={"topology": [{"key": "rack"}]})
    assert created(gang)["metadata"]["annotations"]["schedspec.dev/topology-key"] == "rack"


def test_a_changed_minimum_updates_the_mirror() -> None:
    (write,) = writes(original(schedulingPolicy={"gang": {"minCount": 3}}), mirror())
    assert isinstance(write, ApplyObject)
    assert (write.name, write.uid, write.body) == (
        "g",
        "uid-m",
        {"spec": {"minMember": 3, "minResources": {"cpu": "3"}}},
    )
    assert writes(original(), mirror()) == []


@pytest.mark.parametrize(
    ("gang", "owner", "pods"),
    [
        pytest.param(None, OWNER, (pod(),), id="its gang is gone"),
        pytest.param(original(), {**OWNER, "uid": "before"}, (pod(),), id="its gang has a successor"),
    ],
)
def test_the_mirror_of_a_deleted_gang_is_removed(
    gang: KubePodGroup | None, owner: dict[str, Any], pods: tuple[Pod]
) -> None:
    assert writes(gang, mirror(owner), *pods) == [Remove(PODGROUPS, "ns", "g", "uid-m")]


def test_the_mirror_is_removed_with_its_last_pod() -> None:
    seen = ObservedMirror(BETA, original(), mirror(), ())
    assert reconcile(seen).writes == [Remove(PODGROUPS, "ns", "g", "uid-m")]
    going = pod(meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert writes(original(), mirror(), going) == []
    assert writes(original(), None, going) == []


def test_a_podgroup_of_its_name_that_is_no_mirror_is_left_alone_and_named() -> None:
    event, status = writes(original(), mirror(owner=None))
    assert isinstance(event, EmitEvent)
    assert "PodGroup g of scheduling.volcano.sh exists and is no mirror" in event.message
    assert isinstance(status, ApplyObject)
    assert status.body["status"]["conditions"][0]["reason"] == "SchedulerError"
    assert writes(None, mirror(owner=None)) == []


WAITS = {"conditions": [{"type": "Unschedulable", "status": "True", "message": "no room"}]}
READY = {"conditions": [{"type": "Scheduled", "status": "True", "message": "ready"}, *WAITS["conditions"]]}


@pytest.mark.parametrize(("version", "kind"), [(ALPHA, "PodGroupScheduled"), (BETA, "PodGroupInitiallyScheduled")])
@pytest.mark.parametrize(
    ("status", "content"), [(WAITS, ("False", "Unschedulable", "no room")), (READY, ("True", "Scheduled", "ready"))]
)
def test_the_conditions_of_the_mirror_are_copied_to_the_gang(
    version: Any, kind: str, status: dict[str, Any], content: tuple[str, str, str]
) -> None:
    (write,) = writes(original(), mirror(status=status), version=version)
    assert isinstance(write, ApplyObject)
    assert (write.resource, write.sub, write.version) == (version, "status", "7")
    (condition,) = write.body["status"]["conditions"]
    assert (condition["status"], condition["reason"], condition["message"]) == content
    assert (condition["type"], condition["lastTransitionTime"]) == (kind, "1970-01-01T00:16:40Z")
    assert writes(original([condition]), mirror(status=status), version=version) == []


@pytest.mark.parametrize(
    ("version", "kind", "stays"), [(ALPHA, "PodGroupScheduled", False), (BETA, "PodGroupInitiallyScheduled", True)]
)
def test_initially_scheduled_stays_true(version: Any, kind: str, stays: bool) -> None:
    once = [{"type": kind, "status": "True", "reason": "Scheduled", "message": "ready"}]
    assert (writes(original(once), mirror(status=WAITS), version=version) == []) is stays


VICTIM = [
    {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "for ns/grand"},
]
GOES = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def conditions(gang: KubePodGroup, *pods: Pod, version: Any = BETA) -> Any:
    """Return the conditions of the original, by type; None where nothing is written."""
    status = [it for it in writes(gang, mirror(status=READY), *pods, version=version) if isinstance(it, ApplyObject)]
    return {it["type"]: it for it in status[0].body["status"]["conditions"]} if status else None


@pytest.mark.parametrize(("version", "mode"), [(ALPHA, "PodGroup"), (BETA, {"all": {}})])
@pytest.mark.parametrize("meta", [{}, GOES])
def test_a_gang_that_is_preempted_as_a_whole_has_a_disruption_condition(version: Any, mode: Any, meta: Any) -> None:
    gang, victims = original(disruptionMode=mode), [pod(name, meta=meta, conditions=VICTIM) for name in "ab"]
    content = conditions(gang, *victims, version=version)
    target = content["DisruptionTarget"]
    assert {key: target[key] for key in VICTIM[0]} == VICTIM[0]
    assert target["lastTransitionTime"] == "1970-01-01T00:16:40Z"
    assert conditions(original(list(content.values()), disruptionMode=mode), *victims, version=version) is None


@pytest.mark.parametrize("mode", [None, "Pod", {"single": {}}])
def test_a_gang_that_loses_single_pods_has_no_disruption_condition(mode: Any) -> None:
    assert "DisruptionTarget" not in conditions(original(disruptionMode=mode), pod("a", conditions=VICTIM), pod("b"))


def test_a_disruption_condition_does_not_apply_to_later_pods_of_the_gang() -> None:
    """Pods that are created after the victims are not being evicted."""
    whole = {"disruptionMode": {"all": {}}}
    content = list(conditions(original(**whole), pod("a", conditions=VICTIM)).values())
    gang = original(content, **whole)
    assert reconcile(ObservedMirror(BETA, gang, None, (), now=2000.0)).writes == []
    assert conditions(gang, pod("a", meta=GOES, conditions=VICTIM), pod("c")) is None
    assert list(conditions(gang, pod("c"), pod("d"))) == ["PodGroupInitiallyScheduled"]


def test_an_eviction_by_the_api_is_not_reported_as_preemption() -> None:
    evicted = [{**VICTIM[0], "reason": "EvictionByEvictionAPI"}]
    assert "DisruptionTarget" not in conditions(original(disruptionMode="PodGroup"), pod("a", conditions=evicted))


def test_pods_of_a_gang_get_no_podgroup_of_their_owner() -> None:
    assert gang_of(pod()) == "ns/g"
    assert plain.group_of(pod()) == ""
