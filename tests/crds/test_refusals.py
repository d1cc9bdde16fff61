"""What the definitions take and what they refuse, asked of a real API server; each refusal names field and remedy."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.client import APPLY, MERGE, Api
from harness.errors import RejectedError

pytestmark = pytest.mark.embedded
Body = dict[str, Any]
CASES = yaml.safe_load((Path(__file__).parent / "refusals.yaml").read_text("utf-8"))
KINDS = {
    "Queue": ("scheduling.volcano.sh/v1beta1", "queues"),
    "PodGroup": ("scheduling.volcano.sh/v1beta1", "podgroups"),
    "Job": ("batch.volcano.sh/v1alpha1", "jobs"),
    "Command": ("bus.volcano.sh/v1alpha1", "commands"),
    "PyTorchJob": ("kubeflow.org/v1", "pytorchjobs"),
}
_numbers = count()


def path(kind: str, name: str = "") -> str:
    version, plural = KINDS[kind]
    place = "" if kind == "Queue" else "namespaces/default/"
    return f"/apis/{version}/{place}{plural}" + (f"/{name}" if name else "")


def create(api: Api, kind: str, body: Body) -> Body:
    """Create it and delete it again; what the server made of it. Unknown fields are errors."""
    full = {"apiVersion": KINDS[kind][0], "kind": kind, **copy.deepcopy(body)}
    full.setdefault("metadata", {}).setdefault("name", f"case-{next(_numbers)}")
    return api.call("POST", path(kind), body=full, query={"fieldValidation": "Strict", "dryRun": "All"})


def pod(image: Any = "i") -> Body:
    return {"spec": {"containers": [{"name": "pytorch", "image": image}]}}


@pytest.mark.parametrize("case", CASES["accepted"], ids=lambda case: case["name"])
def test_what_users_write_is_accepted(api: Api, case: Body) -> None:
    for document in yaml.safe_load_all(case["yaml"]):
        create(
            api, document["kind"], {key: value for key, value in document.items() if key not in ("apiVersion", "kind")}
        )


@pytest.mark.parametrize("case", CASES["refused"], ids=lambda case: case["name"])
def test_what_cannot_work_is_refused(api: Api, case: Body) -> None:
    (document,) = yaml.safe_load_all(case["yaml"])
    with pytest.raises(RejectedError) as refused:
        create(
            api, document["kind"], {key: value for key, value in document.items() if key not in ("apiVersion", "kind")}
        )
    for text in case["says"]:
        assert text in refused.value.message


def test_defaults_are_volcanos(api: Api) -> None:
    queue = create(api, "Queue", {"spec": {}})["spec"]
    assert (queue["weight"], queue["reclaimable"]) == (1, True)
    job = create(api, "Job", {"spec": {"tasks": [{"template": pod()}]}})["spec"]
    assert (job["queue"], job["maxRetry"], job["tasks"][0]["replicas"]) == ("default", 3, 1)
    assert create(api, "PodGroup", {"spec": {"minMember": 1}})["spec"]["queue"] == "default"


def test_a_pod_template_keeps_every_field(api: Api) -> None:
    spec = {**pod()["spec"], "tolerations": [{"key": "x", "operator": "Exists"}], "hostNetwork": True}
    made = create(api, "Job", {"spec": {"tasks": [{"template": {"metadata": {"labels": {"a": "b"}}, "spec": spec}}]}})
    assert made["spec"]["tasks"][0]["template"] == {"metadata": {"labels": {"a": "b"}}, "spec": spec}


@pytest.fixture
def job(api: Api) -> Iterator[Callable[[Body], Body]]:
    """Change a job that exists by a merge patch."""
    name = f"job-{next(_numbers)}"
    spec = {"queue": "default", "minAvailable": 1, "tasks": [{"name": "a", "replicas": 2, "template": pod()}]}
    body = {"apiVersion": KINDS["Job"][0], "kind": "Job", "metadata": {"name": name}, "spec": spec}
    api.call("POST", path("Job"), body=body)
    yield lambda change: api.call("PATCH", path("Job", name), body={"spec": change}, content_type=MERGE)
    api.delete(path("Job", name))


class TestUpdatesOfAJob:
    def test_what_may_change(self, job: Callable[[Body], Body]) -> None:
        job({"minAvailable": 2, "priorityClassName": "high", "ttlSecondsAfterFinished": 5})
        job({"tasks": [{"name": "a", "replicas": 5, "minAvailable": 1, "template": pod()}]})

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            ({"queue": "other"}, "spec.queue: cannot be changed"),
            ({"schedulerName": "other"}, "spec.schedulerName: cannot be changed"),
            ({"policies": [{"event": "PodFailed", "action": "AbortJob"}]}, "spec.policies: cannot be changed"),
            ({"tasks": [{"name": "a", "replicas": 2, "template": pod("other")}]}, "only replicas and minAvailable"),
            (
                {"tasks": [{"name": n, "replicas": 2, "template": pod()} for n in "ab"]},
                "1 tasks cannot become 2",
            ),
        ],
    )
    def test_what_may_not(self, job: Callable[[Body], Body], change: Body, says: str) -> None:
        with pytest.raises(RejectedError, match=says.replace("[", r"\[")):
            job(change)


@pytest.mark.parametrize("name", ["root", "default"])
def test_the_queues_that_others_need_cannot_be_deleted(api: Api, name: str) -> None:
    body = {"apiVersion": KINDS["Queue"][0], "kind": "Queue", "metadata": {"name": name}, "spec": {}}
    api.call("PATCH", path("Queue", name), body=body, query={"fieldManager": "test"}, content_type=APPLY)
    with pytest.raises(RejectedError, match=f"the queue {name} cannot be deleted"):
        api.delete(path("Queue", name))


@pytest.mark.parametrize(
    ("kind", "columns", "wide"),
    [
        ("PodGroup", ["Name", "STATUS", "minMember", "RUNNINGS", "AGE"], ["QUEUE"]),
        ("Job", ["Name", "STATUS", "minAvailable", "RUNNINGS", "AGE"], ["QUEUE"]),
        ("PyTorchJob", ["Name", "State", "Age"], []),
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
def test_short_names_are_volcanos(api: Api, kind: str, names: list[str]) -> None:
    definition = api.call("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{_definition(kind)}")
    assert definition["status"]["acceptedNames"]["shortNames"] == names


def test_every_definition_has_a_structural_schema(api: Api) -> None:
    for kind in KINDS:
        definition = api.call("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{_definition(kind)}")
        wrong = [c for c in definition["status"]["conditions"] if c["type"] == "NonStructuralSchema"]
        assert not wrong, wrong


def test_the_scheduler_and_the_queue_controller_keep_their_own_fields_of_a_queue(api: Api) -> None:
    name = f"shared-{next(_numbers)}"
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
