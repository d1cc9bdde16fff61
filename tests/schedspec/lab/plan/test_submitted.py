"""Work that is submitted to the cluster of a state: whether it runs at once, and what waits or goes because of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from schedspec.lab.plan import ChangeError, Plan, Request, Side, make_plan, page
from schedspec.lab.plan.submitted import add_submitted
from schedspec.lab.plan.text import render_text
from schedspec.scheduler.model.objects import ObjectMeta, PriorityClass
from schedspec.virtual.state import State, kueue
from schedspec.virtual.state.dump import write_state
from tests.support.core.states import NOW, state_of
from tests.support.kueue_state import cluster_queue, local_queue, workload

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
    resources = {name: {"nvidia.com/gpu": str(gpus)} for name in ("requests", "limits")}
    return {
        "spec": {
            "restartPolicy": "Never",
            "schedulerName": "schedspec",
            "containers": [{"name": container, "image": "x", "resources": resources}],
        }
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


def train_job(nodes: int, **of_runtime: Any) -> list[dict[str, Any]]:
    """Return a TrainJob of Kubeflow Trainer, whose nodes need a gpu each, and its runtime."""
    marks = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
    node = {"name": "node", "template": {"metadata": marks, "spec": {"template": pod_template(1, "node")}}}
    specs = {
        "TrainingRuntime": {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": [node]}}} | of_runtime,
        "TrainJob": {"runtimeRef": {"name": "mine", "kind": "TrainingRuntime"}, "trainer": {"numNodes": nodes}},
    }
    meta = {"name": "mine", "namespace": "team", "annotations": {"scheduling.volcano.sh/queue-name": "a"}}
    api = "trainer.kubeflow.org/v1alpha1"
    return [{"apiVersion": api, "kind": kind, "metadata": meta, "spec": spec} for kind, spec in specs.items()]


GANG = {"podGroupPolicy": {"coscheduling": {}}}


@pytest.mark.parametrize(
    ("nodes", "runtime", "starts", "evictions", "waits"),
    [(1, GANG, 1, 0, 0), (2, GANG, 2, 1, 0), (3, GANG, 0, 0, 1), (3, {}, 1, 0, 1)],
    ids=["fits", "evicts", "waits as a gang", "starts alone without a gang"],
)
def test_a_train_job_is_submitted_as_the_jobs_that_the_trainer_makes_of_it(
    tmp_path: Path, nodes: int, runtime: dict[str, Any], starts: int, evictions: int, waits: int
) -> None:
    found = plan(tmp_path, *train_job(nodes, **runtime)).at_once
    assert sum(one.pods for one in found.starts) == starts
    assert (len(found.evictions), len(found.refused)) == (evictions, waits)


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
    "a suspended job": (yaml.safe_dump(JOB | {"spec": JOB["spec"] | {"suspend": True}}), "suspended"),
    **{
        f"no name of a {item['kind']} ({item['apiVersion']})": (
            yaml.safe_dump(item | {"metadata": {"generateName": "a-"}}),
            rf"job.yaml:\d+: {item['kind']} a-: it has no name; write metadata.name",
        )
        for item in (vcjob(1), JOB, PYTORCHJOB, POD)
    },
    "no specification": ("{apiVersion: v1, kind: Pod, metadata: {name: p}}", "Pod p.*"),
    "a group without pods": (
        "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g}, spec: {queue: a}}",
        "add the pods of the PodGroup",
    ),
}


@pytest.mark.parametrize(("text", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_work_is_refused(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(text)
    with pytest.raises(ChangeError, match=says):
        add_submitted(state_of(TABLE), tmp_path / "job.yaml")


UNREADY: dict[str, tuple[dict[str, Any], str]] = {
    "another scheduler": ({"schedulerName": "volcano"}, "schedulerName: volcano decides on it"),
    "a node": ({"nodeName": "n1"}, "no scheduler decides on a pod of n1"),
    "an amount": ({"containers": [{"name": "c", "resources": {"requests": {"cpu": "4x"}}}]}, "'4x' is not a quantity"),
    "a class": ({"priorityClassName": "none"}, "there is no PriorityClass none"),
}


@pytest.mark.parametrize("item", [JOB, POD], ids=["Job", "Pod"])
@pytest.mark.parametrize(("pod", "says"), UNREADY.values(), ids=UNREADY.keys())
def test_pods_on_which_the_scheduler_would_not_decide_are_refused(
    item: dict[str, Any], pod: dict[str, Any], says: str, tmp_path: Path
) -> None:
    spec = item["spec"]["template"]["spec"] if "template" in item["spec"] else item["spec"]
    with_it = json.loads(json.dumps(item).replace(json.dumps(spec), json.dumps(spec | pod)))
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(with_it))
    state = state_of(TABLE)
    state.scheduler_names = ["schedspec"]
    with pytest.raises(ChangeError, match=says):
        add_submitted(state, tmp_path / "job.yaml")


@pytest.mark.parametrize("item", [made[0] for made in MADE.values()], ids=MADE.keys())
def test_work_of_a_name_that_the_cluster_has_is_refused(item: dict[str, Any], tmp_path: Path) -> None:
    state = state_of(TABLE)
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(item))
    add_submitted(state, tmp_path / "job.yaml")
    with pytest.raises(ChangeError, match="team/mine exists in the cluster"):
        add_submitted(state, tmp_path / "job.yaml")


def test_each_object_must_become_pods(tmp_path: Path) -> None:
    other = vcjob(1, queue="nowhere") | {"metadata": {"name": "other", "namespace": "team"}}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump_all([vcjob(1), other]))
    with pytest.raises(ChangeError, match=r"job\.yaml:\d\d.*queue nowhere does not exist"):
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


def test_a_job_without_a_class_has_the_default_priority_in_kueue(tmp_path: Path) -> None:
    state = kueue_state()
    state.put("PriorityClass", PriorityClass(ObjectMeta(name="usual"), 70, True))
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(of_kueue()))
    (key,) = add_submitted(state, tmp_path / "job.yaml")
    assert state.others["Workload"][key]["spec"]["priority"] == 70


def test_a_job_without_a_queue_is_no_work_of_kueue(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(JOB))
    with pytest.raises(ChangeError, match=r"has no label kueue\.x-k8s\.io/queue-name"):
        add_submitted(kueue_state(), tmp_path / "job.yaml")


def of_kueue(space: str = "team", queue: str = "a", **spec: Any) -> dict[str, Any]:
    meta = {"name": "mine", "namespace": space, "labels": {"kueue.x-k8s.io/queue-name": queue}}
    return JOB | {"metadata": meta, "spec": {**JOB["spec"], **spec}}


WORKLOAD = workload("mine", "a", 1)
REFUSED_OF_KUEUE: dict[str, tuple[dict[str, Any], str]] = {
    "a queue that is not there": (of_kueue(queue="b"), "no LocalQueue team/b; name one of the state: team/a"),
    "a namespace without the queue": (of_kueue("other"), "no LocalQueue other/a"),
    "no pods": (of_kueue(parallelism=0), "no pod is created of 0"),
    "fewer than no pods": (of_kueue(parallelism=-1), "no pod is created of -1"),
    "an amount": (json.loads(json.dumps(of_kueue()).replace('"1"', '"4x"')), "'4x' is not a quantity"),
    "a class": (
        json.loads(json.dumps(of_kueue()).replace('"labels": {', '"labels": {"kueue.x-k8s.io/priority-class": "x", ')),
        "no WorkloadPriorityClass x",
    ),
    "an admitted Workload": (workload("mine", "a", 1, admitted=1), "Kueue itself decides"),
    "a Workload without pods": (WORKLOAD | {"spec": {"queueName": "a"}}, "has no pods"),
    "a Workload without anything": ({key: WORKLOAD[key] for key in ("apiVersion", "kind", "metadata")}, "has no pods"),
}


@pytest.mark.parametrize(("item", "says"), REFUSED_OF_KUEUE.values(), ids=REFUSED_OF_KUEUE.keys())
def test_what_kueue_could_not_decide_on_is_refused(item: dict[str, Any], says: str, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(item))
    with pytest.raises(ChangeError, match=says):
        add_submitted(kueue_state(), tmp_path / "job.yaml")


def test_a_state_without_cluster_queues_accepts_work_of_its_local_queues(tmp_path: Path) -> None:
    state = kueue_state()
    del state.others["ClusterQueue"]
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(of_kueue()))
    assert add_submitted(state, tmp_path / "job.yaml") == ["team/job-mine"]


def test_the_page_does_not_say_that_submitted_work_was_there(tmp_path: Path) -> None:
    page.write(plan(tmp_path, vcjob(3)), {}, [], tmp_path / "plan.html")
    text = (tmp_path / "plan.html").read_text("utf-8")
    assert "is submitted" in text
    assert "is submitted without the change" not in text
