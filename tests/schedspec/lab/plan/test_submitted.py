"""Work that is submitted to the cluster of a state: whether it runs at once, and what waits or goes because of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from schedspec.lab.plan import ChangeError, Plan, Request, Side, make_plan
from schedspec.lab.plan.submitted import add_submitted
from schedspec.lab.plan.text import render_text
from schedspec.virtual.state import State, kueue
from schedspec.virtual.state.dump import write_state
from tests.support.core.states import NOW, state_of
from tests.support.kueue_state import cluster_queue, local_queue

POLICY = """
actions: "allocate, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: capacity}]
"""
TABLE: dict[str, Any] = {
    "policy": POLICY,
    "nodes": [{"name": "n1", "has": "16 cpu, 4 gpu"}],
    "queues": [{"name": "a", "deserved": "2 gpu"}, {"name": "b", "deserved": "2 gpu"}],
    "jobs": [
        {"name": "low", "queue": "b", "min": 1, "tasks": "3 x 1 gpu running on n1"},
        {"name": "waits", "queue": "b", "tasks": "4 x 1 gpu"},
    ],
}


def pod_template(gpus: int, container: str = "c") -> dict[str, Any]:
    resources = {"requests": {"nvidia.com/gpu": str(gpus)}}
    return {
        "spec": {"restartPolicy": "Never", "containers": [{"name": container, "image": "x", "resources": resources}]}
    }


def vcjob(replicas: int, gpus: int = 1, **spec: Any) -> dict[str, Any]:
    tasks = [{"name": "w", "replicas": replicas, "template": pod_template(gpus)}]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "mine", "namespace": "team"},
        "spec": {"queue": "a", "schedulerName": "schedspec", "minAvailable": replicas, "tasks": tasks, **spec},
    }


def plan(tmp_path: Path, *items: dict[str, Any]) -> Plan:
    write_state(state_of(TABLE), tmp_path / "state.jsonl.gz")
    (tmp_path / "job.yaml").write_text(yaml.safe_dump_all(items))
    side = Side("the submitted work", {})
    return make_plan(
        Request(tmp_path / "state.jsonl.gz", None, side, out=tmp_path, clock=NOW, submit=tmp_path / "job.yaml")
    )


def test_work_that_fits_starts_and_evicts_nothing(tmp_path: Path) -> None:
    found = plan(tmp_path, vcjob(1))
    assert [(found.named(one.job), one.pods) for one in found.at_once.starts] == [("team/mine", 1)]
    assert (found.at_once.evictions, found.at_once.refused) == ([], [])
    assert "1 job submitted: team/mine" in render_text(found)


def test_work_within_its_queues_share_evicts_those_above_theirs(tmp_path: Path) -> None:
    found = plan(tmp_path, vcjob(2))
    assert [one.queue for one in found.at_once.evictions] == ["b"]
    assert found.named(found.at_once.evictions[0].preemptor) == "team/mine"


def test_work_beyond_its_queues_share_waits_and_says_for_what(tmp_path: Path) -> None:
    found = plan(tmp_path, vcjob(3))
    assert [found.named(one.job) for one in found.at_once.refused] == ["team/mine"]
    assert "! team/mine (a) is submitted and waits: " in render_text(found)


JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "mine", "namespace": "team"},
    "spec": {"parallelism": 2, "template": pod_template(1)},
}
PYTORCHJOB = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "mine", "namespace": "team"},
    "spec": {
        "runPolicy": {"schedulingPolicy": {"queue": "a"}},
        "pytorchReplicaSpecs": {
            "Master": {"replicas": 1, "template": pod_template(1, "pytorch")},
            "Worker": {"replicas": 2, "template": pod_template(1, "pytorch")},
        },
    },
}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "mine", "namespace": "team"}, **pod_template(1)}
MADE: dict[str, tuple[dict[str, Any], int]] = {
    "VolcanoJob": (vcjob(3), 3),
    "VolcanoJob that needs fewer": (vcjob(4, minAvailable=1), 4),
    "Job": (JOB, 2),
    "PyTorchJob": (PYTORCHJOB, 3),
    "Pod": (POD, 1),
}


@pytest.mark.parametrize(("item", "pods"), MADE.values(), ids=MADE.keys())
def test_controllers_make_the_pods_of_each_kind_of_work(item: dict[str, Any], pods: int, tmp_path: Path) -> None:
    state = state_of(TABLE)
    before = set(state.objects["Pod"])
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(item))
    add_submitted(state, tmp_path / "job.yaml")
    new = [pod for key, pod in state.objects["Pod"].items() if key not in before]
    assert len(new) == pods
    assert {(pod.spec.node_name, pod.status.phase, pod.metadata.creation_timestamp) for pod in new} == {
        ("", "Pending", state.moment)
    }


REFUSED: dict[str, tuple[str, str]] = {
    "nothing": ("", "has no object"),
    "no work": ("{apiVersion: v1, kind: Service, metadata: {name: s}}", r"job.yaml:1.*Service \(v1\) is not work"),
    "an unknown field": (yaml.safe_dump(vcjob(1, minAvailabel=1)), "minAvailabel"),
    "no YAML": ("a: [", "job.yaml"),
    "no pods": (yaml.safe_dump(vcjob(0)), "job.yaml"),
}


@pytest.mark.parametrize(("text", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_work_is_refused(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(text)
    with pytest.raises(ChangeError, match=says):
        add_submitted(state_of(TABLE), tmp_path / "job.yaml")


def kueue_state() -> State:
    found = State("list", NOW)
    for item in (cluster_queue("a", 2), local_queue("a")):
        kueue.put_served(found, item)
    return found


def test_a_job_is_a_workload_of_its_queue_for_kueue(tmp_path: Path) -> None:
    labels = {"kueue.x-k8s.io/queue-name": "a", "kueue.x-k8s.io/priority-class": "high"}
    job = JOB | {"metadata": {"name": "mine", "namespace": "team", "labels": labels}}
    state = kueue_state()
    high = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass", "metadata": {"name": "high"}}
    kueue.put_served(state, high | {"value": 100})
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    assert add_submitted(state, tmp_path / "job.yaml") == ["team/job-mine"]
    spec = state.others["Workload"]["team/job-mine"]["spec"]
    assert (spec["queueName"], spec["priority"], spec["podSets"][0]["count"]) == ("a", 100, 2)
    assert state.queues_of_work() == {"team/job-mine": "a"}


def test_a_job_without_a_queue_is_no_work_of_kueue(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(JOB))
    with pytest.raises(ChangeError, match=r"has no label kueue\.x-k8s\.io/queue-name"):
        add_submitted(kueue_state(), tmp_path / "job.yaml")
