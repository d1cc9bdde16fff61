"""A state takes from VolcanoJobs the pods that do not exist yet, and the actions that follow an eviction."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from schedspec.scheduler.model.names import ON_EVICTED
from schedspec.virtual.cluster import VirtualCluster
from schedspec.virtual.state import State, read_state
from schedspec.virtual.state.dump import write_state
from schedspec.virtual.state.redaction import redact
from tests.schedspec.virtual.state.test_dump import post, taken

BATCH, SCHEDULING = "batch.volcano.sh/v1alpha1", "scheduling.volcano.sh/v1beta1"
SECRET = "s3cr3t"
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "8"}}}


def task(name: str, replicas: int, cpu: str, **more: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "work", "resources": {"requests": {"cpu": cpu}},
                 "env": [{"name": "TOKEN", "value": SECRET}], "command": [SECRET]}  # fmt: skip
    spec = {"containers": [container], "nodeSelector": {"disk": "fast"}, "priorityClassName": "high"}
    template = {"metadata": {"labels": {"app": "train"}, "annotations": {"note": SECRET}}, "spec": spec}
    return {"name": name, "replicas": replicas, "template": template, **more}


def job(*tasks: dict[str, Any], phase: str = "Pending", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": BATCH,
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "t", "uid": "j"},
        "spec": {"schedulerName": "volcano", "minAvailable": 2, "tasks": [*tasks], **spec},
        "status": {"state": {"phase": phase}},
    }


def listing(folder: Path, *items: dict[str, Any], phase: str = "Pending") -> State:
    """Return the state of a list with a job's PodGroup and these objects."""
    owner = {"apiVersion": BATCH, "kind": "Job", "name": "train", "uid": "j", "controller": True}
    group = {
        "apiVersion": SCHEDULING,
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "t", "uid": "g", "ownerReferences": [owner]},
        "spec": {"minMember": 2, "queue": "default", "minResources": {"cpu": "9"}},
        "status": {"phase": phase},
    }
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}
    path = folder / "list.json"
    path.write_text(json.dumps({"kind": "List", "items": [NODE, high, group, *items]}))
    return read_state(path)


def test_a_waiting_job_has_the_pods_of_all_its_tasks(tmp_path: Path) -> None:
    found = listing(tmp_path, job(task("lead", 1, "2"), task("work", 3, "500m")))
    pods = {pod.metadata.name: pod for pod in found.of_job()["t/g"]}
    assert {name: pod.spec.containers[0].resources.requests for name, pod in pods.items()} == {
        "train-lead-0": {"cpu": "2"},
        **{f"train-work-{index}": {"cpu": "500m"} for index in range(3)},
    }
    for pod in pods.values():
        assert (pod.spec.priority, pod.spec.node_selector, pod.status.phase) == (7, {"disk": "fast"}, "Pending")
        assert (pod.metadata.labels or {})["app"] == "train"
    assert "1 job had no pods yet: 4 pods were made from their Jobs" in found.notes
    assert SECRET not in str([msgspec.to_builtins(pod) for pod in pods.values()])


@pytest.mark.parametrize(
    ("of_group", "of_job", "pods"),
    [
        ("Pending", "Pending", 3),
        ("Inqueue", "Pending", 3),
        ("Running", "Running", 0),
        ("Pending", "Completed", 0),
        ("Pending", "Failed", 0),
    ],
)
def test_only_a_job_that_waits_gets_pods(tmp_path: Path, of_group: str, of_job: str, pods: int) -> None:
    found = listing(tmp_path, job(task("work", 3, "1"), phase=of_job), phase=of_group)
    assert sum("made from their Jobs" in note for note in found.notes) == bool(pods)
    assert sum(pod.metadata.name.startswith("train-work-") for pod in found.objects["Pod"].values()) == pods


EVICTED = [{"event": "PodEvicted", "action": "RestartJob"}]
POLICIES = {
    "none": ({}, {}, None),
    "of the job": ({"policies": EVICTED}, {}, "RestartJob"),
    "of the task": ({}, {"policies": [{"event": "PodEvicted", "action": "RestartTask"}]}, "RestartTask"),
    "the task's precedes": (
        {"policies": EVICTED},
        {"policies": [{"events": ["PodFailed", "PodEvicted"], "action": "AbortJob"}]},
        "AbortJob",
    ),
    "of all events": ({"policies": [{"event": "*", "action": "TerminateJob"}]}, {}, "TerminateJob"),
    "of another event": ({"policies": [{"event": "PodFailed", "action": "RestartJob"}]}, {}, None),
    "of an exit code": ({"policies": [{"exitCode": 3, "action": "RestartJob"}]}, {}, None),
    "after a time": ({"policies": [{**EVICTED[0], "timeout": "5m"}]}, {}, None),
}


@pytest.mark.parametrize("exists", [True, False], ids=["a pod", "no pod yet"])
@pytest.mark.parametrize(("of_job", "of_task", "action"), POLICIES.values(), ids=POLICIES)
def test_each_pod_says_what_its_eviction_causes(
    tmp_path: Path, of_job: dict[str, Any], of_task: dict[str, Any], action: str | None, exists: bool
) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "train-work-0",
            "namespace": "t",
            "uid": "p",
            "ownerReferences": [{"apiVersion": BATCH, "kind": "Job", "name": "train", "uid": "j", "controller": True}],
            "annotations": {"scheduling.k8s.io/group-name": "g", "volcano.sh/task-spec": "work"},
        },
        "spec": {"schedulerName": "volcano", "nodeName": "n", "containers": [{"name": "c"}]},
        "status": {"phase": "Running"},
    }
    found = listing(tmp_path, job(task("work", 1, "1", **of_task), **of_job), *([pod] if exists else []))
    write_state(found, tmp_path / "state.jsonl.gz")
    for state in (found, read_state(tmp_path / "state.jsonl.gz"), redact(found)):
        marks = [(pod.metadata.annotations or {}).get(ON_EVICTED) for pod in state.objects["Pod"].values()]
        assert marks == [action]


def test_a_dump_reads_the_jobs_of_a_cluster(tmp_path: Path) -> None:
    cluster = VirtualCluster()
    try:
        post(cluster, "/api/v1/namespaces", {"metadata": {"name": "t"}})
        body = job(task("work", 2, "1"), policies=EVICTED, schedulerName="schedspec")
        post(cluster, f"/apis/{BATCH}/namespaces/t/jobs", body)
        cluster.advance(30)
        state = taken(cluster)
    finally:
        cluster.close()
    write_state(state, tmp_path / "state.jsonl.gz")
    pods = read_state(tmp_path / "state.jsonl.gz", with_kueue=True).objects["Pod"].values()
    assert {pod.metadata.name for pod in pods} == {"train-work-0", "train-work-1"}
    assert {(pod.metadata.annotations or {})[ON_EVICTED] for pod in pods} == {"RestartJob"}
