"""TrainJobs of a team's own manifests: the Jobs that they become, and the fields that are refused."""

from __future__ import annotations

import contextlib
import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from schedspec.api.kinds import Kind
from schedspec.scenario import own_work, train_jobs
from schedspec.scenario.own_work import WorkError

MIN_MEMBER, QUEUE = "scheduling.volcano.sh/group-min-member", "scheduling.volcano.sh/queue-name"
COMMON = {"scheduler_name": "ours", "image": "w"}
API = "trainer.kubeflow.org/v1alpha1"
NODE = {"name": "node", "image": "torch:2", "resources": {"requests": {"cpu": "1"}}}
RUNTIME: dict[str, Any] = {
    "apiVersion": API,
    "kind": "TrainingRuntime",
    "metadata": {"name": "own"},
    "spec": {
        "mlPolicy": {"numNodes": 2, "torch": {"numProcPerNode": "auto"}},
        "template": {
            "spec": {
                "replicatedJobs": [
                    {
                        "name": "node",
                        "template": {
                            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                            "spec": {"template": {"spec": {"containers": [NODE]}}},
                        },
                    }
                ]
            }
        },
    },
}
JOB: dict[str, Any] = {
    "apiVersion": API,
    "kind": "TrainJob",
    "metadata": {"name": "tune", "namespace": "ml"},
    "spec": {"runtimeRef": {"name": "own", "kind": "TrainingRuntime"}, "trainer": {"numProcPerNode": 8}},
}


def edited(item: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy with this value at a path such as `spec.trainer.numNodes`; numbers are places in lists."""
    found = copy.deepcopy(item)
    *parents, last = path.split(".")
    at: Any = found
    for part in parents:
        at = at[int(part)] if part.isdecimal() else at.setdefault(part, {})
    at[int(last) if last.isdecimal() else last] = value
    return found


def written(tmp_path: Path, *items: dict[str, Any]) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump_all(items, sort_keys=False))
    return path


def job_of(tmp_path: Path, *items: dict[str, Any]) -> dict[str, Any]:
    """Return the one Job that the TrainJob of a file becomes."""
    (found,) = own_work.of_file(written(tmp_path, *items))
    assert found.kind is Kind.JOB
    return found.item


POD, OVERRIDE = "spec.template.spec", {"targetJobs": [{"name": "node"}]}
PATCH = {
    "replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": {"nodeSelector": {"z": "b"}}}}}}]
}
CARRIED: dict[str, tuple[str, str, Any, str, Any]] = {
    "the job's nodes": ("job", "spec.trainer.numNodes", 4, "spec.parallelism", 4),
    "the runtime's nodes": ("runtime", "spec.mlPolicy.numNodes", 3, "spec.completions", 3),
    "the job's resources": (
        *("job", "spec.trainer.resourcesPerNode", {"limits": {"nvidia.com/gpu": 2}}),
        *(f"{POD}.containers.0.resources", {"limits": {"nvidia.com/gpu": 2}}),
    ),
    "a gang of coscheduling": (
        *("runtime", "spec.podGroupPolicy", {"coscheduling": {}}),
        *("spec.template.metadata.annotations", {MIN_MEMBER: "2"}),
    ),
    "a gang of Volcano": (
        *("runtime", "spec.podGroupPolicy", {"volcano": {}}),
        *("spec.template.metadata.annotations", {MIN_MEMBER: "2"}),
    ),
    "the queue of the job": (
        *("job", "metadata.annotations", {QUEUE: "team"}),
        *("spec.template.metadata.annotations", {QUEUE: "team"}),
    ),
    "the queue that the job gives its pods": (
        *("job", "spec.annotations", {QUEUE: "team"}),
        *("spec.template.metadata.annotations", {QUEUE: "team"}),
    ),
    "the queue of the runtime": (
        *("runtime", "spec.template.metadata.annotations", {QUEUE: "team"}),
        *("spec.template.metadata.annotations", {QUEUE: "team"}),
    ),
    "the queue of Kueue": (
        *("job", "metadata.labels", {"kueue.x-k8s.io/queue-name": "team"}),
        *("metadata.labels", {"kueue.x-k8s.io/queue-name": "team"}),
    ),
    "an override": (
        *("job", "spec.podTemplateOverrides", [{**OVERRIDE, "spec": {"tolerations": [{"key": "spot"}]}}]),
        *(f"{POD}.tolerations", [{"key": "spot"}]),
    ),
    "a patch": (
        *("job", "spec.runtimePatches", [{"manager": "m", "trainingRuntimeSpec": {"template": {"spec": PATCH}}}]),
        *(f"{POD}.nodeSelector", {"z": "b"}),
    ),
}


@pytest.mark.parametrize("what", CARRIED)
def test_a_field_is_carried_out(tmp_path: Path, what: str) -> None:
    whose, field, value, place, expected = CARRIED[what]
    job = edited(JOB, field, value) if whose == "job" else JOB
    runtime = edited(RUNTIME, field, value) if whose == "runtime" else RUNTIME
    found: Any = job_of(tmp_path, runtime, job)
    for part in place.split("."):
        found = found[int(part)] if part.isdecimal() else found[part]
    assert found == expected


def test_a_job_without_a_runtime_of_its_own_is_one_pod_of_the_usual_runtime(tmp_path: Path) -> None:
    found = job_of(tmp_path, edited(JOB, "spec.runtimeRef", {"name": "torch-distributed"}))
    assert found["spec"]["parallelism"] == 1
    assert "metadata" not in found["spec"]["template"]


def test_the_number_of_nodes_is_the_size_of_the_gang(tmp_path: Path) -> None:
    path = written(tmp_path, edited(RUNTIME, "spec.podGroupPolicy", {"volcano": {}}), JOB)
    (made,) = own_work.rendered(path, "spec-1", COMMON, [{"replicas": 5}])
    assert made.object["spec"]["parallelism"] == 5
    for it in (made.object, made.object["spec"]["template"]):  # our controller reads it from pods, Volcano's from Jobs
        assert it["metadata"]["annotations"][MIN_MEMBER] == "5"


REPLICATED = "spec.template.spec.replicatedJobs"
REFUSED: dict[str, tuple[str, str, Any, str, str]] = {
    "a misspelt field": ("job", "spec.trainer.numNode", 2, "numNode:", "is 'numNodes' meant"),
    "a field of an earlier version": ("job", "spec.podSpecOverrides", [], "podSpec", "is 'podTemplateOverrides' meant"),
    "an initializer": ("job", "spec.initializer", {"dataset": {}}, "initializer:", "is not carried out here"),
    "a deadline": ("job", "spec.activeDeadlineSeconds", 60, "activeDeadline", "is not carried out here"),
    "a suspended job": ("job", "spec.suspend", True, "suspend:", "True is not carried out here"),
    "a number as a truth": ("job", "spec.suspend", 0, "suspend:", "0 is not carried out here"),
    "another manager": (
        "job",
        "spec.managedBy",
        "kueue.x-k8s.io/multikueue",
        "managedBy:",
        "multikueue is not carried",
    ),
    "no nodes": ("job", "spec.trainer.numNodes", 0, "numNodes:", "0 is no number of nodes"),
    "a truth as a number": ("job", "spec.trainer.numNodes", True, "numNodes:", "True is no number of nodes"),
    "a text as a trainer": ("job", "spec.trainer", "torch", "trainer:", "must be an object with fields"),
    "a number as a label": ("job", "spec.labels", {"a": 1}, "labels:", "must map names to texts"),
    "no list of patches": ("job", "spec.runtimePatches", {}, "runtimePatches:", "must be a list"),
    "a patch of another job": (
        *("job", "spec.podTemplateOverrides", [{"targetJobs": [{"name": "launcher"}]}]),
        *("targetJobs:", "no replicated job launcher"),
    ),
    "a runtime that is not there": (
        "job",
        "spec.runtimeRef.name",
        "onw",
        "name: onw",
        "no TrainingRuntime onw (is 'own'",
    ),
    "another kind of runtime": (
        "job",
        "spec.runtimeRef.kind",
        "Runtime",
        "kind: Runtime",
        "Runtime is not carried out",
    ),
    "a version that is not read": (
        "job",
        "apiVersion",
        "trainer.kubeflow.org/v1",
        "v1\n",
        "of trainer.kubeflow.org/v1",
    ),
    "MPI": ("runtime", "spec.mlPolicy.mpi", {}, "mpi:", "is not carried out here"),
    "elastic nodes": ("runtime", "spec.mlPolicy.torch.elasticPolicy", {}, "elasticPolicy:", "is not carried out here"),
    "a timeout of the gang": (
        *("runtime", "spec.podGroupPolicy", {"coscheduling": {"scheduleTimeoutSeconds": 9}}),
        *("scheduleTimeoutSeconds:", "is not carried out here"),
    ),
    "a second job": ("runtime", f"{REPLICATED}.0.replicas", 2, "replicas: 2", "2 is not carried out here"),
    "a job of another step": (
        "runtime",
        f"{REPLICATED}.0.template.metadata.labels",
        {},
        "- name: node",
        "one replicated",
    ),
    "a container of another name": (
        *("runtime", f"{REPLICATED}.0.template.spec.template.spec.containers.0.name", "torch"),
        *("containers:", "no container is named node"),
    ),
    "a device without a limit": (
        *("job", "spec.trainer.resourcesPerNode", {"requests": {"nvidia.com/gpu": 1}}),
        *("spec:", "a device has a limit, too"),
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_field_that_is_not_carried_out_is_refused_where_it_stands(tmp_path: Path, what: str) -> None:
    whose, field, value, place, says = REFUSED[what]
    job = edited(JOB, field, value) if whose == "job" else JOB
    runtime = edited(RUNTIME, field, value) if whose == "runtime" else RUNTIME
    path = written(tmp_path, runtime, job)
    with pytest.raises(WorkError) as refused:
        own_work.of_file(path)
    assert says in refused.value.problem
    line = path.read_text("utf-8").splitlines()[int(refused.value.place.rpartition(":")[2]) - 1]
    assert place.strip() in line


def test_a_runtime_that_no_job_uses_is_refused(tmp_path: Path) -> None:
    other = edited(RUNTIME, "metadata.name", "other")
    with pytest.raises(WorkError, match="TrainingRuntime other: no TrainJob of this file uses it"):
        own_work.of_file(written(tmp_path, RUNTIME, JOB, other))


def fields(shape: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the paths of all objects with fields in the shape of a TrainJob, without those in lists."""
    if not isinstance(shape, dict):
        return []
    return [path, *(found for name, part in shape.items() for found in fields(part, (*path, name)))]


@pytest.mark.parametrize("path", fields(train_jobs._TRAIN_JOB), ids=".".join)
def test_an_unknown_field_is_refused_at_every_place_of_a_train_job(tmp_path: Path, path: tuple[str, ...]) -> None:
    with pytest.raises(WorkError, match="unknown field"):
        own_work.of_file(written(tmp_path, RUNTIME, edited(JOB, ".".join((*path, "foreign")), 1)))


FULL = edited(
    JOB, "spec.podTemplateOverrides", [{**OVERRIDE, "spec": {"tolerations": [], "containers": [{"name": "x"}]}}]
)
FULL = edited(FULL, "spec.runtimePatches", [{"trainingRuntimeSpec": {"template": {"spec": PATCH}}}])
FULL = edited(FULL, "metadata", {"name": "tune", "labels": {"a": "b"}, "annotations": {QUEUE: "team"}})
GANG = edited(RUNTIME, "spec.podGroupPolicy", {"coscheduling": {}})


def paths(item: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the paths of all values below an object."""
    parts = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
    return [found for name, part in parts for found in ((*path, str(name)), *paths(part, (*path, str(name))))]


HOSTILE: tuple[Any, ...] = (None, 3, True, "x", [], {}, [3], ["x"], {"x": 3}, [{"name": 3}])


@pytest.mark.parametrize(
    "path", [("job", *it) for it in paths(FULL)] + [("runtime", *it) for it in paths(GANG)], ids=".".join
)
def test_no_value_of_any_field_stops_the_reading(tmp_path: Path, path: tuple[str, ...]) -> None:
    for value in HOSTILE:
        items = {"job": FULL, "runtime": GANG}
        items[path[0]] = edited(items[path[0]], ".".join(path[1:]), value)
        with contextlib.suppress(WorkError):
            own_work.rendered(written(tmp_path, items["runtime"], items["job"]), "s", COMMON, [{"replicas": 2}])
