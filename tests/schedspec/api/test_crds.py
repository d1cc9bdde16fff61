"""Definitions on a shared cluster: existing ones are not changed, those of a run are removed unless others use them."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from schedspec.api.client import Api
from schedspec.api.crds import install, remove
from tests.support.memory_api import MemoryApi

LABEL = "example.org/ours"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rings.example.org"
POLICY = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/rings"
RING = "/apis/example.org/v1/rings/theirs"


class Server(MemoryApi):
    """Fake API server on which definitions are Established at once."""

    def _store(self, path: str, obj: dict[str, Any]) -> dict[str, Any]:
        stored = super()._store(path, obj)
        if "customresourcedefinitions" in path:
            since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            stored["status"] = {"conditions": [{"type": "Established", "status": "True", "lastTransitionTime": since}]}
        return stored


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    names = {"kind": "Ring", "plural": "rings"}
    crd = {"spec": {"group": "example.org", "versions": [{"name": "v1"}], "names": names}}
    crd |= {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    policy: dict[str, Any] = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
    policy |= {"spec": {"matchConstraints": {"resourceRules": []}}}
    documents = [crd | {"metadata": {"name": "rings.example.org"}}, policy | {"metadata": {"name": "rings"}}]
    (tmp_path / "ring.yaml").write_text(yaml.safe_dump_all(documents))
    return tmp_path


def test_new_objects_get_the_label_and_are_removed(folder: Path) -> None:
    api = Server()
    assert abs(install(cast("Api", api), folder, LABEL) - time.time()) < 60
    assert all(LABEL in obj["metadata"]["labels"] for obj in api.objects.values())
    selector = api.objects[POLICY]["spec"]["matchConstraints"]["objectSelector"]
    assert selector == {"matchExpressions": [{"key": LABEL, "operator": "Exists"}]}
    assert remove(cast("Api", api), folder, LABEL) == []
    assert api.objects == {}
    assert api.writes[-2:] == [("DELETE", POLICY), ("DELETE", CRD)], (
        "policies are deleted first, because they could refuse deletions"
    )


def test_existing_objects_are_not_changed(folder: Path) -> None:
    api = Server((CRD, {"spec": {"theirs": 1}}), (POLICY, {"spec": {"theirs": 1}}))
    install(cast("Api", api), folder, LABEL)
    assert remove(cast("Api", api), folder, LABEL) == []
    assert api.writes == []
    assert [obj["spec"] for obj in api.objects.values()] == [{"theirs": 1}] * 2


def test_objects_of_a_killed_run_are_applied_again(folder: Path) -> None:
    api = Server((POLICY, {"metadata": {"labels": {LABEL: "run"}}, "spec": {"old": 1}}))
    install(cast("Api", api), folder, LABEL)
    assert "matchConstraints" in api.objects[POLICY]["spec"]
    assert remove(cast("Api", api), folder, LABEL) == []


def test_a_definition_that_foreign_objects_use_is_kept_and_named(folder: Path) -> None:
    api = Server()
    install(cast("Api", api), folder, LABEL)
    api.call("POST", "/apis/example.org/v1/rings", body={"metadata": {"name": "theirs"}})
    assert remove(cast("Api", api), folder, LABEL) == ["rings.example.org (used by theirs)"]
    assert api.objects.keys() == {CRD, RING}


def test_on_our_own_cluster_everything_is_applied_unchanged(folder: Path) -> None:
    api = Server((CRD, {"spec": {"old": 1}}))
    install(cast("Api", api), folder)
    assert api.objects[CRD]["spec"]["group"] == "example.org"
    assert "labels" not in api.objects[POLICY]["metadata"]
