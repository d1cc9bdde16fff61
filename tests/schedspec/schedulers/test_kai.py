"""KAI: how queues, work and policies of a scenario reach it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from schedspec import distribution, schedulers
from schedspec.api.errors import PolicyRefusedError
from schedspec.clusters.programs.pinned import program
from schedspec.scenario.templates import Templates
from schedspec.schedulers.kai import Kai, adapter

COMMON = {"namespace": "ns", "scheduler_name": "schedspec", "image": "i", "simulated": False}


def queue(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def resources_of(*given: dict[str, Any], name: str) -> dict[str, Any]:
    [found] = [it for it in adapter.of_scenario(given) if it["metadata"]["name"] == name]
    return dict(found["spec"]["resources"])


@pytest.mark.parametrize(
    ("amount", "resource", "dimension", "units"),
    [
        ("2", "cpu", "cpu", 2000),
        ("500m", "cpu", "cpu", 500),
        ("1G", "memory", "memory", 1000),
        ("1Gi", "memory", "memory", 1073.741824),
        ("4", "nvidia.com/gpu", "gpu", 4),
        ("0", "nvidia.com/gpu", "gpu", 0),
    ],
)
def test_amounts_are_in_units_of_kai(amount: str, resource: str, dimension: str, units: float) -> None:
    found = resources_of(queue("a", deserved={resource: amount}, capability={resource: amount}), name="a")
    assert (found[dimension]["quota"], found[dimension]["limit"]) == (units, units)


def test_a_queue_without_deserved_amounts_shares_what_is_above_quotas_by_weight() -> None:
    found = resources_of(queue("a", weight=3), name="a")
    assert {(it["quota"], it["limit"], it["overQuotaWeight"]) for it in found.values()} == {(0, -1, 3), (-1, -1, 3)}


@pytest.mark.parametrize(("other", "quota"), [({}, -1), ({"deserved": {"memory": "1G"}}, 0)])
def test_memory_is_limited_only_where_a_queue_names_it(other: dict[str, Any], quota: int) -> None:
    found = resources_of(queue("a", deserved={"cpu": "1"}), queue("b", **other), name="a")
    assert (found["memory"]["quota"], found["gpu"]["quota"]) == (quota, 0)


def test_queues_form_the_tree_of_the_scenario_below_one_queue_of_kai() -> None:
    found = adapter.of_scenario([queue("root"), queue("team"), queue("jobs", parent="team", priority=7)])
    parents = {it["metadata"]["name"]: it["spec"].get("parentQueue") for it in found}
    assert parents == {"schedspec-root": None, "team": "schedspec-root", "jobs": "team", "default": "schedspec-root"}
    assert [it["spec"]["priority"] for it in found if "priority" in it["spec"]] == [7]


@pytest.mark.parametrize(
    ("template", "row", "minimum"),
    [
        ("gang", {"replicas": 4}, 4),
        ("job", {"replicas": 4, "min_available": 2}, 2),
        ("kubernetesjob", {"replicas": 4}, 1),
        ("service", {"replicas": 4}, 1),
        ("pod", {}, 1),
    ],
)
def test_the_pods_of_each_kind_of_work_name_a_pod_group(template: str, row: dict[str, Any], minimum: int) -> None:
    folders = [distribution.folder("templates") / "kai", distribution.folder("templates")]
    group, work = (it.object for it in Templates(folders, COMMON).render(template, {"name": "x", "queue": "q", **row}))
    pod = work if work["kind"] == "Pod" else work["spec"]["template"]
    assert group["spec"] == {"minMember": minimum, "queue": "q", "preemptibility": "preemptible"}
    assert pod["metadata"]["annotations"]["pod-group-name"] == group["metadata"]["name"] == "x"


def test_every_policy_of_the_package_is_one_of_kai() -> None:
    files = sorted((distribution.folder("templates") / "kai" / "policies").glob("*.yaml"))
    assert all(adapter.read(file.read_text("utf-8")).actions.startswith("allocate") for file in files)
    assert [file.stem for file in files if adapter.read(file.read_text("utf-8")).lacks] == ["share-of-use"]


@pytest.mark.parametrize("text", ["actions: [allocate]", "action: allocate", "- allocate", "{"])
def test_what_is_no_policy_of_kai_is_refused(text: str) -> None:
    with pytest.raises(PolicyRefusedError, match="not a policy of KAI"):
        adapter.read(text)


def test_a_version_can_be_selected_and_has_its_default() -> None:
    assert schedulers.find("kai@v0.12.1").wanted == "v0.12.1"
    assert program("kai-scheduler").version == "v0.12.0"
    assert Kai.known_file is not None
    assert yaml.safe_load(Kai.known_file.read_text("utf-8")) is not None
