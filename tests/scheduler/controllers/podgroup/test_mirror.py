"""Gangs of Kubernetes: each gets a PodGroup of Volcano, and conditions of that PodGroup are copied to the original."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from scheduler.controllers.podgroup import reconcile as plain
from scheduler.controllers.podgroup.mirror import ObservedMirror, gang_of, reconcile
from scheduler.controllers.runtime.objects import KUBE_PODGROUPS, KubePodGroup
from scheduler.controllers.runtime.writes import ApplyObject, Create, EmitEvent, Remove, Write
from scheduler.kube.resource import PODGROUPS
from scheduler.model.objects import Pod, PodGroup

BETA, ALPHA = KUBE_PODGROUPS
OWNER = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "name": "g", "uid": "uid-g", "controller": True}
GANG_OF_TWO = {"schedulingPolicy": {"gang": {"minCount": 2}}}


def pod(name: str = "p", cpu: str = "1", meta: dict[str, Any] | None = None, marks: Any = None, **spec: Any) -> Pod:
    containers = [{"name": "x", "resources": {"requests": {"cpu": cpu}}}]
    given = {"containers": containers, "schedulingGroup": {"podGroupName": "g"}, **spec}
    about = {"name": name, "namespace": "ns", "uid": f"uid-{name}", **(meta or {})}
    return msgspec.convert({"metadata": about, "spec": given, "status": {"conditions": marks}}, Pod)


def original(conditions: Any = None, meta: dict[str, Any] | None = None, **spec: Any) -> KubePodGroup:
    about = {"name": "g", "namespace": "ns", "uid": "uid-g", "resourceVersion": "7", **(meta or {})}
    body = {"metadata": about, "spec": {**GANG_OF_TWO, **spec}, "status": {"conditions": conditions}}
    return msgspec.convert(body, KubePodGroup)


def mirror(owner: dict[str, Any] | None = OWNER, status: dict[str, Any] | None = None, **spec: Any) -> PodGroup:
    meta = {"name": "g", "namespace": "ns", "uid": "uid-m", "ownerReferences": [owner] if owner else []}
    wanted = {"minMember": 2, "minResources": {"cpu": "2"}, **spec}
    return msgspec.convert({"metadata": meta, "spec": wanted, "status": status or {}}, PodGroup)


def writes(
    of: KubePodGroup | None, its: PodGroup | None = None, *pods: Pod, version: Any = BETA, **given: Any
) -> list[Write]:
    members = pods or (pod("a"), pod("b"))
    return list(reconcile(ObservedMirror(version, of, its, members, now=1000.0, **given)).writes)


def created(of: KubePodGroup, *pods: Pod, **given: Any) -> dict[str, Any]:
    (write,) = writes(of, None, *pods, **given)
    assert isinstance(write, Create)
    assert write.resource is PODGROUPS
    return dict(write.body)


def test_a_gang_has_a_podgroup_of_its_name_that_goes_with_it() -> None:
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


def test_pods_for_themselves_start_one_by_one() -> None:
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
def test_the_disruption_mode_is_handed_on_in_either_version(content: Any, mode: str) -> None:
    body = created(original(disruptionMode=content))
    assert body["metadata"]["annotations"]["schedspec.dev/disruption-mode"] == mode


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([pod("a", "3")], "6", id="those to come count as the first"),
        pytest.param([pod("a", "3"), pod("b", "1"), pod("c", "9")], "4", id="as many as start together"),
    ],
)
def test_it_asks_for_what_its_first_pods_ask(pods: list[Pod], expected: str) -> None:
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
    of, member = original(meta={"annotations": of_gang}), pod(meta={"annotations": of_pod})
    assert created(of, member, namespace_annotations=of_namespace)["spec"]["queue"] == queue


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
def test_a_field_that_is_not_honoured_is_named(given: dict[str, Any], field: str | None) -> None:
    assert created(original(**given))["metadata"]["annotations"].get("schedspec.dev/unsupported") == field


def test_the_label_that_all_pods_need_one_value_of_is_the_mirrors() -> None:
    of = original(schedulingConstraints={"topology": [{"key": "rack"}]})
    assert created(of)["metadata"]["annotations"]["schedspec.dev/topology-key"] == "rack"


def test_a_changed_minimum_is_followed() -> None:
    (write,) = writes(original(schedulingPolicy={"gang": {"minCount": 3}}), mirror())
    assert isinstance(write, ApplyObject)
    assert (write.name, write.uid, write.body) == (
        "g",
        "uid-m",
        {"spec": {"minMember": 3, "minResources": {"cpu": "3"}}},
    )
    assert writes(original(), mirror()) == []


@pytest.mark.parametrize(
    ("of", "owner", "pods"),
    [
        pytest.param(None, OWNER, (pod(),), id="its gang is gone"),
        pytest.param(original(), {**OWNER, "uid": "before"}, (pod(),), id="its gang has a successor"),
    ],
)
def test_a_mirror_of_what_is_no_more_goes(of: KubePodGroup | None, owner: dict[str, Any], pods: tuple[Pod]) -> None:
    assert writes(of, mirror(owner), *pods) == [Remove(PODGROUPS, "ns", "g", "uid-m")]


def test_a_mirror_goes_with_its_last_pod() -> None:
    seen = ObservedMirror(BETA, original(), mirror(), ())
    assert reconcile(seen).writes == [Remove(PODGROUPS, "ns", "g", "uid-m")]
    going = pod(meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert writes(original(), mirror(), going) == []
    assert writes(original(), None, going) == []


def test_a_podgroup_of_its_name_that_is_another_is_left_alone_and_named() -> None:
    event, status = writes(original(), mirror(owner=None))
    assert isinstance(event, EmitEvent)
    assert "PodGroup g of scheduling.volcano.sh exists and is another" in event.message
    assert isinstance(status, ApplyObject)
    assert status.body["status"]["conditions"][0]["reason"] == "SchedulerError"
    assert writes(None, mirror(owner=None)) == []


WAITS = {"conditions": [{"type": "Unschedulable", "status": "True", "message": "no room"}]}
READY = {"conditions": [{"type": "Scheduled", "status": "True", "message": "ready"}, *WAITS["conditions"]]}


@pytest.mark.parametrize(("version", "kind"), [(ALPHA, "PodGroupScheduled"), (BETA, "PodGroupInitiallyScheduled")])
@pytest.mark.parametrize(
    ("status", "content"), [(WAITS, ("False", "Unschedulable", "no room")), (READY, ("True", "Scheduled", "ready"))]
)
def test_what_is_said_of_the_mirror_is_said_of_the_gang(
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


def conditions(of: KubePodGroup, *pods: Pod, version: Any = BETA) -> Any:
    """Return the conditions of the original, by type; None where nothing is written."""
    status = [it for it in writes(of, mirror(status=READY), *pods, version=version) if isinstance(it, ApplyObject)]
    return {it["type"]: it for it in status[0].body["status"]["conditions"]} if status else None


@pytest.mark.parametrize(("version", "mode"), [(ALPHA, "PodGroup"), (BETA, {"all": {}})])
@pytest.mark.parametrize("meta", [{}, GOES])
def test_a_gang_that_is_preempted_as_a_whole_is_told_so(version: Any, mode: Any, meta: Any) -> None:
    of, victims = original(disruptionMode=mode), [pod(name, meta=meta, marks=VICTIM) for name in "ab"]
    content = conditions(of, *victims, version=version)
    target = content["DisruptionTarget"]
    assert {key: target[key] for key in VICTIM[0]} == VICTIM[0]
    assert target["lastTransitionTime"] == "1970-01-01T00:16:40Z"
    assert conditions(original(list(content.values()), disruptionMode=mode), *victims, version=version) is None


@pytest.mark.parametrize("mode", [None, "Pod", {"single": {}}])
def test_a_gang_that_loses_single_pods_does_not_go(mode: Any) -> None:
    assert "DisruptionTarget" not in conditions(original(disruptionMode=mode), pod("a", marks=VICTIM), pod("b"))


def test_a_gangs_disruption_condition_does_not_pass_to_its_successor() -> None:
    """Pods that come after the victims are not about to go."""
    whole = {"disruptionMode": {"all": {}}}
    content = list(conditions(original(**whole), pod("a", marks=VICTIM)).values())
    of = original(content, **whole)
    assert reconcile(ObservedMirror(BETA, of, None, (), now=2000.0)).writes == []
    assert conditions(of, pod("a", meta=GOES, marks=VICTIM), pod("c")) is None
    assert list(conditions(of, pod("c"), pod("d"))) == ["PodGroupInitiallyScheduled"]


def test_a_disruption_by_others_is_not_called_preemption() -> None:
    marks = [{**VICTIM[0], "reason": "EvictionByEvictionAPI"}]
    assert "DisruptionTarget" not in conditions(original(disruptionMode="PodGroup"), pod("a", marks=marks))


def test_pods_of_a_gang_have_no_podgroup_of_their_owners() -> None:
    assert gang_of(pod()) == "ns/g"
    assert plain.group_of(pod()) == ""
