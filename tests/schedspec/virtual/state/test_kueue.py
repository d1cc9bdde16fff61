"""Kueue's objects in a state: read from lists, written to dumps, redacted; refused where only Kueue could decide."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from schedspec.schedulers.kueue import Kueue
from schedspec.virtual.state import ForeignStateError, State, kueue, read_state
from schedspec.virtual.state.dump import write_state
from schedspec.virtual.state.redaction import redact
from tests.support.kueue_state import cluster_queue, cohort, flavor, listed, local_queue, workload

ITEMS = [
    flavor(),
    cohort("all"),
    cluster_queue("team", 4),
    local_queue("team"),
    workload("runs", "team", 3, admitted=5),
    workload("waits", "team", 2, priority=7),
]
CONFIG = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "waitForPodsReady": {"timeout": "1h"}}


def written(folder: Path, *items: dict[str, Any]) -> Path:
    (folder / "list.json").write_text(json.dumps(listed(*items)))
    return folder / "list.json"


def test_a_list_and_its_dump_have_the_same_objects(tmp_path: Path) -> None:
    data = {kueue.CONFIGURATION: yaml.safe_dump(CONFIG)}
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "kueue-system"},
        "data": data,
    }
    found = read_state(written(tmp_path, *ITEMS, config), with_kueue=True)
    assert {kind: len(objects) for kind, objects in found.others.items()} == {
        "ClusterQueue": 1, "Cohort": 1, "ConfigMap": 1, "LocalQueue": 1, "ResourceFlavor": 1, "Workload": 2,
    }  # fmt: skip
    assert kueue.configuration_of(found) == data[kueue.CONFIGURATION]
    assert found.queues_of_work() == {"team/runs": "team", "team/waits": "team"}
    found.taken += 1.0
    write_state(found, tmp_path / "state.jsonl.gz")
    again = read_state(tmp_path / "state.jsonl.gz", with_kueue=True)
    assert (again.others, again.digest) == (found.others, found.digest)


def test_what_a_decision_can_depend_on_is_kept_as_it_was_served(tmp_path: Path) -> None:
    found = read_state(written(tmp_path, *ITEMS), with_kueue=True)
    for item in ITEMS:
        meta = item["metadata"]
        key = f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else meta["name"]
        kept = found.others[item["kind"]][key]
        for part in item["spec"].get("podSets", ()):
            part["template"]["spec"]["containers"][0].pop("image")
        assert {name: kept.get(name) for name in ("apiVersion", "kind", "spec", "status")} == {
            name: item.get(name) for name in ("apiVersion", "kind", "spec", "status")
        }
        assert kept["metadata"]["creationTimestamp"] == meta["creationTimestamp"]
        assert kept["metadata"]["uid"] == meta["uid"]


SECRET = "s3cr3t"
OF_CONTAINERS = {
    "env": [{"name": "TOKEN", "value": SECRET}],
    "envFrom": [{"secretRef": {"name": SECRET}}],
    "command": [SECRET],
    "args": [SECRET],
    "image": SECRET,
    "volumeMounts": [{"name": SECRET, "mountPath": SECRET}],
    "lifecycle": {"preStop": {"exec": {"command": [SECRET]}}},
}
NOTES = {"kubectl.kubernetes.io/last-applied-configuration": SECRET, "team/token": SECRET}


@pytest.mark.parametrize("part", ["containers", "initContainers"])
def test_a_state_has_no_environments_commands_and_annotations_of_people(tmp_path: Path, part: str) -> None:
    item = workload("runs", "team", 3)
    item["metadata"]["annotations"] = {**NOTES, "kueue.x-k8s.io/job-completions": "3"}
    template = item["spec"]["podSets"][0]["template"]
    template["metadata"] = {"annotations": NOTES}
    template["spec"] |= {part: [{"name": "c", "resources": {"requests": {"cpu": "1"}}, **OF_CONTAINERS}]}
    template["spec"]["volumes"] = [{"name": SECRET}]
    found = read_state(written(tmp_path, item), with_kueue=True)
    kept = found.others["Workload"]["team/runs"]
    assert kept["metadata"]["annotations"] == {"kueue.x-k8s.io/job-completions": "3"}
    assert kept["spec"]["podSets"][0]["template"]["spec"][part][0]["resources"] == {"requests": {"cpu": "1"}}
    assert SECRET not in json.dumps(found.others)


def test_other_kinds_of_kueue_are_left_out_by_name_and_count(tmp_path: Path) -> None:
    other = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueCluster", "metadata": {"name": "m"}}
    found = read_state(written(tmp_path, *ITEMS, other), with_kueue=True)
    assert found.left_out == {"MultiKueueCluster.kueue.x-k8s.io": 1}


@pytest.mark.parametrize("is_dump", [False, True])
def test_commands_that_do_not_ask_kueue_refuse_its_cluster(tmp_path: Path, is_dump: bool) -> None:
    path = written(tmp_path, *ITEMS)
    if is_dump:
        write_state(read_state(path, with_kueue=True), tmp_path / "state.jsonl.gz")
        path = tmp_path / "state.jsonl.gz"
    with pytest.raises(ForeignStateError, match="--scheduler kueue"):
        read_state(path)


CONSTANTS = {"operator": "Exists", "effect": "NoSchedule", "coveredResources": "nvidia.com/gpu"}
"""Fields whose texts are words of the API, though a schema permits any text, and names of resources, which stay."""
BY_RESOURCE = ("flavors", "resourceUsage", "requests", "limits", "claims", "resources", "overhead", "resourceRequests")
"""Fields whose keys are names of resources."""


def fields(schema: dict[str, Any], secret: st.SearchStrategy[str], name: str = "") -> st.SearchStrategy[Any]:
    """Return objects of a schema, with a secret wherever it permits any text."""
    if schema.get("x-kubernetes-int-or-string"):
        return st.integers(0, 9)
    match schema.get("type"):
        case "object" if "properties" in schema:
            parts = {key: fields(part, secret, key) for key, part in schema["properties"].items()}
            if name == "resources" and "name" in parts:
                parts["name"] = st.just("nvidia.com/gpu")
            return st.fixed_dictionaries({}, optional=parts)
        case "object":
            inner = schema.get("additionalProperties")
            keys = st.just("nvidia.com/gpu") if name in BY_RESOURCE else secret
            return st.dictionaries(keys, fields(inner, secret), max_size=2) if inner else st.just({})
        case "array":
            return st.lists(fields(schema["items"], secret, name), max_size=2)
        case "integer" | "number":
            return st.integers(0, 9)
        case "boolean":
            return st.booleans()
    return (
        st.sampled_from(schema["enum"])
        if "enum" in schema
        else st.just(CONSTANTS[name])
        if name in CONSTANTS
        else secret
    )


SECRETS = st.from_regex(r"zqz-[a-z]{1,8}", fullmatch=True)


@pytest.mark.nightly  # the definitions come with Kueue's module
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_no_text_that_people_write_leaves_a_redacted_object(data: st.DataObject) -> None:
    for path in sorted(Kueue().source(None).glob("*.yaml")):
        crd = yaml.safe_load(path.read_text("utf-8"))
        kind = crd["spec"]["names"]["kind"]
        if kind not in kueue.PLURALS:
            continue
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        drawn = data.draw(
            fields(
                {
                    "type": "object",
                    "properties": {
                        name: part for name, part in schema["properties"].items() if name in ("spec", "status")
                    },
                },
                SECRETS,
            )
        )
        state = State("list", 0.0)
        meta = {"name": "zqz-name", "uid": "zqz-uid"}
        kueue.put_served(state, {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": meta, **drawn})
        text = json.dumps(redact(state).others)
        assert "zqz" not in text, re.findall(r"[^,{]*zqz[^,}]*", text)


def test_a_redacted_state_keeps_amounts_times_words_and_the_order_of_names() -> None:
    state = State("list", 0.0)
    for item in [*ITEMS, cluster_queue("a-team", 2, preemption={"withinClusterQueue": "LowerPriority"})]:
        kueue.put_served(state, item)
    found = redact(state)
    names = {kind: [*objects] for kind, objects in found.others.items()}
    first, second = names["ClusterQueue"]  # of a-team and team
    assert first < second
    (local,) = found.others["LocalQueue"].values()
    assert local["spec"]["clusterQueue"] == second
    assert found.others["ClusterQueue"][first]["spec"]["preemption"] == {"withinClusterQueue": "LowerPriority"}
    assert {found.queues_of_work()[key] for key in names["Workload"]} == {second}
    held, waits = found.others["Workload"].values()
    assert held["status"]["admission"]["podSetAssignments"][0]["resourceUsage"] == {"nvidia.com/gpu": "3"}
    assert [each["type"] for each in held["status"]["conditions"]] == ["QuotaReserved", "Admitted"]
    assert (
        held["status"]["conditions"][0]["lastTransitionTime"]
        == ITEMS[4]["status"]["conditions"][0]["lastTransitionTime"]
    )
    assert (waits["spec"]["priority"], waits["spec"]["podSets"][0]["count"]) == (7, 1)
    assert "team" not in json.dumps(found.others)
