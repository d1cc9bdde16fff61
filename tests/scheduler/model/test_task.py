"""A pod's spec becomes a task."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from schedspec.scheduler.model.objects import Pod
from schedspec.scheduler.model.task import Task, TaskStatus


def task(spec: dict[str, Any] | None = None, meta: dict[str, Any] | None = None, phase: str = "Pending") -> Task:
    body = {
        "metadata": {"name": "p-0", "namespace": "ns", "uid": "u", **(meta or {})},
        "spec": spec or {},
        "status": {"phase": phase},
    }
    return Task(msgspec.convert(body, Pod), "ns/job")


def container(cpu: str, **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}


@pytest.mark.parametrize(
    ("spec", "holds", "needs"),
    [
        ({"containers": [container("1"), container("2")]}, 3000, 3000),
        ({"containers": [container("1")], "initContainers": [container("4"), container("2")]}, 4000, 4000),
        # A sidecar keeps running beside the later init containers and the containers.
        (
            {
                "containers": [container("1")],
                "initContainers": [container("1", restartPolicy="Always"), container("3")],
            },
            4000,
            4000,
        ),
        ({"containers": [container("1")], "overhead": {"cpu": "250m"}}, 1250, 1250),
        ({"containers": [container("1")], "resources": {"requests": {"cpu": "5"}}}, 5000, 5000),
        ({"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]}, 2000, 2000),
        # A zero amount does not count as a request.
        ({"containers": [{"name": "c", "resources": {"requests": {"cpu": "2", "gpu": "0"}}}]}, 2000, 2000),
    ],
)
def test_requests_follow_the_rules_of_kubernetes(spec: dict[str, Any], holds: float, needs: float) -> None:
    found = task(spec)
    assert found.request == {"cpu": holds, "pods": 1.0}
    assert found.init_request == {"cpu": needs, "pods": 1.0}


@pytest.mark.parametrize(
    ("phase", "node", "deleted", "status"),
    [
        ("Pending", "", False, TaskStatus.PENDING),
        ("Pending", "n", False, TaskStatus.BOUND),
        ("Pending", "", True, TaskStatus.RELEASING),
        ("Running", "n", False, TaskStatus.RUNNING),
        ("Running", "n", True, TaskStatus.RELEASING),
        ("Succeeded", "n", True, TaskStatus.SUCCEEDED),
        ("Failed", "n", False, TaskStatus.FAILED),
        ("Unknown", "n", False, TaskStatus.UNKNOWN),
    ],
)
def test_the_status_follows_from_phase_node_and_deletion(
    phase: str, node: str, deleted: bool, status: TaskStatus
) -> None:
    meta = {"deletionTimestamp": "2026-09-01T00:00:00Z"} if deleted else {}
    assert task({"nodeName": node}, meta, phase).status is status


@pytest.mark.parametrize(
    ("annotations", "labels", "preemptable"),
    [
        ({}, {}, True),
        ({"volcano.sh/preemptable": "false"}, {"volcano.sh/preemptable": "true"}, False),
        ({}, {"volcano.sh/preemptable": "false"}, False),
        ({"volcano.sh/preemptable": "perhaps"}, {}, False),
    ],
)
def test_preemptable_is_read_from_the_annotation_or_else_from_the_label(
    annotations: dict[str, str], labels: dict[str, str], preemptable: bool
) -> None:
    assert task(meta={"annotations": annotations, "labels": labels}).preemptable is preemptable


def test_tasks_with_equal_requests_have_one_shape_whatever_their_names_and_labels() -> None:
    spec = {"containers": [container("1")]}
    assert task(spec).shape == task(spec, {"name": "q-7", "labels": {"a": "b"}}).shape


@pytest.mark.parametrize(
    "change",
    [
        {"nodeSelector": {"a": "b"}},
        {"tolerations": [{"operator": "Exists"}]},
        {"containers": [container("2")]},
        {"containers": [container("1", ports=[{"hostPort": 80}])]},
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
        {"resourceClaims": [{"name": "r"}]},
    ],
)
def test_tasks_that_may_run_on_different_nodes_have_different_shapes(change: dict[str, Any]) -> None:
    spec = {"containers": [container("1")]}
    assert task(spec).shape != task({**spec, **change}).shape


def test_the_index_of_a_task_is_the_number_at_the_end_of_its_name() -> None:
    assert [task(meta={"name": name}).index for name in ("w-2", "w-10", "w")] == [2, 10, -1]


SIBLING: dict[str, Any] = {
    "metadata": {"name": "p-1", "namespace": "ns", "uid": "v", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"containers": [container("1")], "nodeName": "n"},
    "status": {"phase": "Running", "startTime": "2026-01-01T00:00:01Z"},
}


def test_the_task_of_an_equal_sibling_is_that_of_its_pod_and_shares_its_requests() -> None:
    first = task({"containers": [container("1")]}, {"annotations": {"volcano.sh/task-index": "0"}})
    annotations = {"annotations": {"volcano.sh/task-index": "1"}}
    pod = msgspec.convert({**SIBLING, "metadata": {**SIBLING["metadata"], **annotations}}, Pod)
    second, anew = first.of_sibling(pod), Task(pod, "ns/job")
    assert second is not None
    assert {name: getattr(second, name) for name in Task.__slots__} == {n: getattr(anew, n) for n in Task.__slots__}
    assert second.request is first.request


@pytest.mark.parametrize(
    ("spec", "meta"),
    [
        ({"containers": [container("2")]}, {}),
        ({"containers": [container("1")], "schedulingGates": [{"name": "x"}]}, {}),
        ({"containers": [container("1")]}, {"labels": {"role": "worker"}}),
        ({"containers": [container("1")]}, {"annotations": {"volcano.sh/preemptable": "false"}}),
    ],
)
def test_the_task_of_a_sibling_that_differs_is_computed_from_its_own_pod(
    spec: dict[str, Any], meta: dict[str, Any]
) -> None:
    pod = msgspec.convert({"metadata": {"name": "p-1", "namespace": "ns", "uid": "v", **meta}, "spec": spec}, Pod)
    assert task({"containers": [container("1")]}).of_sibling(pod) is None


def test_siblings_with_ephemeral_volumes_differ_in_the_names_of_their_claims() -> None:
    spec = {
        "containers": [container("1")],
        "volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}],
    }
    pod = msgspec.convert({"metadata": {"name": "p-1", "namespace": "ns", "uid": "v"}, "spec": spec}, Pod)
    assert task(spec).of_sibling(pod) is None
