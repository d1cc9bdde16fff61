"""Records contain decisions and their inputs, and a failure to record does not stop the scheduling."""

from __future__ import annotations

import gzip
import logging
from pathlib import Path

import pytest

from schedspec.scheduler.live import record
from schedspec.scheduler.live.policy_file import InForce, PolicyFile
from schedspec.scheduler.live.record import RunningRecord, write_cycle
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.recording.events import Decided, Input, ObjectSeen, PolicyLoaded, Started, apply_input
from schedspec.scheduler.recording.segments import SegmentWriter, read_segment, segments
from tests.scheduler.live.test_state_feed import pod

POLICY: InForce = PolicyFile(None).current
NOW = 1_800_000_000.0


def a_cluster() -> Cluster:
    cluster = Cluster(["schedspec"])
    apply_input(cluster, ObjectSeen("Pod", pod()))
    return cluster


def read(folder: Path) -> list[Input]:
    return [given for path in segments(folder) for given in read_segment(path)]


def test_a_cycle_record_contains_the_state_and_the_decisions_that_follow(tmp_path: Path) -> None:
    write_cycle(tmp_path, 7, NOW, a_cluster(), POLICY)
    started, policy, seen, decided = read(tmp_path / "cycle-7-1800000000")
    assert isinstance(started, Started)
    assert isinstance(policy, PolicyLoaded)
    assert policy.text == POLICY.text
    assert isinstance(seen, ObjectSeen)
    assert isinstance(decided, Decided)
    assert (decided.cycle, decided.now, decided.decisions.binds) == (7, NOW, [])


def test_a_cycle_record_contains_the_state_even_if_the_core_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(record, "decide", lambda *_: 1 / 0)
    write_cycle(tmp_path, 7, NOW, a_cluster(), POLICY)
    assert [type(given) for given in read(tmp_path / "cycle-7-1800000000")] == [Started, PolicyLoaded, ObjectSeen]
    assert "cycle record written without decisions" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_a_cycle_record_that_cannot_be_written_is_only_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    write_cycle(tmp_path / "file", 7, NOW, a_cluster(), POLICY)
    assert "cycle record not written: " in caplog.text


def test_a_full_disk_ends_only_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    kept = RunningRecord(tmp_path)
    kept.before_cycle(a_cluster(), POLICY)
    kept.add(ObjectSeen("Pod", pod()))
    monkeypatch.setattr(SegmentWriter, "write", full)
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            kept.add(ObjectSeen("Pod", pod()))
            kept.before_cycle(a_cluster(), POLICY)
        kept.close()
    monkeypatch.undo()
    at_its_end = RunningRecord(tmp_path)
    at_its_end.before_cycle(a_cluster(), POLICY)
    monkeypatch.setattr(SegmentWriter, "close", full)
    with caplog.at_level(logging.ERROR):
        at_its_end.close()
    assert caplog.messages == ["recording stopped: [Errno 28] No space left on device"] * 2


def test_a_policy_that_is_loaded_later_is_recorded(tmp_path: Path) -> None:
    other = InForce(POLICY.policy, POLICY.path, POLICY.text + "\n# new\n")
    kept = RunningRecord(tmp_path)
    for policy in (POLICY, POLICY, other, other, POLICY):
        kept.before_cycle(a_cluster(), policy)
    kept.close()
    [segment] = segments(tmp_path)
    loaded = [given.text for given in read_segment(segment) if isinstance(given, PolicyLoaded)]
    assert loaded == [POLICY.text, other.text, POLICY.text]


def test_a_record_is_private_and_contains_only_annotations_the_scheduler_reads(tmp_path: Path) -> None:
    given = pod()
    given.metadata.annotations = {"kubectl.kubernetes.io/last-applied-configuration": "s3cret", "volcano.sh/x": "y"}
    cluster = Cluster(["schedspec"])
    apply_input(cluster, ObjectSeen("Pod", given))
    write_cycle(tmp_path / "record", 7, NOW, cluster, POLICY)
    (file,) = segments(tmp_path / "record" / "cycle-7-1800000000")
    assert [oct(path.stat().st_mode & 0o777) for path in (file.parent, file)] == ["0o700", "0o600"]
    text = gzip.decompress(file.read_bytes())
    assert b"s3cret" not in text
    assert b'"volcano.sh/x":"y"' in text
