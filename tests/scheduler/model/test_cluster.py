"""The state does not depend on the order of events, and includes assumptions until the API confirms or refuses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from schedspec.scheduler.model import objects
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.model.errors import ObjectError
from schedspec.scheduler.model.task import TaskStatus

GROUP = {"metadata": {"name": "g", "namespace": "ns"}, "spec": {"minMember": 1, "priorityClassName": "high"}}


def node(name: str = "n1", cpu: str = "4", **more: Any) -> objects.Node:
    body = {"metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu, "pods": "9"}}, **more}
    return msgspec.convert(body, objects.Node)


def pod(on: str = "", phase: str = "Pending", uid: str = "u", nominated: str = "", **spec: Any) -> objects.Pod:
    body = {
        "metadata": {
            "name": "p-0",
            "namespace": "ns",
            "uid": uid,
            "annotations": {"scheduling.k8s.io/group-name": "g"},
        },
        "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}], "nodeName": on, **spec},
        "status": {"phase": phase, "nominatedNodeName": nominated},
    }
    return msgspec.convert(body, objects.Pod)


def idle(cluster: Cluster, name: str = "n1") -> dict[str, int]:
    cluster.nodes.refresh()
    row = cluster.nodes.by_name[name].row
    return cluster.nodes.sum_of(cluster.nodes.idle[row : row + 1])


def test_a_pod_seen_before_its_node_and_its_group_is_counted_in_both() -> None:
    cluster = Cluster()
    cluster.set_pod(pod("n1", "Running"))
    cluster.set_node(node())
    cluster.set_podgroup(msgspec.convert(GROUP, objects.PodGroup))
    cluster.set_priority_class(msgspec.convert({"metadata": {"name": "high"}, "value": 7}, objects.PriorityClass))
    assert idle(cluster) == {"cpu": 3000, "pods": 8}
    job = cluster.jobs["ns/g"]
    assert (job.ready, job.priority, job.allocated["cpu"]) == (1, 7, 1000)


def test_a_node_that_is_added_again_has_its_pods() -> None:
    cluster = Cluster()
    cluster.set_node(node())
    cluster.set_pod(pod("n1", "Running"))
    cluster.delete_node("n1")
    cluster.set_node(node(cpu="8"))
    assert idle(cluster)["cpu"] == 7000


def test_a_node_that_no_longer_matches_the_node_selector_is_removed() -> None:
    cluster = Cluster(node_selector={"world": "ours"})
    cluster.set_node(node(metadata={"name": "n1", "labels": {"world": "ours"}}))
    assert "n1" in cluster.nodes.by_name
    cluster.set_node(node(metadata={"name": "n1"}))
    assert not cluster.nodes.by_name


def test_a_pod_of_another_scheduler_occupies_capacity_and_belongs_to_no_job() -> None:
    cluster = Cluster(scheduler_names=["ours"])
    cluster.set_node(node())
    cluster.set_pod(pod("n1", "Running", schedulerName="theirs"))
    assert not cluster.jobs
    assert idle(cluster)["cpu"] == 3000


def test_a_bind_in_flight_occupies_capacity_until_the_api_shows_or_refuses_it() -> None:
    cluster = Cluster()
    cluster.set_node(node())
    cluster.set_pod(pod())
    cluster.assume_bound("ns/p-0", "u", "n1")
    assert idle(cluster)["cpu"] == 3000
    cluster.set_pod(pod())  # an older event that arrives late
    assert cluster.tasks["ns/p-0"].status is TaskStatus.BINDING
    cluster.revert("ns/p-0", "u")
    assert idle(cluster)["cpu"] == 4000
    cluster.assume_bound("ns/p-0", "u", "n1")
    cluster.set_pod(pod("n1"))
    assert cluster.tasks["ns/p-0"].status is TaskStatus.BOUND
    assert not cluster.tasks["ns/p-0"].assumed


def test_a_pod_that_progresses_on_its_node_keeps_its_task_and_its_capacity() -> None:
    cluster = Cluster()
    cluster.set_node(node())
    cluster.set_podgroup(msgspec.convert(GROUP, objects.PodGroup))
    cluster.set_pod(pod(nominated="n1"))
    cluster.assume_bound("ns/p-0", "u", "n1")
    task, job, room = cluster.tasks["ns/p-0"], cluster.jobs["ns/g"], idle(cluster)
    for shown, status, nominated in (
        (pod("n1", nominated="n1"), TaskStatus.BOUND, {"ns/p-0"}),
        (pod("n1", "Running"), TaskStatus.RUNNING, set()),
    ):
        version = cluster.version
        cluster.set_pod(shown)
        assert cluster.version > version
        assert cluster.tasks["ns/p-0"] is task is job.tasks["ns/p-0"]
        assert {status for status, tasks in job.by_status.items() if tasks} == {status}
        assert (task.pod, task.assumed, cluster.nominated) == (shown, False, nominated)
        assert (idle(cluster), job.ready, job.allocated["cpu"]) == (room, 1, 1000)
    cluster.set_pod(pod("n1", "Succeeded"))
    assert (idle(cluster)["cpu"], job.ready, job.allocated) == (4000, 1, {})


def test_a_disruption_target_condition_counts_when_it_is_set_and_when_it_is_unset() -> None:
    cluster = Cluster()
    cluster.set_node(node())
    cluster.set_podgroup(msgspec.convert(GROUP, objects.PodGroup))
    cluster.set_pod(pod("n1", "Running"))
    for status, is_target in (("True", True), ("False", False)):
        shown, version = pod("n1", "Running"), cluster.version
        shown.status.conditions = [objects.Condition(type="DisruptionTarget", status=status)]
        cluster.set_pod(shown)
        assert cluster.tasks["ns/p-0"].is_disruption_target is is_target
        assert cluster.version > version


def test_a_pod_with_an_eviction_in_flight_is_releasing_until_it_is_deleted() -> None:
    cluster = Cluster()
    cluster.set_node(node())
    cluster.set_pod(pod("n1", "Running"))
    cluster.assume_evicted("ns/p-0", "u")
    cluster.set_pod(pod("n1", "Running"))
    assert cluster.tasks["ns/p-0"].status is TaskStatus.RELEASING
    cluster.delete_pod("ns/p-0", "u")
    assert idle(cluster)["cpu"] == 4000


def test_an_assumption_about_a_pod_does_not_apply_to_the_next_pod_of_that_name() -> None:
    cluster = Cluster()
    cluster.set_node(node())
    cluster.set_pod(pod("n1", "Running"))
    cluster.assume_evicted("ns/p-0", "u")
    cluster.set_pod(pod(uid="next"))
    assert cluster.tasks["ns/p-0"].status is TaskStatus.PENDING
    cluster.delete_pod("ns/p-0", "u")  # the late deletion event of the first pod
    assert "ns/p-0" in cluster.tasks


def test_an_assumed_nomination_holds_until_the_api_shows_another_one() -> None:
    cluster = Cluster()
    cluster.set_pod(pod())
    cluster.assume_nominated("ns/p-0", "u", "n1")
    cluster.set_pod(pod(priority=3))  # something else changed
    assert cluster.nominated == {"ns/p-0"}
    cluster.set_pod(pod(nominated="n1"))
    cluster.set_pod(pod())  # another client has removed the nomination
    assert not cluster.nominated
    assert cluster.tasks["ns/p-0"].nominated == ""


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        ("node", {"metadata": {"name": "bad"}, "status": {"allocatable": {"cpu": "two"}}}, "Node bad: cpu: 'two'"),
        ("queue", {"metadata": {"name": "bad"}, "spec": {"deserved": {"gpu": "1x"}}}, "Queue bad: gpu: '1x'"),
        (
            "podgroup",
            {"metadata": {"name": "bad", "namespace": "ns"}, "spec": {"minResources": {"cpu": "?"}}},
            "PodGroup ns/bad: cpu: '?'",
        ),
        (
            "pod",
            {
                "metadata": {"name": "bad", "namespace": "ns"},
                "spec": {"containers": [{"resources": {"requests": {"memory": "1GB"}}}]},
            },
            "Pod ns/bad: memory: '1GB'",
        ),
    ],
)
def test_the_error_names_an_invalid_object_and_the_state_is_unchanged(
    kind: str, body: dict[str, Any], message: str
) -> None:
    cluster = Cluster()
    struct = {"node": objects.Node, "queue": objects.Queue, "podgroup": objects.PodGroup, "pod": objects.Pod}[kind]
    with pytest.raises(ObjectError) as refused:
        getattr(cluster, f"set_{kind}")(msgspec.convert(body, struct))
    assert message in str(refused.value)
    assert "write for example" in str(refused.value)
    assert (cluster.version, cluster.jobs, cluster.tasks, cluster.queues, cluster.nodes.by_name) == (0, {}, {}, {}, {})


def labels(number: int) -> dict[str, str]:
    return {f"k{i}": "v" for i in range(number)}


SUBGROUPS = "spec.subGroupPolicy has {} policies and labels in all; write at most 256"


@pytest.mark.parametrize(
    ("fits", "spec", "message"),
    [
        (32, lambda n: {"minResources": {f"r{i}": "1" for i in range(n)}}, "spec.minResources names {} resources"),
        (256, lambda n: {"subGroupPolicy": [{"name": f"s{i}"} for i in range(n)]}, SUBGROUPS),
        (256, lambda n: {"subGroupPolicy": [{"matchLabelKeys": [f"k{i}" for i in range(n - 1)]}]}, SUBGROUPS),
        (256, lambda n: {"subGroupPolicy": [{"labelSelector": {"matchLabels": labels(n - 1)}}]}, SUBGROUPS),
    ],
    ids=["minResources", "policies", "keys", "labels"],
)  # fmt: skip
def test_a_podgroup_above_the_maximum_size_is_rejected(
    fits: int, spec: Callable[[int], dict[str, Any]], message: str
) -> None:
    cluster = Cluster()
    for number in (fits, fits + 1):
        body = {"metadata": {"name": f"g{number}", "namespace": "ns"}, "spec": spec(number)}
        group = msgspec.convert(body, objects.PodGroup)
        if number == fits:
            cluster.set_podgroup(group)
        else:
            with pytest.raises(ObjectError, match=message.format(number)):
                cluster.set_podgroup(group)
    assert list(cluster.jobs) == [f"ns/g{fits}"]


def test_changes_of_fields_that_no_decision_reads_do_not_count() -> None:
    cluster = Cluster()
    queue = {"metadata": {"name": "q"}, "status": {"state": "Open"}}
    cluster.set_node(node())
    cluster.set_pod(pod("n1", "Running"))
    cluster.set_podgroup(msgspec.convert(GROUP, objects.PodGroup))
    cluster.set_queue(msgspec.convert(queue, objects.Queue))
    version = cluster.version
    heartbeat = {"conditions": [{"type": "Ready", "status": "True", "message": "still"}]}
    cluster.set_node(node(metadata={"name": "n1", "resourceVersion": "2"}))
    cluster.set_pod(pod("n1", "Running"))
    scheduled = {**GROUP, "status": {"conditions": [{"type": "Scheduled", "status": "True"}]}}
    cluster.set_podgroup(msgspec.convert(scheduled, objects.PodGroup))
    cluster.set_queue(msgspec.convert({**queue, "status": {"state": "Open", "allocated": {"cpu": "1"}}}, objects.Queue))
    assert cluster.version == version
    cluster.set_node(node(status={"allocatable": {"cpu": "4", "pods": "9"}, **heartbeat}))
    assert cluster.version > version  # a new condition counts, although the node counted as Ready before


def test_a_request_for_a_resource_that_no_node_has_changes_no_amounts() -> None:
    cluster = Cluster()
    cluster.set_node(node())
    before = idle(cluster)
    container = {"resources": {"requests": {"cpu": "1", "vendor.example/odd": "1"}}}
    cluster.set_pod(pod(containers=[container]))
    assert idle(cluster) == before


META: dict[str, Any] = {"name": "x"}
SMALL: list[tuple[str, type[msgspec.Struct], dict[str, Any], dict[str, Any]]] = [
    ("node", objects.Node, {}, {"spec": {"unschedulable": True}}),
    ("queue", objects.Queue, {}, {"spec": {"weight": 2}}),
    ("podgroup", objects.PodGroup, {"spec": {"queue": "q"}}, {"spec": {"queue": "r"}}),
    ("priority_class", objects.PriorityClass, {"value": 1}, {"value": 2}),
    ("budget", objects.PodDisruptionBudget, {}, {"status": {"disruptionsAllowed": 1}}),
    ("volume", objects.PersistentVolume, {}, {"spec": {"csi": {"driver": "d", "volumeHandle": "h"}}}),
    ("claim", objects.PersistentVolumeClaim, {}, {"spec": {"volumeName": "v"}}),
    ("claim", objects.PersistentVolumeClaim, {}, {"metadata": {**META, "deletionTimestamp": "2026-09-01T00:00:00Z"}}),
    ("csi_node", objects.CSINode, {}, {"spec": {"drivers": [{"name": "d", "allocatable": {"count": 3}}]}}),
    ("namespace", objects.Namespace, {}, {"metadata": {**META, "labels": {"team": "x"}}}),
]


@pytest.mark.parametrize(("name", "struct", "body", "other"), SMALL)
def test_an_object_counts_as_changed_when_added_modified_or_deleted(
    name: str, struct: type[msgspec.Struct], body: dict[str, Any], other: dict[str, Any]
) -> None:
    cluster = Cluster()

    def changes(act: str, given: Any) -> bool:
        before = cluster.version
        getattr(cluster, f"{act}_{name}")(given)
        return cluster.version > before

    first = msgspec.convert({"metadata": META, **body}, struct)
    second = msgspec.convert({"metadata": META, **body, **other}, struct)
    same_again = msgspec.convert({"metadata": {**META, "resourceVersion": "7"}, **body}, struct)
    assert changes("set", first)
    assert not changes("set", same_again)
    assert changes("set", second)
    assert changes("delete", "x")
    assert not changes("delete", "x")
