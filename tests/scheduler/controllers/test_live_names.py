"""A controller never changes or deletes an object that does not carry its owner reference, whatever its name is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.controllers.live_controllers import LiveControllers, container, task, template, until

pytestmark = pytest.mark.embedded

SERVICE = {"ports": [{"port": 80}], "selector": {"app": "mine"}}
POLICY = {"podSelector": {}, "policyTypes": ["Ingress"]}
POD = {**template()["spec"], "schedulerName": "somebody"}
JOB = {"tasks": [task(1)], "plugins": {"svc": []}}
TORCH = {"pytorchReplicaSpecs": {"Master": {"template": {"spec": {"containers": [container("pytorch")]}}}}}
NAMES: list[tuple[str, dict[str, Any], str, str, dict[str, Any]]] = [
    ("Job", JOB, "Service", "app", {"spec": SERVICE}),
    ("Job", JOB, "ConfigMap", "app-svc", {"data": {"key": "value"}}),
    ("Job", JOB, "NetworkPolicy", "app", {"spec": POLICY}),
    ("Job", JOB, "Pod", "app-a-0", {"spec": POD}),
    ("PyTorchJob", TORCH, "Service", "app-master-0", {"spec": SERVICE}),
    ("PyTorchJob", TORCH, "Pod", "app-master-0", {"spec": POD}),
    ("PyTorchJob", TORCH, "PodGroup", "app", {"spec": {"minMember": 3}}),
]
OWNERS = ("no owner", "another owner")


def _state(body: dict[str, Any]) -> dict[str, Any]:
    """Return all parts of an object that a controller could have changed."""
    meta = {key: body["metadata"].get(key) for key in ("uid", "labels", "annotations", "ownerReferences")}
    return {**{key: value for key, value in body.items() if key != "status"}, "metadata": meta}


def _problem(place: LiveControllers, kind: str) -> str:
    """Return the reason in the job's status."""
    status = (place.get(kind, "app") or {}).get("status", {})
    found: str = (status.get("conditions") or [{}])[-1].get("reason", "")
    return found if kind == "PyTorchJob" else status.get("state", {}).get("reason", "")


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize(("kind", "spec", "taken", "name", "body"), NAMES, ids=lambda it: it if type(it) is str else "")
def test_an_object_of_another_owner_is_never_taken_over(
    place: LiveControllers, kind: str, spec: dict[str, Any], taken: str, name: str, body: dict[str, Any], owner: str
) -> None:
    holder = place.create("ConfigMap", "o")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": holder["metadata"]["uid"]}
    owners = [{**reference, "controller": True}] if owner == "another owner" else []
    before = place.create(taken, name, metadata={"ownerReferences": owners}, **body)
    place.create(kind, "app", spec)
    if taken == "Pod":
        until(lambda: len(place.all("PodGroup")) == 1, "its PodGroup")
        place.admit()
    until(lambda: _problem(place, kind) == "NameTaken", "the reason in the status")
    (message,) = until(lambda: place.events("NameTaken"), "an event")
    assert f"{taken} {name} exists and belongs to somebody else" in message
    place.delete(kind, "app")
    until(lambda: place.get(kind, "app") is None, "its deletion")
    assert _state(place.get(taken, name) or {}) == _state(before)


@pytest.mark.parametrize(("kind", "spec", "taken", "name", "body"), NAMES, ids=lambda it: it if type(it) is str else "")
def test_a_job_whose_name_was_taken_continues_when_the_name_is_free(
    place: LiveControllers, kind: str, spec: dict[str, Any], taken: str, name: str, body: dict[str, Any]
) -> None:
    place.create(taken, name, **body)
    place.create(kind, "app", spec)
    if taken == "Pod":
        place.admit()
    until(lambda: _problem(place, kind) == "NameTaken", "the reason in the status")
    place.delete(taken, name, grace=0)
    until(lambda: place.all("PodGroup"), "its PodGroup")
    place.run(1)
    until(lambda: _problem(place, kind) != "NameTaken", "the reason to be deleted")
    assert len(place.events("NameTaken")) == 1
