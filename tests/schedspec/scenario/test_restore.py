"""Foreign objects that a scenario changed are restored: by the scenario, or by the next run if this run was killed."""

from __future__ import annotations

import copy
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.api.client import MERGE, Api
from schedspec.api.kinds import Kind, Ref
from schedspec.scenario.cleanup import sweep
from schedspec.scenario.restore import WAS, at, borrow, restore_fields
from tests.support.memory_api import MemoryApi, merged

DEFAULT, NODE = Ref(Kind.QUEUE, "default"), Ref(Kind.NODE, "real")
QUEUE = {"metadata": {"labels": {"a": "1"}}, "spec": {"weight": 1, "capability": {"cpu": 4}}}
REAL = {
    "metadata": {"labels": {"kubernetes.io/os": "linux"}, "annotations": {"other": "x"}},
    "spec": {"taints": [{"key": "soft", "effect": "PreferNoSchedule"}]},
    "status": {"allocatable": {"cpu": "8"}},
}

_keys = st.sampled_from("abc")
_leaves = st.none() | st.integers(0, 3) | st.lists(st.integers(0, 3), max_size=2)
_patches = st.recursive(_leaves, lambda inner: st.dictionaries(_keys, inner, max_size=3), max_leaves=6)
_objects = st.dictionaries(_keys, _patches, max_size=3).map(lambda patch: merged({}, patch))


def changed(api: MemoryApi, ref: Ref, change: dict[str, Any], subresource: str = "") -> None:
    """Change a foreign object as a scenario does."""
    borrow(cast("Api", api), ref, copy.deepcopy(api.objects[ref.path()]), change, subresource)
    api.call("PATCH", ref.path(subresource), body=change, content_type=MERGE)


def without_version(obj: dict[str, Any]) -> dict[str, Any]:
    meta = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion" and value != {}}
    return {**obj, "metadata": meta}


@given(before=_objects, changes=st.lists(st.dictionaries(_keys, _patches, max_size=3), min_size=1, max_size=4))
def test_any_number_of_changes_is_reverted(before: dict[str, Any], changes: list[dict[str, Any]]) -> None:
    api = MemoryApi((NODE.path(), {**before, "metadata": {"annotations": {"x": "y"}}}))
    was = without_version(api.objects[NODE.path()])
    for change in changes:
        changed(api, NODE, change)
    assert restore_fields(cast("Api", api), NODE)
    assert without_version(api.objects[NODE.path()]) == was
    assert not restore_fields(cast("Api", api), NODE)


def test_labels_taints_and_amounts_of_a_node_are_restored() -> None:
    api = MemoryApi((NODE.path(), REAL))
    was = without_version(api.objects[NODE.path()])
    changed(api, NODE, {"metadata": {"labels": {"w": "true"}}, "spec": {"taints": [{"key": "t"}]}})
    changed(api, NODE, {"status": {"allocatable": {"cpu": "1", "x": "2"}}}, "status")
    changed(api, NODE, {"metadata": {"labels": {"kubernetes.io/os": "other"}}})
    assert without_version(api.objects[NODE.path()])["spec"] == {"taints": [{"key": "t"}]}
    assert sweep(cast("Api", api))  # the run after a killed run
    assert without_version(api.objects[NODE.path()]) == was
    assert not sweep(cast("Api", api))


def test_changes_by_other_users_are_kept() -> None:
    api = MemoryApi((NODE.path(), REAL))
    changed(api, NODE, {"metadata": {"labels": {"w": "true"}}})
    api.call("PATCH", NODE.path(), body={"metadata": {"labels": {"foreign": "1"}}}, content_type=MERGE)
    restore_fields(cast("Api", api), NODE)
    assert api.objects[NODE.path()]["metadata"]["labels"] == {"kubernetes.io/os": "linux", "foreign": "1"}
    assert WAS not in api.objects[NODE.path()]["metadata"]["annotations"]


def test_the_run_after_a_killed_run_restores_a_queue() -> None:
    api = MemoryApi((DEFAULT.path(), QUEUE))
    changed(api, DEFAULT, {"spec": {"weight": 7, "reclaimable": False}, "metadata": {"labels": {"b": "2"}}})
    assert sweep(cast("Api", api))
    assert api.objects[DEFAULT.path()]["spec"] == QUEUE["spec"]


@pytest.mark.parametrize(
    ("pointer", "value", "after"),
    [
        ("/spec/capability", {"memory": 2}, {"weight": 1, "capability": {"memory": 2}}),
        ("/spec/weight", 3, {"weight": 3, "capability": {"cpu": 4}}),
        ("/spec/new", {"x": 1}, {"weight": 1, "capability": {"cpu": 4}, "new": {"x": 1}}),
    ],
)
def test_a_replaced_field_is_restored_as_a_whole(pointer: str, value: object, after: dict[str, Any]) -> None:
    api = MemoryApi((DEFAULT.path(), QUEUE))
    changed(api, DEFAULT, at(pointer, value, QUEUE))
    assert api.objects[DEFAULT.path()]["spec"] == after
    assert restore_fields(cast("Api", api), DEFAULT)
    assert api.objects[DEFAULT.path()]["spec"] == QUEUE["spec"]
