"""The replay of a recording repeats its decisions bit for bit, and shows the differences under another policy."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from schedspec.scheduler.__main__ import main
from schedspec.scheduler.framework.work import Budget
from schedspec.scheduler.inputs import ObjectSeen, PolicyLoaded
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.model.state_kinds import STATE_KINDS
from schedspec.scheduler.recording.segments import SegmentWriter, cut, segments
from tests.scheduler.recording.conftest import POLICY
from tests.support.core.notation import EPOCH

BAD_NODE = {"metadata": {"name": "n2"}, "status": {"allocatable": {"cpu": "many"}}}
OTHER = POLICY.replace(", reclaim", "")


def test_a_replay_repeats_all_decisions(reclaimed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(reclaimed)]) == 0
    assert capsys.readouterr().out == "3 cycles, 0 with other decisions\n"


def test_assumptions_survive_a_checkpoint(scheduler: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    live = scheduler(segment_bytes=1)  # a checkpoint before every cycle
    live.show({"nodes": [{"name": "n1", "has": "4 cpu"}], "queues": [{"name": "default"}]})
    live.show({"jobs": [{"name": "a", "tasks": "3 x 1 cpu"}]})
    live.cycle()
    live.show({"jobs": [{"name": "b", "tasks": "2 x 1 cpu"}]})
    live.cycle()
    live.cycle()
    live.recorder.close()

    assert len(segments(live.recorder.directory)) == 3
    assert main(["replay", str(live.recorder.directory)]) == 0
    assert capsys.readouterr().out == "3 cycles, 0 with other decisions\n"


@pytest.mark.parametrize("segment_bytes", [1, 2_000, 1_000_000])
def test_a_replay_repeats_cycles_that_were_cut(
    scheduler: Callable[..., Any], capsys: pytest.CaptureFixture[str], segment_bytes: int
) -> None:
    """The replay is the same with and without checkpoints between the cycles."""
    live = scheduler(segment_bytes=segment_bytes, keep=20)
    live.budget = Budget(150, 2_000)
    live.show({"nodes": [{"name": "n1", "has": "8 cpu"}], "queues": [{"name": "default"}, {"name": "other"}]})
    live.show({"jobs": [{"name": f"never{n}", "tasks": "9 x 1 cpu", "phase": "Inqueue"} for n in range(8)]})
    live.show({"jobs": [{"name": "small", "queue": "other", "tasks": "3 x 1 cpu", "phase": "Inqueue"}]})
    cut = []
    for number in range(14):
        live.budget = Budget(150 + 10 * number, 2_000)  # as if the shell had measured faster steps
        cut.append(bool(live.cycle().cut))
        if number == 9:
            live.delete("Pod", "t/small-0")
    live.recorder.close()

    assert any(cut)
    assert not all(cut)
    assert main(["replay", str(live.recorder.directory)]) == 0
    assert capsys.readouterr().out == "14 cycles, 0 with other decisions\n"


def test_the_oldest_segments_are_deleted_and_the_others_still_replay(
    scheduler: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    live = scheduler(segment_bytes=1, keep=2)
    live.show({"nodes": [{"name": "n1", "has": "4 cpu"}], "queues": [{"name": "default"}]})
    for _ in range(4):
        live.cycle()
    live.recorder.close()

    assert [path.name for path in segments(live.recorder.directory)] == [
        "cycles-000003.jsonl.gz",
        "cycles-000004.jsonl.gz",
    ]
    assert main(["replay", str(live.recorder.directory)]) == 0


def test_a_writer_deletes_no_segments_of_a_recording_in_a_subfolder(reclaimed: Path, tmp_path: Path) -> None:
    inner = tmp_path / "run" / "recording"
    inner.parent.mkdir()
    [segment] = segments(reclaimed.rename(inner))
    writer = SegmentWriter(inner.parent, keep=1)
    writer.checkpoint(Cluster(), PolicyLoaded("conf", POLICY))
    writer.close()

    assert segment.exists()
    assert segments(inner.parent) == [inner.parent / "cycles-000001.jsonl.gz"]


def test_a_truncated_segment_replays_up_to_its_end(reclaimed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [segment] = segments(reclaimed)
    segment.write_bytes(segment.read_bytes()[:-200])

    assert main(["replay", str(reclaimed)]) == 0
    assert "0 with other decisions" in capsys.readouterr().out


def test_a_decision_that_the_core_does_not_repeat_is_shown(reclaimed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [segment] = segments(reclaimed)
    text = gzip.decompress(segment.read_bytes()).replace(b'"node":"n1","job":"t/new"', b'"node":"n9","job":"t/new"')
    segment.write_bytes(gzip.compress(text))

    assert main(["replay", str(reclaimed)]) == 1
    out = capsys.readouterr().out
    assert "cycle 3 at" in out
    assert "- bind t/new-0 to n9\n" in out
    assert "+ bind t/new-0 to n1\n" in out
    assert out.endswith("3 cycles, 1 with other decisions\n")


def test_another_policy_shows_what_it_would_have_decided(
    reclaimed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(OTHER)

    assert main(["replay", str(reclaimed), "--policy", str(other)]) == 0
    out = capsys.readouterr().out
    assert "- evict t/old-3: reclaimed for t/new of queue a (victim's queue: b)" in out
    assert "+ t/new waits: " in out
    assert main(["replay", str(reclaimed), "--policy", str(other), "-o", "json"]) == 0
    answer = msgspec.json.decode(capsys.readouterr().out)
    assert answer["cycles"] == 3
    assert [line for it in answer["otherwise"] for line in it["says"] if line.startswith("+ t/new waits: ")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "contains no recording; create one with `run --record"),
        (["{recording}", "--cycle", "9"], "contains no cycle 9"),
        (
            ["{recording}", "--policy", "missing.yaml"],
            "cannot read the policy file: No such file",
        ),
        (["{recording}", "--policy", "{pipe}"], "a FIFO is not a regular file"),
        (["{plain}"], "is no recording"),
        (["{other}"], "does not begin with a checkpoint"),
        (["{future}"], "is a recording of version 99, this program reads version 2"),
        (["{broken}"], "broken, line 1: JSON is malformed"),
    ],
)
def test_replay_refuses_bad_input_with_a_reason(
    reclaimed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    plain, other = tmp_path / "plain", tmp_path / "other"
    plain.write_text("no recording\n")
    other.write_bytes(gzip.compress(b'{"type":"lost","kind":"Pod","key":"t/x"}\n'))
    future, broken = tmp_path / "future", tmp_path / "broken"
    future.write_bytes(
        gzip.compress(b'{"type":"started","version":99,"scheduler_names":[],"node_selector":{}}\n'),
    )
    broken.write_bytes(gzip.compress(b"{x}\n"))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    places = {"recording": reclaimed, "plain": plain, "other": other, "future": future, "broken": broken, "pipe": pipe}

    assert main(["replay", *(text.format(**places) for text in arguments)]) == 2
    assert message in capsys.readouterr().err


def test_an_object_that_could_not_be_read_is_ignored_again(
    scheduler: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    live = scheduler()
    live.show({"nodes": [{"name": "n1", "has": "4 cpu"}], "queues": [{"name": "default"}]})
    live.cycle()
    live.recorder.write(ObjectSeen("Node", msgspec.convert(BAD_NODE, STATE_KINDS["Node"].struct)))
    live.show({"jobs": [{"name": "a", "tasks": "3 x 1 cpu"}]})
    live.cycle()
    live.recorder.close()

    assert main(["replay", str(live.recorder.directory)]) == 0
    assert capsys.readouterr().out == "2 cycles, 0 with other decisions\n"


def test_a_part_of_a_recording_is_a_recording(
    scheduler: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    live = scheduler(segment_bytes=2000)
    live.show({"nodes": [{"name": "n1", "has": "8 cpu"}], "queues": [{"name": "default"}]})
    for number in range(6):
        live.show({"jobs": [{"name": f"a{number}", "tasks": "1 x 1 cpu"}]})
        live.cycle()
    for since, left in ((0.0, 6), (EPOCH + 1003.5, 3), (EPOCH + 2000.0, 0)):  # the recording is still being written
        to = tmp_path / f"from-{since}" / "recording"
        assert cut(live.recorder.directory, since, to) == left
        if left:
            assert main(["replay", str(to.parent)]) == 0  # the folder that contains `recording/`
            assert capsys.readouterr().out == f"{left} cycles, 0 with other decisions\n"
    live.recorder.close()
