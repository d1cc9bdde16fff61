"""A real API server accepts and refuses objects by our definitions; each refusal names field and remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from schedspec.api.client import APPLY, Api
from schedspec.api.errors import RejectedError
from tests.scheduler.controllers.crds.asking import KINDS, NUMBERS, create, path, pod

pytestmark = pytest.mark.embedded
Body = dict[str, Any]
CASES = yaml.safe_load((Path(__file__).parent / "refusals.yaml").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES["accepted"], ids=lambda case: case["name"])
def test_objects_that_users_write_are_accepted(api: Api, case: Body) -> None:
    for document in yaml.safe_load_all(case["yaml"]):
        create(
            api, document["kind"], {key: value for key, value in document.items() if key not in ("apiVersion", "kind")}
        )


@pytest.mark.parametrize("case", CASES["refused"], ids=lambda case: case["name"])
def test_invalid_objects_are_refused(api: Api, case: Body) -> None:
    (document,) = yaml.safe_load_all(case["yaml"])
    with pytest.raises(RejectedError) as refused:
        create(
            api, document["kind"], {key: value for key, value in document.items() if key not in ("apiVersion", "kind")}
        )
    for text in case["message"]:
        assert text in refused.value.message


def test_defaults_are_those_of_volcano(api: Api) -> None:
    queue = create(api, "Queue", {"spec": {}})["spec"]
    assert (queue["weight"], queue["reclaimable"]) == (1, True)
    job = create(api, "Job", {"spec": {"tasks": [{"template": pod()}]}})["spec"]
    assert (job["queue"], job["maxRetry"], job["tasks"][0]["replicas"]) == ("default", 3, 1)
    assert create(api, "PodGroup", {"spec": {"minMember": 1}})["spec"]["queue"] == "default"


def test_a_pod_template_keeps_every_field(api: Api) -> None:
    spec = {**pod()["spec"], "tolerations": [{"key": "x", "operator": "Exists"}], "hostNetwork": True}
    made = create(api, "Job", {"spec": {"tasks": [{"template": {"metadata": {"labels": {"a": "b"}}, "spec": spec}}]}})
    assert made["spec"]["tasks"][0]["template"] == {"metadata": {"labels": {"a": "b"}}, "spec": spec}


KEPT = "cannot be deleted: jobs that name no queue"


@pytest.mark.parametrize("name", ["root", "default"])
def test_root_and_default_cannot_be_deleted(api: Api, name: str) -> None:
    body = {"apiVersion": KINDS["Queue"][0], "kind": "Queue", "metadata": {"name": name}, "spec": {}}
    api.call("PATCH", path("Queue", name), body=body, query={"fieldManager": "test"}, content_type=APPLY)
    with pytest.raises(RejectedError, match=f"the queue {name} {KEPT}"):
        api.delete(path("Queue", name))


@pytest.mark.parametrize(
    ("kind", "columns", "wide"),
    [
        ("PodGroup", ["Name", "STATUS", "minMember", "RUNNINGS", "AGE"], ["QUEUE"]),
        ("Job", ["Name", "STATUS", "minAvailable", "RUNNINGS", "AGE"], ["QUEUE"]),
        ("PyTorchJob", ["Name", "State", "Age"], []),
        ("Command", ["Name", "ACTION", "TARGET", "AGE"], []),
        ("Queue", ["Name", "PARENT"], ["STATE", "WEIGHT", "PRIORITY", "RUNNING", "INQUEUE", "PENDING", "AGE"]),
    ],
)
def test_kubectl_get_prints_the_columns_that_users_know(
    api: Api, kind: str, columns: list[str], wide: list[str]
) -> None:
    definition = api.call("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{_definition(kind)}")
    (version,) = definition["spec"]["versions"]
    printed = version["additionalPrinterColumns"]
    assert ["Name", *(c["name"] for c in printed if not c.get("priority"))] == columns
    assert [c["name"] for c in printed if c.get("priority")] == wide
    assert definition["status"]["acceptedNames"]["kind"] == kind


def _definition(kind: str) -> str:
    version, plural = KINDS[kind]
    return f"{plural}.{version.partition('/')[0]}"


@pytest.mark.parametrize(
    ("kind", "names"),
    [("Queue", ["q", "queue-v1beta1"]), ("PodGroup", ["pg", "podgroup-v1beta1"]), ("Job", ["vcjob", "vj"])],
)
def test_short_names_are_those_of_volcano(api: Api, kind: str, names: list[str]) -> None:
    definition = api.call("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{_definition(kind)}")
    assert definition["status"]["acceptedNames"]["shortNames"] == names


def test_every_definition_has_a_structural_schema(api: Api) -> None:
    for kind in KINDS:
        definition = api.call("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{_definition(kind)}")
        wrong = [c for c in definition["status"]["conditions"] if c["type"] == "NonStructuralSchema"]
        assert not wrong, wrong


def test_the_scheduler_and_the_queue_controller_keep_their_own_fields_of_a_queue(api: Api) -> None:
    name = f"shared-{next(NUMBERS)}"
    head = {"apiVersion": KINDS["Queue"][0], "kind": "Queue", "metadata": {"name": name}}
    api.call("POST", path("Queue"), body={**head, "spec": {}})
    try:
        for manager, status in (
            ("scheduler", {"allocated": {"cpu": "4"}, "deserved": {"cpu": "8"}}),
            ("controller", {"state": "Open", "running": 1, "conditions": [{"type": "Ready", "status": "True"}]}),
            ("scheduler", {"allocated": {}, "deserved": {"cpu": "8"}}),
        ):
            api.call(
                "PATCH",
                path("Queue", name) + "/status",
                body={**head, "status": status},
                query={"fieldManager": manager, "force": "true"},
                content_type=APPLY,
            )
        status = api.call("GET", path("Queue", name))["status"]
        assert (status["state"], status["running"], status["deserved"]) == ("Open", 1, {"cpu": "8"})
        assert not status["allocated"]
    finally:
        api.delete(path("Queue", name))


def test_unknown_fields_of_template_metadata_are_pruned_at_any_depth(api: Api) -> None:
    """Otherwise every replica would have to read them."""
    deep: Any = "x"
    for _ in range(60):
        deep = {"a": deep}
    tasks = [{"template": {"metadata": {"labels": {"a": "b"}, "a": deep}, **pod()}}]
    body = {"apiVersion": KINDS["Job"][0], "kind": "Job", "metadata": {"name": f"deep-{next(NUMBERS)}"}}
    found = api.call("POST", path("Job"), body={**body, "spec": {"tasks": tasks}}, query={"dryRun": "All"})["spec"]
    assert found["tasks"][0]["template"]["metadata"] == {"labels": {"a": "b"}}
