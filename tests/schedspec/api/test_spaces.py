"""Names of objects in further namespaces of a scenario: both directions agree, and nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.api import spaces
from schedspec.api.kinds import Kind, Ref

LABELS = st.from_regex(r"[a-z]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)


@given(namespace=LABELS, space=LABELS, name=LABELS)
def test_the_real_place_of_a_plain_name_is_where_the_object_is(namespace: str, space: str, name: str) -> None:
    real, own = spaces.real(namespace, f"{space}/{name}")
    obj = {"metadata": {"name": own, "namespace": real}}
    assert spaces.space_of(namespace, real) == space
    seen = spaces.plain(obj, namespace, space)["metadata"]
    assert (seen["namespace"], seen["name"]) == (namespace, f"{space}/{name}")


@given(namespace=LABELS, name=LABELS)
def test_a_name_without_a_namespace_is_in_the_scenarios_own(namespace: str, name: str) -> None:
    assert spaces.real(namespace, name) == (namespace, name)
    assert spaces.space_of(namespace, namespace) == ""


@pytest.mark.parametrize(
    ("ref", "path"),
    [
        (Ref(Kind.POD, "red/p", "spec-1"), "/api/v1/namespaces/spec-1-red/pods/p/binding"),
        (Ref(Kind.POD, "p", "spec-1"), "/api/v1/namespaces/spec-1/pods/p/binding"),
        (Ref(Kind.NODE, "n"), "/api/v1/nodes/n/binding"),
    ],
)
def test_a_path_names_the_real_place(ref: Ref, path: str) -> None:
    assert ref.path("binding") == path


POD: dict[str, Any] = {
    "metadata": {
        "name": "train-0",
        "namespace": "spec-1-red",
        "labels": {"schedspec.dev/workload": "train", "app": "train"},
        "annotations": {"scheduling.k8s.io/group-name": "train-1"},
        "ownerReferences": [{"kind": "Job", "name": "train"}],
    },
    "spec": {"schedulingGroup": {"podGroupName": "train"}, "containers": [{"name": "train"}]},
    "status": {"conditions": [{"message": "reclaimed for spec-1-red/other, not for spec-1/train"}]},
}


def test_names_in_metadata_and_status_are_those_of_the_scenario() -> None:
    seen = spaces.plain(POD, "spec-1", "red")
    meta = seen["metadata"]
    assert meta["labels"] == {"schedspec.dev/workload": "red/train", "app": "train"}
    assert meta["annotations"] == {"scheduling.k8s.io/group-name": "red/train-1"}
    assert meta["ownerReferences"] == [{"kind": "Job", "name": "red/train"}]
    assert seen["spec"] == {"schedulingGroup": {"podGroupName": "red/train"}, "containers": [{"name": "train"}]}
    assert seen["status"]["conditions"] == [{"message": "reclaimed for spec-1/red/other, not for spec-1/train"}]
    assert POD["metadata"]["name"] == "train-0"
