"""What a twin writes into etcd: the objects of a state as the API server serves them, at the time of the twin."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedspec.api.client import Api
from schedspec.api.errors import ClusterUnreachableError, RejectedError
from schedspec.api.kinds import SERVED, WORLD, Kind, Resource
from schedspec.lab.twin import etcd
from schedspec.lab.twin.world import objects_of
from schedspec.scheduler.model.state_kinds import STATE_KINDS
from tests.support.core.random_tables import random_table
from tests.support.core.states import state_of
from tests.support.kueue_state import workload

KEYS = {
    Kind.POD: "/registry/pods/ns/x",
    Kind.NODE: "/registry/minions/x",
    Kind.PRIORITYCLASS: "/registry/priorityclasses/x",
    Kind.DEPLOYMENT: "/registry/deployments/ns/x",
    Kind.QUEUE: "/registry/scheduling.volcano.sh/queues/x",
    Kind.PODGROUP: "/registry/scheduling.volcano.sh/podgroups/ns/x",
    Kind.VCJOB: "/registry/batch.volcano.sh/jobs/ns/x",
    Kind.HYPERNODE: "/registry/topology.volcano.sh/hypernodes/x",
    Kind.WORKLOAD: "/registry/kueue.x-k8s.io/workloads/ns/x",
    Kind.CLUSTERQUEUE: "/registry/kueue.x-k8s.io/clusterqueues/x",
}


@pytest.mark.parametrize(("kind", "key"), KEYS.items())
def test_a_kind_has_the_key_under_which_an_api_server_reads_it(kind: Kind, key: str) -> None:
    assert etcd.key_of(SERVED[kind], "x", "ns") == key


@given(sizes=st.lists(st.integers(1, 3 * etcd.MOST_BYTES // 2), max_size=300))
@settings(max_examples=50)
def test_no_transaction_exceeds_what_etcd_accepts_unless_one_object_does(sizes: list[int]) -> None:
    rows = [(f"/k{number}", bytes(size)) for number, size in enumerate(sizes)]
    batches = [*etcd._batches(iter(rows))]
    assert [row for batch in batches for row in batch] == rows
    for batch in batches:
        assert len(batch) <= etcd.MOST_OBJECTS
        assert len(batch) == 1 or sum(len(value) for _, value in batch) <= etcd.MOST_BYTES


class Lagging:
    """An API server whose cache shows these answers in turn: a uid, or None for no object."""

    def __init__(self, *answers: str | None) -> None:
        self.left = [*answers]

    def call(self, method: str, path: str, query: dict[str, str]) -> dict[str, Any]:
        assert (method, path, query) == ("GET", "/api/v1/namespaces/ns/pods/x", {"resourceVersion": "0"})
        uid = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        if uid is None:
            raise RejectedError("not found", 404, "NotFound")
        return {"metadata": {"uid": uid}}


@pytest.mark.parametrize("answers", [("new",), (None, "new"), (None, None, "new"), ("old", "new")])
def test_what_was_written_is_awaited_until_the_api_server_has_it(answers: tuple[str | None, ...]) -> None:
    api = Lagging(*answers)
    etcd.wait_until_served(cast(Api, api), SERVED[Kind.POD], WRITTEN, 10.0)
    assert api.left == ["new"]


@pytest.mark.parametrize("answer", [None, "old"])
def test_what_the_api_server_never_serves_is_an_error(answer: str | None) -> None:
    with pytest.raises(ClusterUnreachableError, match="does not serve /api/v1/namespaces/ns/pods/x"):
        etcd.wait_until_served(cast(Api, Lagging(answer)), SERVED[Kind.POD], WRITTEN, 0.1)


@pytest.mark.parametrize("leaving", [(), ("b",), ("c",), ("b", "c"), ("a", "b", "c")])
def test_pods_that_end_in_a_twin_at_once_are_not_awaited(leaving: tuple[str, ...]) -> None:
    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ns"}} for name in "abc"]
    for pod in pods:
        if pod["metadata"]["name"] in leaving:
            pod["metadata"]["deletionTimestamp"] = "2026-11-20T10:00:00Z"
    api, order = Asked(), []
    database = etcd.Etcd("http://127.0.0.1:1", cast(Api, api))
    database._transact = lambda body: order.extend(map(_name, body["success"]))  # type: ignore[method-assign]
    assert database.load(pods) == 3
    staying = [name for name in "abc" if name not in leaving]
    assert order == [*leaving, *staying]
    assert api.asked == [f"/api/v1/namespaces/ns/pods/{name}" for name in staying[-1:]]


class Asked:
    """An API server that serves every pod."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def resource(self, api_version: str, kind: str) -> Resource:
        return SERVED[Kind.POD]

    def call(self, method: str, path: str, query: dict[str, str]) -> dict[str, Any]:
        self.asked.append(path)
        return {"metadata": {}}


def _name(operation: dict[str, Any]) -> str:
    return base64.b64decode(operation["requestPut"]["key"]).decode().rpartition("/")[2]


WRITTEN = {"metadata": {"name": "x", "namespace": "ns", "uid": "new"}}


@given(seed=st.integers(0, 10_000))
@settings(max_examples=30)
def test_an_object_is_read_back_as_it_was_but_for_what_a_twin_changes(seed: int) -> None:
    state = state_of(random_table(random.Random(seed)))
    written = {(obj["kind"], _key(obj)): obj for obj in objects_of(state, "schedspec", 0.0, 1.0)}
    for kind, found in state.objects.items():
        for key, item in found.items():
            back = msgspec.convert(written[kind, key], STATE_KINDS[kind].struct)
            if kind in ("Node", "Pod", "Namespace", "Queue"):
                assert (back.metadata.uid, back.metadata.name) == (item.metadata.uid, item.metadata.name)
                assert back.metadata.creation_timestamp == item.metadata.creation_timestamp
            else:
                assert _without_version(back) == _without_version(item)
    spaces = {obj["metadata"]["namespace"] for obj in written.values() if obj["metadata"].get("namespace")}
    assert {("Namespace", space) for space in spaces} <= written.keys()


def test_every_time_is_later_and_nothing_else_changes() -> None:
    state = state_of(TABLE)
    state.others["Workload"] = {"ns/w": workload("w", "q", 1, admitted=10)}
    now, later = (objects_of(state, "schedspec", shift, 1.0) for shift in (0.0, 86400.0))
    moved = [pair for one, other in zip(now, later, strict=True) for pair in _differences(one, other)]
    assert moved
    for before, after in moved:
        assert datetime.fromisoformat(after) - datetime.fromisoformat(before) == timedelta(days=1)


def test_pods_of_another_scheduler_keep_its_name_and_nodes_get_the_label_of_a_run() -> None:
    state = state_of(TABLE)
    for number, pod in enumerate(state.objects["Pod"].values()):
        pod.spec.scheduler_name = "volcano" if number else "other"
    found = [*objects_of(state, "schedspec", 0.0, 2.0, ["volcano"])]
    assert sorted({obj["spec"]["schedulerName"] for obj in found if obj["kind"] == "Pod"}) == ["other", "schedspec"]
    assert all(obj["metadata"]["labels"][WORLD] == "true" for obj in found if obj["kind"] == "Node")


def test_the_twin_of_another_scheduler_has_no_objects_of_kueue() -> None:
    state = state_of(TABLE)
    state.others["Workload"] = {"ns/w": workload("w", "q", 1)}
    for serves in (True, False):
        kinds = {obj["kind"] for obj in objects_of(state, "schedspec", 0.0, 1.0, serves_kueue=serves)}
        assert ("Workload" in kinds) is serves


TABLE: dict[str, Any] = {
    "policy": "capacity",
    "nodes": [{"name": "n[1-2]", "has": "16 cpu, 4 gpu"}],
    "queues": [{"name": "a", "deserved": "2 gpu"}],
    "jobs": [{"name": "low", "queue": "a", "min": 1, "tasks": "4 x 1 gpu running on n1"}],
}


def _differences(one: Any, other: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the values in which two objects of the same shape differ."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name, value in one.items():
            yield from _differences(value, other[name])
    elif isinstance(one, list):
        for pair in zip(one, other, strict=True):
            yield from _differences(*pair)
    elif one != other:
        yield one, other


def _key(obj: dict[str, Any]) -> str:
    meta = obj["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])


def _without_version(item: Any) -> Any:
    meta = msgspec.structs.replace(item.metadata, resource_version="")
    return msgspec.structs.replace(item, metadata=meta)
