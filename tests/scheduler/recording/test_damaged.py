"""A recording that was cut, mixed up or edited is refused in one sentence, by every command that reads recordings."""

from __future__ import annotations

import contextlib
import gzip
import json
import resource
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

CARD = "nvidia.com/gpu"
DEEP: Any = {}
for _ in range(400):
    DEEP = {"a": [DEEP]}
ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**63,
    10**400,
    1e308,
    "",
    "²",
    "1e308",
    "\x00",
    "x" * 5_000,
    [],
    {},
    [[]],
    {"": None},
    DEEP,
)
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


def _places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values in a JSON document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, item in inner for place in _places(item, (*at, key)))]


def _edited(data: st.DataObject, line: bytes) -> bytes:
    """Return a line with an odd value in some place, or without the place."""
    document = json.loads(line)
    place = data.draw(st.sampled_from(_places(document)[1:]))
    holder = document
    for key in place[:-1]:
        holder = holder[key]
    if data.draw(st.booleans()):
        holder[place[-1]] = data.draw(st.sampled_from(ODD))
    else:
        del holder[place[-1]]
    return json.dumps(document).encode()


def _damaged(data: st.DataObject, content: bytes) -> bytes:
    lines = content.splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        at, to = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        match data.draw(st.sampled_from(("edit", "edit", "edit", "move", "copy", "drop", "bytes"))):
            case "edit":
                with contextlib.suppress(ValueError, RecursionError):  # damaged before
                    lines[at] = _edited(data, lines[at])
            case "move":
                lines[at], lines[to] = lines[to], lines[at]
            case "copy":
                lines.insert(to, lines[at])
            case "drop" if len(lines) > 1:
                del lines[at]
            case "bytes":
                cut = data.draw(st.integers(0, len(lines[at])))
                insert = data.draw(st.sampled_from((b"", b"\xff", b"[" * 50_000, b'"', b"{", b"\x00", b"1e999")))
                lines[at] = lines[at][:cut] + insert + lines[at][cut + data.draw(st.integers(0, 9)) :]
    return b"\n".join(lines) + b"\n"


@pytest.mark.parametrize("reader", READERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_recordings_never_end_in_a_traceback(reclaimed: Path, reader: str, data: st.DataObject) -> None:
    (segment,) = reclaimed.glob("cycles-0*")
    content = _damaged(data, gzip.decompress(segment.read_bytes()))
    packed = gzip.compress(content, compresslevel=1)
    path = segment.with_name("cycles-damaged.jsonl.gz")
    path.write_bytes(packed[: data.draw(st.integers(0, len(packed)) | st.just(len(packed)))])
    with contextlib.suppress(*REFUSALS):
        READERS[reader](path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1 << 20, "more than 1 GB"


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
