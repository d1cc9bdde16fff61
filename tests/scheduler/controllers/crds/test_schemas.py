"""Objects are judged as the API server judges them: on the tables that a real API server is asked about.

The other tests of this folder ask a real one about the same rows.
"""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
import yaml

from schedspec.scheduler.lint.schemas import definitions
from tests.scheduler.controllers.crds.asking import KINDS, NUMBERS, pod
from tests.scheduler.controllers.crds.fields import Case, cases
from tests.scheduler.controllers.crds.test_refusals import CASES
from tests.scheduler.controllers.crds.test_updates import FIXED

ROWS = list(cases())


def refusals(item: dict[str, Any], old: dict[str, Any] | None = None, operation: str = "CREATE") -> str:
    """Return all flaws of an object as one text."""
    item = {"apiVersion": KINDS[item["kind"]][0], **item}
    item.setdefault("metadata", {}).setdefault("name", f"case-{next(NUMBERS)}")
    found = definitions().flaws(item, old, operation)
    assert found is not None, "the kind has no schema"
    return "\n".join(f"{flaw.field}: {flaw.text}; {flaw.remedy}" for flaw in found)


@pytest.mark.parametrize("case", CASES["accepted"], ids=lambda case: case["name"])
def test_objects_that_users_write_are_accepted(case: dict[str, Any]) -> None:
    assert not "".join(map(refusals, yaml.safe_load_all(case["yaml"])))


@pytest.mark.parametrize("case", CASES["refused"], ids=lambda case: case["name"])
def test_invalid_objects_are_refused_with_the_same_field(case: dict[str, Any]) -> None:
    found = refusals(*yaml.safe_load_all(case["yaml"])).replace(": is more", " is more")
    for text in case["message"]:
        assert re.sub(r"\[([A-Za-z]+)\]", r".\1", text) in found  # the API server writes keys of maps in brackets


@pytest.mark.parametrize("case", ROWS, ids=str)
def test_every_field_is_accepted_or_refused_as_by_the_api_server(case: Case) -> None:
    found = refusals({"kind": case.kind, **copy.deepcopy(case.body)})
    assert (case.row["refused"] in found) if "refused" in case.row else not found


def _job(**change: Any) -> dict[str, Any]:
    tasks = [{"name": "a", "replicas": 2, "template": pod()}]
    spec = {"queue": "default", "minAvailable": 1, "maxRetry": 3, "tasks": tasks, **change}
    return {"kind": "Job", "metadata": {"name": "job"}, "spec": spec}


@pytest.mark.parametrize(("change", "message"), FIXED)
def test_updates_that_an_admission_policy_denies_are_refused(change: dict[str, Any], message: str) -> None:
    assert message.partition("; ")[0].partition(": ")[2] in refusals(_job(**change), _job(), "UPDATE")


def test_updates_that_users_make_are_accepted() -> None:
    change = {"minAvailable": 2, "priorityClassName": "high", "ttlSecondsAfterFinished": 5}
    assert not refusals(_job(**change), _job(), "UPDATE")


@pytest.mark.parametrize(("name", "is_kept"), [("root", True), ("default", True), ("other", False)])
def test_root_and_default_cannot_be_deleted(name: str, is_kept: bool) -> None:
    assert ("cannot be deleted" in refusals({"kind": "Queue", "metadata": {"name": name}}, None, "DELETE")) == is_kept


KUBERNETES = [
    (
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "valeu": 5},
        "valeu: unknown field; did you mean value?",
    ),
    ({"apiVersion": "v1", "kind": "Node", "spec": {"taint": []}}, "spec.taint: unknown field; did you mean taints?"),
    (
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": {"selector": {"matchLabel": {}}}},
        "spec.selector.matchLabel: unknown field; did you mean matchLabels?",
    ),
    (
        {"apiVersion": "v1", "kind": "Node", "metadata": {"anotations": {}}},
        "metadata.anotations: unknown field; did you",
    ),
    ({"apiVersion": "v1", "kind": "Node", "metadata": {"labels": {"a": 1}}}, "metadata.labels.a: 1 is not of type"),
    (
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1_000_000_001},
        "value: 1000000001 is above 1000000000",
    ),
    (
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "system-x"}, "value": 1},
        "metadata.name: names with system- belong to Kubernetes",
    ),
    *(
        ({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": {"selector": {}, **spec}}, text)
        for spec, text in (
            ({"minAvailable": "7"}, "spec.minAvailable: '7' is neither a number from 0 nor a percentage"),
            ({"minAvailable": -1}, "spec.minAvailable: -1 is neither"),
            ({"maxUnavailable": "101%"}, "spec.maxUnavailable: '101%' is neither"),
            ({"minAvailable": 1, "maxUnavailable": 1}, "spec: minAvailable and maxUnavailable exclude each other"),
        )
    ),
]


AMOUNTS = {
    ("cpu", "1", "500m"): "1 is above the limit 500m; lower it",
    ("memory", "2Gi", "2G"): "2Gi is above the limit 2G; lower it",
    ("nvidia.com/gpu", "1", None): "a device has a limit, too; write the same amount into limits.nvidia.com/gpu",
    ("nvidia.com/gpu", 1, "2"): "1 is not the limit 2; write the same amount",
    ("cpu", 1, None): "",
    ("cpu", 1, "1000m"): "",
    ("nvidia.com/gpu", 2, "2"): "",
}
"""Resource, request and limit of a container, and why the API server refuses them."""
OF_PODS = {"Pod": "v1", "Deployment": "apps/v1", "StatefulSet": "apps/v1", "Job": "batch/v1"}


def owner_of(kind: str, spec: dict[str, Any], **labels: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"restartPolicy": "Never", **spec}}
    owned = {"template": template} | ({"selector": {"matchLabels": labels}} if labels else {})
    body = template["spec"] if kind == "Pod" else owned
    return {"apiVersion": OF_PODS[kind], "kind": kind, "metadata": {"name": "a"}, "spec": body}


@pytest.mark.parametrize("containers", ["containers", "initContainers"])
@pytest.mark.parametrize("kind", OF_PODS)
@pytest.mark.parametrize(("name", "request_", "limit"), AMOUNTS)
def test_requests_and_limits_of_pods_are_judged(
    kind: str, containers: str, name: str, request_: object, limit: object
) -> None:
    resources = {"requests": {name: request_}, "limits": {} if limit is None else {name: limit}}
    spec = {"containers": [{"name": "b"}], containers: [{"name": "c", "resources": resources}]}
    found = definitions().flaws(owner_of(kind, spec, **({"app": "web"} if OF_PODS[kind] == "apps/v1" else {}))) or []
    text = AMOUNTS[name, request_, limit]
    shown = [f"{flaw.field}: {flaw.text}; {flaw.remedy}" for flaw in found if "resources" in flaw.path]
    assert [text in one and f"{containers}[0].resources.requests.{name}: " in one for one in shown] == [True] * bool(
        text
    )


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
@pytest.mark.parametrize(("labels", "lacks"), [({"app": "web"}, False), ({"app": "api"}, True), ({"tier": "a"}, True)])
def test_a_selector_selects_the_pods_of_its_template(kind: str, labels: dict[str, str], lacks: bool) -> None:
    found = definitions().flaws(owner_of(kind, {"containers": [{"name": "c"}]}, **labels)) or []
    assert any(flaw.field == "spec.selector.matchLabels" for flaw in found) is lacks


@pytest.mark.parametrize(("item", "text"), KUBERNETES)
def test_kinds_of_kubernetes_are_judged_by_the_clients_models(item: dict[str, Any], text: str) -> None:
    found = definitions().flaws(item) or []
    assert text in "\n".join(f"{flaw.field}: {flaw.text}; {flaw.remedy}" for flaw in found)


def test_amounts_may_be_numbers_and_fields_may_be_null() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": None}}
    assert definitions().flaws({**node, "status": {"allocatable": {"cpu": 4, "memory": "8Gi"}}}) == []


def test_a_kind_without_a_schema_is_not_judged() -> None:
    assert definitions().flaws({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue"}) is None


NAMES = {"train-": "", "1-": "", "Train-": "metadata.name", "a.b-": "metadata.name", "a" * 60: "metadata.name"}


@pytest.mark.parametrize("prefix", NAMES)
def test_a_generated_name_is_judged_as_the_name_that_the_api_server_makes(prefix: str) -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "spec": {"tasks": [{"template": template}]}}
    found = definitions().flaws({**job, "metadata": {"generateName": prefix}}) or []
    assert [flaw.field for flaw in found] == [NAMES[prefix]] * bool(NAMES[prefix])
