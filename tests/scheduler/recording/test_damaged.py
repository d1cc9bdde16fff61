"""A recording that was cut, mixed up or edited is refused in one sentence, by every command that reads recordings."""

from __future__ import annotations

import contextlib
import gzip
import resource
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schedspec.lab.plan.at_once import settle
from schedspec.lab.reduce.of_recording import state_before
from schedspec.lab.simulate.columns import InputError
from schedspec.lab.simulate.present import RecordedLoad
from schedspec.scheduler.__main__ import main
from schedspec.scheduler.policy.loader import load_policy
from schedspec.scheduler.recording import segments
from schedspec.scheduler.recording.segments import RecordError, read_segment
from schedspec.virtual.state import StateError, read_state
from tests.scheduler.recording.conftest import POLICY
from tests.support.damage import damaged_lines

CARD = "nvidia.com/gpu"
REFUSALS = (InputError, RecordError, StateError)


def _plan(path: Path) -> None:
    settle(read_state(path), load_policy(POLICY, "conf"), CARD)


def _simulate(path: Path) -> None:
    RecordedLoad(path, read_state(path))


READERS: dict[str, Callable[[Path], Any]] = {
    "replay": lambda path: main(["replay", str(path)]),
    "explain pod": lambda path: main(["explain", str(path), "pod", "new-0"]),
    "explain job": lambda path: main(["explain", str(path), "job", "more"]),
    "plan": _plan,
    "reduce": lambda path: state_before(path, lambda decided: bool(decided.decisions.evictions)),
    "simulate": _simulate,
}


@pytest.mark.parametrize("reader", READERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_recordings_never_end_in_a_traceback(reclaimed: Path, reader: str, data: st.DataObject) -> None:
    (segment,) = reclaimed.glob("cycles-0*")
    content = damaged_lines(data, gzip.decompress(segment.read_bytes()))
    packed = gzip.compress(content, compresslevel=1)
    path = segment.with_name("cycles-damaged.jsonl.gz")
    path.write_bytes(packed[: data.draw(st.integers(0, len(packed)) | st.just(len(packed)))])
    with contextlib.suppress(*REFUSALS):
        READERS[reader](path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1 << 20, "more than 1 GB"


@pytest.mark.parametrize("command", ["replay", "explain job"])
def test_a_line_that_was_cut_off_is_named_and_a_whole_recording_is_not(
    reclaimed: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (segment,) = reclaimed.glob("cycles-0*")
    packed = segment.read_bytes()
    content, path = gzip.decompress(packed), segment.with_name("cycles-cut.jsonl.gz")
    seen = set()
    for size in range(len(packed) - 60, len(packed) + 1, 4):
        path.write_bytes(packed[:size])
        left = zlib.decompressobj(wbits=31).decompress(path.read_bytes())
        READERS[command](path)
        is_lost = not left.endswith(b"\n")
        named = f"{path}: ends within a line, which is left out: the file was cut, or its writer was killed\n"
        assert capsys.readouterr().err == (named if is_lost else "")
        seen.add((is_lost, left == content))
    assert {(True, False), (False, True)} <= seen


@pytest.mark.parametrize("limit", ["MAX_LINE", "MAX_LINES", "MAX_BYTES"])
def test_a_recording_beyond_the_bounds_is_refused(reclaimed: Path, limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (segment,) = reclaimed.glob("cycles-0*")
    number = len(list(read_segment(segment)))
    content = gzip.decompress(segment.read_bytes())
    more = content.splitlines(keepends=True)[-1] * 3
    segment.write_bytes(gzip.compress(content + more))
    monkeypatch.setattr(segments, "_CHUNK", 100)  # each line has many pieces
    assert len(list(read_segment(segment))) == number + 3
    most = {"MAX_LINE": 500, "MAX_LINES": number, "MAX_BYTES": len(content)}
    monkeypatch.setattr(segments, limit, most[limit])
    with pytest.raises(RecordError, match="more than"):
        list(read_segment(segment))
