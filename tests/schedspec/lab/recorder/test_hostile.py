"""A hostile tenant neither stops the recorder, nor fills its folder, nor runs anything in pages and terminals."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from schedspec.cli import schedspec
from schedspec.lab.recorder.judge import Judge
from schedspec.lab.recorder.preemptors import KEPT
from schedspec.lab.recorder.versions import VersionReader
from schedspec.lab.recorder.window import record_of
from schedspec.report import html
from schedspec.scheduler.inputs import Noted, Started, Taken
from schedspec.scheduler.recording.segments import VERSION
from schedspec.virtual.state import read_state
from schedspec.virtual.state.over_time import inputs_over_time, segments_over_time
from tests.schedspec.lab.recorder.nights import evictions, judged
from tests.schedspec.lab.recorder.recorded_cluster import RecordedCluster, recorded
from tests.support.hostile import ATTACKS

MOST = 4 << 20
"""Bytes that the folder may have."""
AT_ONCE = 50
"""Objects of an attack between two looks at the folder."""
MANY = 3_000
"""Events that name a preemptor, beside few evictions."""
HOSTILE = "\x1b[2J\n2026-01-01T00:00:00Z forged: team/x\r::error::<script>alert(1)</script><img src=x>\u202e"


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in segments_over_time(folder))


@pytest.mark.parametrize("part", [20, pytest.param(1, marks=pytest.mark.nightly)], ids=["in-part", "whole"])
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_neither_stops_the_recorder_nor_exceeds_its_bound(tmp_path: Path, name: str, part: int) -> None:
    attack = ATTACKS[name]
    with recorded(tmp_path, most=MOST) as cluster:
        cluster.make("/api/v1/namespaces", "hostile")
        created = attack.make("attack", max(attack.number // part, 1))
        while some := [*itertools.islice(created, AT_ONCE)]:
            for resource, body in some:
                whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
                cluster.cluster.request("POST", resource.path("hostile"), json.dumps(whole).encode())
            cluster.advance(1.0)
            assert size(tmp_path) <= MOST
        cluster.runs("bystander-0", "", "n1", 1)
        cluster.advance(5.0)
        assert size(tmp_path) <= MOST
    bystander = read_state(tmp_path).objects["Pod"]["team/bystander-0"]
    assert bystander.spec.node_name == "n1"
    assert [one.about for one in judged(tmp_path) if one.about.startswith("team/")] == []
    assert any(True for _ in inputs_over_time(tmp_path))


def test_changes_of_a_large_object_do_not_exceed_the_bound(tmp_path: Path) -> None:
    with recorded(tmp_path, most=MOST) as cluster:
        cluster.runs("large-0", "", "n1", 1)
        path = "/api/v1/namespaces/team/pods/large-0"
        for number in range(40):
            labels = {f"k{index}": f"{number}-{index}" * 5 for index in range(2_000)}
            cluster.call("PATCH", path, {"metadata": {"labels": labels}}, "application/merge-patch+json")
            cluster.advance(1.0)
            assert size(tmp_path) <= MOST
    assert read_state(tmp_path).objects["Pod"]["team/large-0"].spec.node_name == "n1"


def hostile_texts(cluster: RecordedCluster) -> None:
    """Let a tenant write such texts wherever the API server permits any text, and evict its pod twice."""
    cluster.group("a", HOSTILE)
    for _ in range(2):
        cluster.runs("a-0", "a", "n1", 1)
        cluster.evict("a-0", f"evicted{HOSTILE}")
        cluster.advance(3.0)
        event = {"involvedObject": {"kind": "Pod", "namespace": "team", "name": "a-0"}, "reason": HOSTILE}
        cluster.make("/api/v1/namespaces/team/events", f"e{cluster.now}", message=HOSTILE, **event)
    cluster.pod("b-0", "a", 1, resources={"limits": {f"x.y/{'z' * 20}": "1"}})
    cluster.call("PATCH", "/api/v1/namespaces/team/pods/b-0/status", {
        "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "R", "message": HOSTILE}]}
    }, "application/strategic-merge-patch+json")  # fmt: skip
    cluster.advance(200.0)


def test_the_texts_of_a_tenant_forge_no_line_and_run_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "recording"
    with recorded(folder) as cluster:
        since = cluster.now
        hostile_texts(cluster)
        until = cluster.now
    lost, found = evictions(folder), judged(folder)
    assert {one.monitor for one in found} == {"needless-eviction", "repeated-eviction", "hopeless-wait"}
    for command in (
        ["judge", folder],
        ["who", "evicted", "team/a-0", "--recording", folder],
        ["who", "evicted", "--between", "2000-01-01", "2100-01-01", "--recording", folder],
    ):
        output = CliRunner().invoke(schedspec, [*map(str, command)]).output
        assert "forged" in output
        assert not [line for line in output.splitlines() if line.startswith(("2026-01-01", "::"))]
        assert not {"\x1b", "\r", "\u202e"} & set(output)
    assert len(lost) == 2
    page = html.render([record_of(folder, since, until)])
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "forged" in page


def test_events_of_a_tenant_that_explain_no_eviction_are_forgotten() -> None:
    judge = Judge(lambda _: None)
    reader = VersionReader(judge)
    reader.read_all((0.0, given) for given in (Started(VERSION, [], {}), Taken(0.0)))
    for number in range(MANY):
        about = {"kind": "Pod", "namespace": "hostile", "name": "x", "uid": f"victim-{number}"}
        meta = {"name": f"e{number}", "namespace": "hostile", "resourceVersion": str(number + 1)}
        event = {"apiVersion": "v1", "kind": "Event", "metadata": meta, "involvedObject": about}
        reader.read(float(number), Noted(event | {"related": {"uid": "preemptor"}, "message": "x"}))
    assert len(judge._evictions._preemptors.claims) <= KEPT + 2


def test_a_feature_of_hostile_texts_has_one_line_for_each_of_its_own(tmp_path: Path) -> None:
    folder, out = tmp_path / "recording", tmp_path / "found.feature"
    with recorded(folder) as cluster:
        hostile_texts(cluster)
    for monitor in ("needless-eviction", "repeated-eviction", "hopeless-wait"):
        done = CliRunner().invoke(schedspec, ["reduce", str(folder), "--because", f"monitor {monitor}", "-o", str(out)])
        assert done.exit_code in (0, 1, 2), done.exception
        text = out.read_text() if out.exists() else ""
        for line in [*text.splitlines(), *done.output.splitlines()]:
            assert not line.startswith(("2026-01-01", "::"))
            assert not {"\x1b", "\r", "\u202e"} & set(line)
