"""Versions are read in the order of the API server's writes, whichever watch was faster, and restart after a gap."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from schedspec.api.kinds import Kind, Ref
from schedspec.lab.recorder.versions import ORDERED, VersionReader
from schedspec.observe.history import Object, Version
from schedspec.scheduler.inputs import Gap, Input, Noted, ObjectGone, ObjectSeen, Passed, PolicyLoaded, Started, Taken
from schedspec.scheduler.model.objects import Node, ObjectMeta, Pod, PodSpec
from schedspec.schedulers import Adapter


class Seen:
    """Keeps what it reads."""

    def __init__(self) -> None:
        self.versions: list[Version] = []
        self.restarts: list[tuple[float, str, list[str]]] = []
        self.passed = 0.0

    def restart(self, at: float, adapter: Adapter, policy: str, live: Mapping[Ref, Object], gap: Gap | None) -> None:
        self.restarts.append((at, adapter.name, sorted(ref.name for ref in live)))

    def read(self, version: Version) -> None:
        self.versions.append(version)

    def pass_time(self, at: float) -> None:
        self.passed = at

    @property
    def written(self) -> list[int]:
        return [int(version.object["metadata"]["resourceVersion"]) for version in self.versions]

    @property
    def changes(self) -> list[tuple[str, str]]:
        return [(version.change, version.ref.name) for version in self.versions]


def node(name: str, version: int) -> ObjectSeen:
    return ObjectSeen("Node", Node(ObjectMeta(name=name, uid=name, resource_version=str(version))))


def pod(name: str, version: int, uid: str = "", **spec: str) -> ObjectSeen:
    meta = ObjectMeta(name=name, namespace="ns", uid=uid or name, resource_version=str(version))
    meta.annotations = {"scheduling.k8s.io/group-name": "g"}
    return ObjectSeen("Pod", Pod(meta, PodSpec(**spec)))


def checkpoint(*objects: Input) -> list[Input]:
    return [Started(2, [], {}), PolicyLoaded("", "one"), *objects, Taken(0.0)]


def read(*inputs: tuple[float, Input]) -> Seen:
    seen = Seen()
    VersionReader(seen).read_all([(0.0, each) for each in checkpoint(node("n", 1))] + [*inputs])
    return seen


@given(
    st.lists(st.tuples(st.integers(2, 60), st.floats(0.0, ORDERED * 0.9)), unique_by=lambda pair: pair[0], max_size=20)
)
def test_versions_that_overtake_each_other_are_read_as_they_were_written(delays: list[tuple[int, float]]) -> None:
    arrivals = sorted((10.0 + number * 0.2 + delay, number) for number, delay in delays)
    seen = read(*((at, node(f"n{number}", number)) for at, number in arrivals))
    assert seen.written == sorted(number for number, _ in delays)


def test_a_version_is_passed_on_once_no_earlier_one_is_awaited() -> None:
    seen = Seen()
    reader = VersionReader(seen)
    for each in checkpoint():
        reader.read(0.0, each)
    reader.read(1.0, node("n", 5))
    reader.read(1.0 + ORDERED * 0.9, Passed(0.0))
    assert seen.changes == []
    reader.read(1.1 + ORDERED, Passed(0.0))
    assert seen.changes == [("added", "n")]
    assert seen.passed <= 1.1


def test_a_deletion_has_the_last_version_and_a_successor_is_another_object() -> None:
    seen = read(
        (1.0, pod("p", 2)), (2.0, pod("p", 3)), (2.0, ObjectGone("Pod", "ns/p", "p")), (3.0, pod("p", 4, "other"))
    )
    assert seen.changes == [("added", "p"), ("changed", "p"), ("gone", "p"), ("added", "p")]
    assert seen.written == [2, 3, 3, 4]


def test_a_successor_that_a_new_list_shows_ends_the_object_before_it() -> None:
    seen = read((1.0, pod("p", 2)), (2.0, pod("p", 9, "other")))
    assert seen.changes == [("added", "p"), ("gone", "p"), ("added", "p")]


def test_a_gap_of_a_kind_restarts_after_its_new_list() -> None:
    gap = Gap("pods", 1.0, 5.0, "expired")
    seen = read(
        (1.0, pod("a", 2)), (5.0, gap), (5.0, pod("b", 8)), (5.0, ObjectGone("Pod", "ns/a", "a")), (9.0, pod("c", 9))
    )
    assert seen.changes == [("added", "a"), ("added", "c")]
    assert [live for _, _, live in seen.restarts] == [["n"], ["b", "n"]]


def test_a_gap_of_a_kind_that_decides_nothing_restarts_nothing() -> None:
    seen = read((5.0, Gap("events", 1.0, 5.0, "expired")), (5.0, pod("b", 8)))
    assert len(seen.restarts) == 1
    assert seen.changes == [("added", "b")]


def test_a_checkpoint_after_a_gap_shows_no_changes() -> None:
    gap = Gap("", 1.0, 5.0, "killed")
    later = [(5.0, each) for each in (gap, *checkpoint(node("n", 3), pod("b", 8)))]
    seen = read((1.0, pod("a", 2)), *later, (9.0, pod("b", 9)))
    assert seen.changes == [("added", "a"), ("changed", "b")]
    assert seen.restarts[-1][2] == ["b", "n"]


def test_another_policy_restarts_and_the_same_does_not() -> None:
    seen = read((1.0, pod("a", 2)), (2.0, PolicyLoaded("", "one")), (3.0, PolicyLoaded("", "two")))
    assert len(seen.restarts) == 2
    assert seen.changes == [("added", "a")]


def test_the_scheduler_is_that_of_the_objects_even_if_they_come_later() -> None:
    assert read().restarts[0][1] == "kube-scheduler"
    seen = read((1.0, pod("p", 2, scheduler_name="volcano")))
    assert [name for _, name, _ in seen.restarts] == ["kube-scheduler", "volcano"]
    workload = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload"}
    meta = {"name": "w", "namespace": "ns", "uid": "w", "resourceVersion": "3"}
    seen = read((1.0, Noted({**workload, "metadata": meta, "spec": {}})))
    assert [name for _, name, _ in seen.restarts] == ["kube-scheduler", "kueue"]
    assert [version.ref.kind for version in seen.versions] == [Kind.WORKLOAD]


def test_an_event_is_read_at_once_whatever_its_number() -> None:
    event = Noted({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "ns", "uid": "e"}})
    seen = read((1.0, pod("a", 200)), (1.0, event))
    assert [version.ref.name for version in seen.versions] == ["e", "a"]
