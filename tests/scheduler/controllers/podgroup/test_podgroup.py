"""Pods without a PodGroup get one for each owner, with the settings of pod, owner and namespace."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from schedspec.scheduler.controllers.podgroup.reconcile import ObservedGang, group_of, reconcile
from schedspec.scheduler.controllers.runtime.objects import REPLICA_SETS, Workload
from schedspec.scheduler.controllers.runtime.writes import ApplyObject, CollectOrphans, Create, EmitEvent, Remove
from schedspec.scheduler.kube.resource import PODGROUPS, PODS
from schedspec.scheduler.model.objects import OwnerReference, Pod, PodGroup


def pod(name: str = "p", owner: str | None = "ReplicaSet", cpu: str = "500m", **given: Any) -> Pod:
    meta: dict[str, Any] = {"name": name, "namespace": "ns", "uid": f"uid-{name}", **given.pop("metadata", {})}
    if owner:
        version = {"ReplicaSet": "apps/v1", "Cron": "example.com/v1"}.get(owner, "batch/v1")
        meta["ownerReferences"] = [
            {"apiVersion": version, "kind": owner, "name": "web", "uid": "owner", "controller": True}
        ]
    containers = [{"name": "x", "resources": {"requests": {"cpu": cpu, "nvidia.com/gpu": 1}}}]
    return msgspec.convert({"metadata": meta, "spec": {"containers": containers, **given}}, Pod)


def workload(replicas: int = 2, **annotations: str) -> Workload:
    meta = {"name": "web", "namespace": "ns", "uid": "owner", "annotations": annotations}
    return msgspec.convert({"metadata": meta, "spec": {"replicas": replicas}}, Workload)


def seen(*pods: Pod, **given: Any) -> ObservedGang:
    return ObservedGang("ns", "podgroup-owner", pods, **given)


def created(observed: ObservedGang) -> dict[str, Any]:
    (write,) = [write for write in reconcile(observed).writes if isinstance(write, Create)]
    assert write.resource is PODGROUPS
    return dict(write.body)


def test_pods_of_one_owner_share_a_podgroup_with_the_same_owner() -> None:
    body = created(seen(pod("a"), pod("b")))
    assert body["metadata"]["name"] == "podgroup-owner"
    assert body["metadata"]["ownerReferences"] == [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "owner", "controller": True}
    ]
    assert body["spec"] == {"minMember": 1, "queue": "default", "minResources": {"cpu": "500m", "nvidia.com/gpu": "1"}}


def test_every_pod_is_annotated_with_its_podgroup_by_uid() -> None:
    found = [write for write in reconcile(seen(pod("a"), pod("b"))).writes if isinstance(write, ApplyObject)]
    assert [(write.resource, write.name, write.uid) for write in found] == [(PODS, "a", "uid-a"), (PODS, "b", "uid-b")]
    assert found[0].body == {"metadata": {"annotations": {"scheduling.k8s.io/group-name": "podgroup-owner"}}}


def test_a_pod_without_an_owner_has_a_podgroup_of_its_own() -> None:
    alone = pod("alone", owner=None)
    assert group_of(alone) == "podgroup-uid-alone"
    body = created(ObservedGang("ns", group_of(alone), [alone]))
    assert body["metadata"]["ownerReferences"][0]["kind"] == "Pod"


def test_an_owner_of_an_unknown_kind_owns_the_podgroup_too() -> None:
    owner = created(seen(pod("a", owner="Cron")))["metadata"]["ownerReferences"][0]
    assert (owner["apiVersion"], owner["kind"]) == ("example.com/v1", "Cron")


def test_a_pod_that_names_its_podgroup_is_left_alone() -> None:
    for given, own in (("mine", ""), ("podgroup-owner", "podgroup-owner")):
        assert group_of(pod(metadata={"annotations": {"scheduling.k8s.io/group-name": given}})) == own


@pytest.mark.parametrize(
    ("of_pod", "of_owner", "of_namespace", "queue"),
    [
        ({}, {}, None, "default"),
        ({}, {}, {"scheduling.volcano.sh/queue-name": "of-namespace"}, "of-namespace"),
        ({}, {"scheduling.volcano.sh/queue-name": "o"}, {"scheduling.volcano.sh/queue-name": "n"}, "o"),
        ({"scheduling.volcano.sh/queue-name": "p"}, {"scheduling.volcano.sh/queue-name": "o"}, None, "p"),
    ],
)
def test_the_queue_is_the_pods_then_the_owners_then_the_namespaces(
    of_pod: dict, of_owner: dict, of_namespace: dict | None, queue: str
) -> None:
    observed = seen(
        pod(metadata={"annotations": of_pod}), owner=workload(**of_owner), namespace_annotations=of_namespace
    )
    assert created(observed)["spec"]["queue"] == queue


def test_an_annotation_of_the_owner_sets_the_minimum() -> None:
    spec = created(seen(pod(), owner=workload(**{"scheduling.volcano.sh/group-min-member": "3"})))["spec"]
    assert spec["minMember"] == 3
    assert spec["minResources"] == {"cpu": "1.5", "nvidia.com/gpu": "3"}


@pytest.mark.parametrize("text", ["many", "0", "-2", "²"])
def test_an_invalid_minimum_is_named_and_1_is_used(text: str) -> None:
    observed = seen(pod(), owner=workload(**{"scheduling.volcano.sh/group-min-member": text}))
    assert created(observed)["spec"]["minMember"] == 1
    (event,) = [write for write in reconcile(observed).writes if isinstance(write, EmitEvent)]
    assert event.reason == "InvalidMinMember"
    assert repr(text) in event.message


def test_only_annotations_of_volcano_are_copied() -> None:
    annotations = {"volcano.sh/service.type": "inference", "other": "x"}
    body = created(seen(pod(priorityClassName="high"), owner=workload(**annotations)))
    assert body["metadata"]["annotations"] == {"volcano.sh/service.type": "inference"}
    assert body["spec"]["priorityClassName"] == "high"


def group(**spec: Any) -> PodGroup:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "owner", "controller": True}
    meta = {"name": "podgroup-owner", "namespace": "ns", "uid": "uid-group", "ownerReferences": [owner]}
    wanted = {"minMember": 1, "queue": "default", "minResources": {"cpu": "500m", "nvidia.com/gpu": "1"}, **spec}
    return msgspec.convert({"metadata": meta, "spec": wanted}, PodGroup)


def test_an_up_to_date_podgroup_is_not_written() -> None:
    annotated = pod(metadata={"annotations": {"scheduling.k8s.io/group-name": "podgroup-owner"}})
    assert reconcile(seen(annotated, group=group())).writes == []


def test_a_gang_follows_its_owners_annotation() -> None:
    annotated = pod(metadata={"annotations": {"scheduling.k8s.io/group-name": "podgroup-owner"}})
    owner = workload(**{"scheduling.volcano.sh/group-min-member": "2"})
    (change,) = reconcile(seen(annotated, group=group(), owner=owner)).writes
    assert isinstance(change, ApplyObject)
    assert change.body["spec"] == {"minMember": 2, "minResources": {"cpu": "1", "nvidia.com/gpu": "2"}}


def test_the_podgroup_of_an_owner_with_zero_replicas_is_removed() -> None:
    (write,) = reconcile(seen(group=group(), owner=workload(replicas=0))).writes
    assert write == Remove(PODGROUPS, "ns", "podgroup-owner", "uid-group")
    assert reconcile(seen(group=group(), owner=workload(replicas=2))).writes == [], "its pods are being replaced"


def test_the_podgroup_of_a_missing_owner_is_removed_if_the_api_server_confirms() -> None:
    orphan = group()
    (removal,) = reconcile(seen(group=orphan)).writes
    assert isinstance(removal, CollectOrphans)
    assert (removal.owner, removal.name, removal.uid) == (REPLICA_SETS, "web", "owner")
    assert removal.left == [Remove(PODGROUPS, "ns", "podgroup-owner", "uid-group")]


@pytest.mark.parametrize("owner", [[], [OwnerReference("apps/v1", "ReplicaSet", "web", "other", True)]])
def test_a_podgroup_of_another_owner_is_never_changed_or_removed(owner: list[OwnerReference]) -> None:
    foreign = group(minMember=3)
    foreign.metadata.owner_references = owner
    (event,) = reconcile(seen(pod("a"), pod("b"), group=foreign, owner=workload())).writes
    assert isinstance(event, EmitEvent)
    assert (event.reason, event.resource) == ("NameTaken", REPLICA_SETS)
    assert "belongs to somebody else" in event.message
    assert reconcile(seen(group=foreign, owner=workload(replicas=0))).writes == []
    assert reconcile(seen(group=foreign)).writes == []
