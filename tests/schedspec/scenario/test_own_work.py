"""Work of a team's own manifests: what is refused, what is made ours, and which field each column replaces."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from schedspec.scenario import own_work
from schedspec.scenario.manifests import ManifestError
from schedspec.scenario.own_work import WorkError

POD = {
    "containers": [
        {"name": "pytorch", "image": "team/c:1", "command": ["run"], "resources": {"requests": {"cpu": "1"}}}
    ]
}
TEMPLATE = {"metadata": {"labels": {"app": "w"}}, "spec": POD}
WORK: dict[str, dict[str, Any]] = {
    "Job": {"apiVersion": "batch/v1", "spec": {"parallelism": 2, "template": TEMPLATE}},
    "Deployment": {"apiVersion": "apps/v1", "spec": {"replicas": 2, "selector": {}, "template": TEMPLATE}},
    "StatefulSet": {
        "apiVersion": "apps/v1",
        "spec": {"replicas": 2, "serviceName": "s", "selector": {}, "template": TEMPLATE},
    },
    "Pod": {"apiVersion": "v1", "spec": POD},
    "VolcanoJob": {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "spec": {"minAvailable": 1, "tasks": [{"name": "t", "replicas": 2, "template": TEMPLATE}]},
    },
    "PyTorchJob": {
        "apiVersion": "kubeflow.org/v1",
        "spec": {"pytorchReplicaSpecs": {role: {"replicas": 1, "template": TEMPLATE} for role in ("Master", "Worker")}},
    },
}
COMMON = {"scheduler_name": "ours", "image": "worker:1"}
COLUMNS: dict[str, object] = {
    "queue": "team-b",
    "priority": "high",
    "replicas": 7,
    "min_available": 2,
    "cpu": "3",
    "memory": "5Gi",
    "resources": {"nvidia.com/gpu": "2"},
    "node_selector": {"zone": "a"},
    "tolerates": ["spot"],
}
WITHOUT = {
    "min_available": ("Job", "Deployment", "StatefulSet", "Pod"),
    "replicas": ("Pod",),
}
"""Columns that a kind of work does not have."""
CASES = [(kind, column) for kind in WORK for column in COLUMNS]


def item(kind: str, **meta: Any) -> dict[str, Any]:
    found = copy.deepcopy(WORK[kind])
    return {**found, "kind": "Job" if kind == "VolcanoJob" else kind, "metadata": {"name": "w", **meta}}


def written(tmp_path: Path, *items: Any) -> Path:
    path = tmp_path / "jobs.yaml"
    path.write_text(yaml.safe_dump_all(items))
    return path


def rendered(path: Path, *rows: dict[str, object]) -> str:
    return json.dumps([it.object for it in own_work.rendered(path, "spec-1", COMMON, rows)], sort_keys=True)


@pytest.mark.parametrize(("kind", "column"), CASES)
def test_each_column_replaces_a_field_or_is_refused(tmp_path: Path, kind: str, column: str) -> None:
    path = written(tmp_path, item(kind))
    if kind in WITHOUT.get(column, ()):
        with pytest.raises(WorkError, match="remove the column, or name other work"):
            rendered(path, {column: COLUMNS[column]})
    else:
        changed = rendered(path, {column: COLUMNS[column]})
        assert changed != rendered(path)
        value = COLUMNS[column]
        assert json.dumps(value if not isinstance(value, list) else value[0]).strip("{}") in changed


@pytest.mark.parametrize("kind", WORK)
def test_work_is_for_the_scheduler_under_test_and_without_the_teams_images(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, item(kind, namespace="ml", uid="1", resourceVersion="5"))
    (made,) = own_work.rendered(path, "spec-1", COMMON)
    text = json.dumps(made.object)
    assert made.object["metadata"]["namespace"] == "spec-1"
    assert '"schedulerName": "ours"' in text
    assert '"image": "worker:1"' in text
    assert "team/c:1" not in text
    assert "resourceVersion" not in text


@pytest.mark.parametrize("kind", WORK)
def test_a_device_without_a_limit_is_refused_in_work_of_every_kind(tmp_path: Path, kind: str) -> None:
    text = json.dumps(item(kind)).replace('"cpu": "1"', '"nvidia.com/gpu": "1"')
    with pytest.raises(WorkError, match=r"resources\.requests\.nvidia\.com/gpu: a device has a limit, too"):
        list(own_work.read(written(tmp_path, json.loads(text))))


def test_a_row_with_a_name_changes_that_work_only(tmp_path: Path) -> None:
    other = item("Job") | {"metadata": {"name": "other"}}
    path = written(tmp_path, item("Deployment"), other)
    first, second = own_work.rendered(path, "spec-1", COMMON, [{"name": "other", "replicas": 9}])
    assert (first.object["spec"]["replicas"], second.object["spec"]["parallelism"]) == (2, 9)


@pytest.mark.parametrize(
    ("first", "second", "names", "real"),
    [
        ("", "", ["w", "other"], ["spec-1", "spec-1"]),
        ("red", "red", ["w", "other"], ["spec-1", "spec-1"]),
        ("red", "", ["red/w", "default/other"], ["spec-1-red", "spec-1-default"]),
        ("red", "blue", ["red/w", "blue/other"], ["spec-1-red", "spec-1-blue"]),
    ],
)
def test_work_of_several_namespaces_is_in_as_many(
    tmp_path: Path, first: str, second: str, names: list[str], real: list[str]
) -> None:
    items = [item("Deployment", namespace=first), item("Job", namespace=second)]
    items[1]["metadata"]["name"] = "other"
    path = written(tmp_path, *items)
    found = own_work.of_file(path)
    assert own_work.names(found) == names
    assert [pod.rpartition("/")[0] for pod in own_work.pods(found)][:1] == [names[0].rpartition("/")[0]]
    made = own_work.rendered(path, "spec-1", COMMON, [{"name": names[1], "replicas": 9}])
    assert [it.object["metadata"]["namespace"] for it in made] == real
    assert made[1].object["spec"]["parallelism"] == 9


def _with(kind: str, **fields: Any) -> dict[str, Any]:
    found = item(kind)
    return {**found, "spec": {**found["spec"], **fields}}


REFUSED: dict[str, tuple[list[Any], str]] = {
    "no object": ([], "has no work"),
    "no work": (
        [{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {}}],
        r"jobs.yaml:1: Service \(v1\) is not work",
    ),
    "a field that the API does not have": (
        [_with("Job", parallelsm=2)],
        r"jobs.yaml:7: Job w.spec.parallelsm: unknown field\n  do next: did you mean parallelism\?",
    ),
    "a field of a container that the API does not have": (
        [json.loads(json.dumps(item("Deployment")).replace('"image"', '"imge"'))],
        r"containers\[0\].imge",
    ),
    "a field that Volcano does not have": ([_with("VolcanoJob", minAvailabel=2)], "minAvailabel"),
    "a long name of one of two namespaces": (
        [item("Job", namespace="a"), item("Deployment", namespace="a-namespace-of-a-team")],
        "the namespace a-namespace-of-a-team has 21 characters",
    ),
    "a field of a StatefulSet that the API does not have": ([_with("StatefulSet", replica=2)], "replica"),
    "a field of a LimitRange that the API does not have": (
        [item("Job"), {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limit": []}}],
        "limit",
    ),
    "a field of a PriorityClass that the API does not have": (
        [
            item("Job"),
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "l"}, "values": 1},
        ],
        "values",
    ),
    "no name": ([{**item("Pod"), "metadata": {}}], "write metadata.name"),
    "a node": ([_with("Pod", nodeName="n1")], "no scheduler decides on a pod of n1"),
    "an amount": (
        [json.loads(json.dumps(item("Pod")).replace('"cpu": "1"', '"cpu": "4x"'))],
        "'4x' is not a quantity",
    ),
    "only quotas": (
        [{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": 1}}}],
        "has no work",
    ),
}


@pytest.mark.parametrize(("items", "says"), REFUSED.values(), ids=REFUSED)
def test_what_a_scenario_cannot_submit_is_refused(tmp_path: Path, items: list[Any], says: str) -> None:
    with pytest.raises(ManifestError, match=says):
        own_work.of_file(written(tmp_path, *items))


def test_a_value_for_work_that_is_not_in_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkError, match="has no work x"):
        own_work.rendered(written(tmp_path, item("Job")), "spec-1", COMMON, [{"name": "x", "replicas": 2}])
