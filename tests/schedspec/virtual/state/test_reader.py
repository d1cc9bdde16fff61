"""A state is read from every format; the error about an invalid file names the problem."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from schedspec.scheduler.core import Core
from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.inputs import (
    Assumed,
    Decided,
    ObjectGone,
    ObjectSeen,
    PolicyLoaded,
    Started,
    apply_input,
    write_line,
)
from schedspec.scheduler.model import objects
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.recording.segments import SegmentWriter
from schedspec.virtual.state import (
    At,
    CutStateError,
    ForeignStateError,
    OtherVersionError,
    State,
    StateError,
    TooLargeError,
    TooOldError,
    listed,
    read_state,
)
from schedspec.virtual.state.dump import write_state
from tests.support.core.notation import EPOCH, Notation
from tests.support.core.states import state_of

TABLE = {
    "policy": 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}]\n',
    "nodes": [{"name": "n[1-2]", "has": "8 cpu"}],
    "queues": [{"name": "a"}],
    "jobs": [
        {"name": "old", "queue": "a", "tasks": "2 x 1 cpu running on n1"},
        {"name": "new", "queue": "a", "tasks": "1 x 4 cpu"},
    ],
}
VERSIONS = {"Queue": "scheduling.volcano.sh/v1beta1", "PodGroup": "scheduling.volcano.sh/v1beta1",
            "PriorityClass": "scheduling.k8s.io/v1"}  # fmt: skip


def items() -> list[dict[str, Any]]:
    return [{"apiVersion": VERSIONS.get(kind, "v1"), "kind": kind, **item} for kind, item in Notation().objects(TABLE)]


def listing(path: Path, more: tuple[dict[str, Any], ...] = (), **meta: Any) -> Path:
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*items(), *more], "metadata": meta}))
    return path


def dump(path: Path) -> Path:
    write_state(state_of(TABLE), path)
    return path


def recording(path: Path, *later: Any) -> Path:
    """Write a recording of the table, with one cycle and these inputs after it."""
    state = state_of(TABLE)
    core, writer = Core(Cluster()), SegmentWriter(path)
    for given in state.inputs():
        apply_input(core, given)
    writer.checkpoint(core.cluster, PolicyLoaded("p", TABLE["policy"]))  # type: ignore[arg-type]
    for given in (Decided(1, EPOCH + 60.0, Decisions()), *later):
        writer.write(given)
    writer.close()
    return path


def counts(state: State) -> dict[str, int]:
    return {kind: len(found) for kind, found in state.objects.items() if found}


DEEP = b'{"metadata": ' * 5000 + b"{}" + b"}" * 5000
WHOLE = {"Node": 2, "Queue": 1, "PodGroup": 2, "Pod": 3}


@pytest.mark.parametrize(
    "written",
    [
        lambda folder: listing(folder / "list.json"),
        lambda folder: dump(folder / "state.jsonl.gz"),
        lambda folder: dump(folder / "in" / "state.jsonl.gz").parent,
        lambda folder: recording(folder / "dump"),
    ],
    ids=["list", "dump", "folder with a dump", "recording"],
)
def test_a_state_is_read_from_every_format(tmp_path: Path, written: Callable[[Path], Path]) -> None:
    state = read_state(written(tmp_path))
    found = {kind: number for kind, number in counts(state).items() if kind in WHOLE}
    assert found == WHOLE
    assert [len(pods) for pods in state.of_job().values()] == [1, 2]


def test_lists_in_a_folder_are_one_state(tmp_path: Path) -> None:
    for number, item in enumerate(items()):
        (tmp_path / f"{number}.yaml").write_text(yaml.safe_dump(item))
    assert {kind: number for kind, number in counts(read_state(tmp_path)).items() if kind in WHOLE} == WHOLE


def test_writing_and_reading_a_state_does_not_change_it(tmp_path: Path) -> None:
    state = state_of(TABLE)
    write_state(state, tmp_path / "state.jsonl.gz")
    again = read_state(tmp_path / "state.jsonl.gz")
    assert (again.digest, again.taken, again.is_exact) == (state.digest, state.taken, True)
    assert (tmp_path / "state.jsonl.gz").stat().st_mode & 0o077 == 0


def test_the_policy_of_volcano_is_read_from_its_config_map(tmp_path: Path) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"},
              "data": {"volcano-scheduler.conf": TABLE["policy"]}}  # fmt: skip
    policy = read_state(listing(tmp_path / "list.json", (config,))).policy
    assert policy is not None
    assert "allocate" in policy.text


def test_objects_that_influence_no_decision_are_counted(tmp_path: Path) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    assert read_state(listing(tmp_path / "list.json", (secret,))).left_out == {"Secret": 1}


def test_a_recording_has_a_state_at_its_checkpoint_and_one_at_its_end(tmp_path: Path) -> None:
    old = state_of(TABLE).objects["Pod"]["t/old-0"]
    node = Notation().objects({"nodes": [{"name": "n9", "has": "1 cpu"}], "policy": ""})
    later = [
        ObjectSeen("Node", msgspec.convert(next(iter(node))[1], objects.Node)),
        ObjectGone("Pod", "t/old-0", old.metadata.uid),
        Assumed("t/new-0", state_of(TABLE).objects["Pod"]["t/new-0"].metadata.uid, "n2"),
        Decided(2, EPOCH + 120.0, Decisions()),
    ]
    path = recording(tmp_path / "recording", *later)
    begun, ended = read_state(path, At.CHECKPOINT), read_state(path, At.END)
    assert (begun.taken - EPOCH, ended.taken - EPOCH) == (60, 120)
    assert (len(begun.objects["Node"]), len(ended.objects["Node"])) == (2, 3)
    assert [len(it.objects["Pod"]) for it in (begun, ended)] == [3, 2]
    assert ended.objects["Pod"]["t/new-0"].spec.node_name == "n2"


# -------------------------------------------------------------------------------------------------------------- errors


def refused(error: type[StateError], path: Path) -> str:
    with pytest.raises(error) as raised:
        read_state(path)
    assert raised.value.remedy
    assert str(path) in str(raised.value)
    return str(raised.value)


def cut(path: Path, share: float) -> Path:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    return path


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_a_cut_dump_is_reported_as_cut(tmp_path: Path, share: float) -> None:
    refused(CutStateError, cut(dump(tmp_path / "state.jsonl.gz"), share))


def test_a_cut_list_is_reported_as_cut(tmp_path: Path) -> None:
    refused(CutStateError, cut(listing(tmp_path / "list.json"), 0.7))


def test_one_page_of_a_list_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    listing(path)
    path.write_text(path.read_text().replace('"metadata": {}}', '"metadata": {"continue": "xyz"}}'))
    assert "one page" in refused(CutStateError, path)


def test_the_error_about_a_dump_of_another_version_names_the_version(tmp_path: Path) -> None:
    path = tmp_path / "state.jsonl.gz"
    path.write_bytes(gzip.compress(write_line(Started(1, [], {})) + b"\n"))
    assert "version 1" in refused(OtherVersionError, path)


def test_the_error_about_a_cluster_of_kueue_names_its_objects(tmp_path: Path) -> None:
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "team"}}
    path = tmp_path / "list.json"
    nodes = [it for it in items() if it["kind"] == "Node"]
    path.write_text(json.dumps({"kind": "List", "items": [*nodes, queue]}))
    assert "ClusterQueue" in refused(ForeignStateError, path)


def test_a_note_names_kueues_objects_if_kueue_decides_in_part(tmp_path: Path) -> None:
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "team"}}
    notes = read_state(listing(tmp_path / "list.json", (queue,))).notes
    assert any(note.startswith("Kueue decides here too (ClusterQueue)") for note in notes)


def test_the_error_about_an_old_state_names_its_age() -> None:
    state = state_of(TABLE)
    state.check_age(state.taken + 86400, 2 * 86400)
    undated = State("list.json")
    with pytest.raises(TooOldError, match="none of its objects has a creationTimestamp"):
        undated.check_age(86400 * 365 * 50, 86400)
    with pytest.raises(TooOldError, match="3 d ago") as raised:
        state.check_age(state.taken + 3 * 86400, 2 * 86400)
    assert "--max-age 4d" in raised.value.remedy


def test_a_huge_list_is_rejected_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed, "MAX_BYTES", 1000)
    refused(TooLargeError, listing(tmp_path / "list.json"))


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("list.json", b"", "is empty"),
        ("list.json", b"[]", "is not a list of objects"),
        ("list.json", b"no json", "is not JSON"),
        ("list.json", b'{"kind": "List", "items": []}', "has no Node"),
        ("state.jsonl.gz", gzip.compress(b"hello\n", mtime=0), "is not JSON"),
        ("state.yaml", b"a: [", "not YAML"),
        ("state.yaml", b"kind: List\nx: \x01", "state.yaml:2: not YAML: character #x0001"),
        ("list.json", b'{"kind": "List", "items": [1]}', "list.json, item 0: is not an object: Expected `object`"),
        ("list.json", b'{"kind": "List", "items": [{"kind": "\xff"}]}', "list.json, item 0: is not an object"),
        ("list.json", b'{"items": [{"kind": "ConfigMap", "data": {"a.conf": ""}, "x": "\xff"}]}', "has no Node"),
        ("list.json", DEEP, "list.json: is nested too deeply"),
        ("list.json", b'{"items": [{"metadata": ' + DEEP + b"}]}", "list.json: is nested too deeply"),
        ("state.yaml", b"kind: 1", "state.yaml:1: is not an object: Expected `str`"),
        ("state.yaml", b"kind: Node\n? null\n: 1", "state.yaml:1: is not an object: Only dicts"),
        ("state.yaml", DEEP, "state.yaml:1: nested too deep"),
        ("state.yaml", b"kind: &a\n  b: *a", "state.yaml:2: the alias a contains itself"),
    ],
)
def test_the_error_about_a_file_without_a_state_names_the_problem(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert problem in refused(StateError, path)


def test_errors_name_an_invalid_object_or_a_missing_file(tmp_path: Path) -> None:
    bad = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "odd"}, "status": {"allocatable": {"cpu": "x"}}}
    assert "Node odd" in refused(StateError, listing(tmp_path / "list.json", (bad,)))
    assert "does not exist" in refused(StateError, tmp_path / "nothing")


OWNER = [{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": "j", "controller": True}]


@pytest.mark.parametrize("phase", ["", "Pending", "Inqueue", "Running", "Completed", "Unknown"])
@pytest.mark.parametrize("owner", [OWNER, []])
@pytest.mark.parametrize(
    ("spec", "pods"),
    [
        ({"minMember": 2, "minResources": {"cpu": "3"}}, {"train-task-0": "1.5", "train-task-1": "1.5"}),
        (
            {"minMember": 3, "minTaskMember": {"a": 1, "b": 2}, "minResources": {"cpu": "4"}},
            {"train-a-0": "1334m", "train-b-1": "1334m", "train-b-2": "1334m"},
        ),
        ({"minMember": 2, "minTaskMember": {"a": 1}}, {"train-a-0": "", "train-task-1": ""}),
    ],
)
def test_a_job_whose_pods_do_not_exist_yet_gets_them(
    tmp_path: Path, phase: str, owner: list[Any], spec: dict[str, Any], pods: dict[str, str]
) -> None:
    group = {
        "apiVersion": VERSIONS["PodGroup"],
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "t", "uid": "g", "ownerReferences": owner},
        "spec": {**spec, "queue": "a"},
        "status": {"phase": phase},
    }
    found = read_state(_list(tmp_path, [*items(), group]))
    made = {
        pod.metadata.name: (pod.spec.containers[0].resources.requests or {}).get("cpu", "")
        for pod in found.of_job()["t/g"]
    }
    awaits = bool(owner) and phase in ("", "Pending", "Inqueue")
    assert made == (pods if awaits else {})
    assert any("had no pods yet" in note for note in found.notes) == awaits


def test_the_pods_of_a_job_without_pods_have_the_default_priority(tmp_path: Path) -> None:
    owner = [{"kind": "Job", "name": "train", "uid": "1", "apiVersion": "v", "controller": True}]
    group = {
        "apiVersion": VERSIONS["PodGroup"],
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "t", "uid": "g", "ownerReferences": owner},
        "spec": {"minMember": 1, "queue": "a"},
        "status": {"phase": "Pending"},
    }
    usual = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "usual"}, "value": 70}
    found = read_state(_list(tmp_path, [*items(), group, {**usual, "globalDefault": True}]))
    assert [pod.spec.priority for pod in found.of_job()["t/g"]] == [70]


def _list(folder: Path, found: list[dict[str, Any]]) -> Path:
    path = folder / "list.json"
    path.write_text(json.dumps({"kind": "List", "items": found}))
    return path


def test_a_list_that_unpacks_to_far_more_than_its_size_is_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "list.json.gz"
    bomb.write_bytes(gzip.compress(b" " * (64 << 20), 9))
    with pytest.raises(TooLargeError, match="unpacks to more than"):
        read_state(bomb)


_CONTAINERS = [{"name": "c", "resources": {"requests": {"cpu": "2 cores"}}}]
_AMOUNTS = {
    "what a node has": ("v1", "Node", {"status": {"allocatable": {"cpu": "2 cores"}}}),
    "a pod's request": ("v1", "Pod", {"spec": {"containers": _CONTAINERS}}),
    "an init container's request": ("v1", "Pod", {"spec": {"containers": [], "initContainers": _CONTAINERS}}),
    "a pod's overhead": ("v1", "Pod", {"spec": {"containers": [], "overhead": {"cpu": "2 cores"}}}),
    **{
        f"a queue's {field}": ("scheduling.volcano.sh/v1beta1", "Queue", {"spec": {field: amount}})
        for field, amount in (
            ("deserved", {"cpu": "2 cores"}),
            ("capability", {"cpu": "2 cores"}),
            ("guarantee", {"resource": {"cpu": "2 cores"}}),
        )
    },
    "a group's minimum": ("scheduling.volcano.sh/v1beta1", "PodGroup", {"spec": {"minResources": {"cpu": "2 cores"}}}),
}


@pytest.mark.parametrize("what", _AMOUNTS)
def test_an_amount_of_a_list_that_is_none_is_refused_with_its_object(tmp_path: Path, what: str) -> None:
    version, kind, parts = _AMOUNTS[what]
    item = {"apiVersion": version, "kind": kind, "metadata": {"name": "it", "namespace": "team"}, **parts}
    (path := tmp_path / "list.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [item]}))
    with pytest.raises(StateError, match=f"item 0: {kind} it: .*'2 cores' is not a quantity"):
        read_state(path)
