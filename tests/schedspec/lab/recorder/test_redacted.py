"""A redacted recording has no name of its cluster, shows the same incidents, and its table gives the names back."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.lab.recorder.judge import Finding, Judge
from schedspec.lab.recorder.versions import VersionReader
from schedspec.scheduler.inputs import Noted, PolicyLoaded, write_line
from schedspec.virtual.state import StateError, read_state
from schedspec.virtual.state.over_time import inputs_over_time, segments_over_time
from schedspec.virtual.state.redacted_inputs import InputRedaction, NameTable, table_in
from tests.schedspec.lab.recorder.recorded_cluster import POLICY, RecordedCluster

SECRET = "zebra"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "names.jsonl"


def record_incidents(folder: Path, table: Path) -> None:
    """Record a hopeless wait, a gang in part and an eviction, of objects that all have the secret in their names."""
    names = table_in(table)
    cluster = RecordedCluster(folder)
    try:
        cluster.node(f"{SECRET}-node", 8)
        cluster.queue(f"{SECRET}-queue", deserved={"cpu": "4"})
        cluster.advance(1.0)
        cluster.record(redacted=InputRedaction(names))
        cluster.group(f"{SECRET}-half", f"{SECRET}-queue", 2)
        for number in range(2):
            cluster.pod(f"{SECRET}-half-{number}", f"{SECRET}-half", 1)
        cluster.group(f"{SECRET}-large", f"{SECRET}-queue")
        cluster.pod(f"{SECRET}-large-0", f"{SECRET}-large", 99)
        cluster.advance(1.0)
        cluster.bind(f"{SECRET}-half-0", f"{SECRET}-node")
        cluster.advance(200.0)
        cluster.evict(f"{SECRET}-half-0", f"for {SECRET}")
        cluster.advance(70.0)
    finally:
        cluster.close()


def judged(folder: Path) -> list[Finding]:
    found: list[Finding] = []
    judge = Judge(found.append)
    VersionReader(judge, policy=POLICY).read_all(inputs_over_time(folder))
    judge.end(float("inf"))
    return found


def names_in(table: Path) -> dict[str, str]:
    rows = [json.loads(line) for line in table.read_text().splitlines()]
    return {row["new"]: row["name"] for row in rows if "new" in row}


def test_no_name_is_written_and_the_table_gives_each_back(tmp_path: Path, table: Path) -> None:
    record_incidents(tmp_path / "r", table)
    text = b"".join(gzip.decompress(path.read_bytes()) for path in segments_over_time(tmp_path / "r"))
    assert SECRET.encode() not in text
    assert b'"redacted":true' in text
    assert table.stat().st_mode & 0o777 == 0o600
    back = names_in(table)
    pods = {back[pod.metadata.name] for pod in read_state(tmp_path / "r").objects["Pod"].values()}
    assert pods == {f"{SECRET}-half-1", f"{SECRET}-large-0"}


def test_the_same_incidents_are_found_under_new_names(tmp_path: Path, table: Path) -> None:
    record_incidents(tmp_path / "r", table)
    back = names_in(table)
    found = {(one.monitor, back[one.about.rpartition("/")[2]], back[one.queue]) for one in judged(tmp_path / "r")}
    assert found >= {
        ("gang", f"{SECRET}-half", f"{SECRET}-queue"),
        ("hopeless-wait", f"{SECRET}-large-0", f"{SECRET}-queue"),
    }


def test_a_recorder_that_begins_again_uses_the_same_names(tmp_path: Path, table: Path) -> None:
    first = table_in(table)
    made = {name: first.within("team", name) for name in ("a-0", "a-1", "b")}
    uid = first.of("uids", "u-1")
    again = table_in(table)
    assert {name: again.within("team", name) for name in reversed(made)} == made
    assert again.of("uids", "u-1") == uid
    assert again.within("team", "new") not in made.values()


@given(st.lists(st.tuples(st.sampled_from(["/", "namespaces", "team/", "other/", "images"]), st.text(max_size=8))))
def test_equal_names_have_equal_replacements_and_different_ones_different(names: list[tuple[str, str]]) -> None:
    table = NameTable((), lambda _row: None)
    new = {(scope, name): table.of(scope, name) for scope, name in names}
    assert len(set(new)) == len({(scope, found) for (scope, _), found in new.items()})
    assert new == {(scope, name): table.of(scope, name) for scope, name in names}


@pytest.mark.parametrize("content", [b"not json\n", b"[]\n", b'{"scope":3}\n', b"\xff\n"])
def test_a_file_that_is_no_table_is_refused(table: Path, content: bytes) -> None:
    table.write_bytes(content)
    with pytest.raises(StateError, match="no line of a table"):
        table_in(table)
    assert table.read_bytes() == content


TEXT = st.just(SECRET) | st.sampled_from([f"{SECRET}-1", f"{SECRET} told", ""])
REFERENCE = st.dictionaries(st.sampled_from(["namespace", "name", "uid"]), TEXT)
META = {"name": TEXT, "namespace": TEXT, "uid": TEXT, "annotations": st.just({SECRET: SECRET})}


@given(
    st.fixed_dictionaries(
        {
            "metadata": st.fixed_dictionaries(META),
            "message": TEXT,
            "reason": st.just("Preempted"),
            "involvedObject": REFERENCE,
            "related": REFERENCE,
        }
    )
)
def test_an_event_keeps_no_text_of_its_cluster(event: dict[str, Any]) -> None:
    table = NameTable((), lambda _row: None)
    done = InputRedaction(table)(Noted({"apiVersion": "v1", "kind": "Event", **event}))
    assert SECRET.encode() not in write_line(done)


@pytest.mark.parametrize("text", ["actions: [", "- a", "actions: 3\ntiers: x\n", "# zebra\n"])
def test_a_policy_that_cannot_be_read_is_left_out(table: Path, text: str) -> None:
    names = table_in(table)
    done = InputRedaction(names)(PolicyLoaded("zebra", text))
    assert SECRET.encode() not in msgspec.json.encode(done)
