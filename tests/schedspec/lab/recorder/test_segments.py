"""A recording is read up to the place at which a file is damaged, what is missing is marked, and its bounds hold."""

from __future__ import annotations

import itertools
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.lab.recorder import writer as writer_module
from schedspec.lab.recorder.writer import FolderError, VersionWriter
from schedspec.scheduler.inputs import Gap, Input, Noted, Passed, PolicyLoaded, Started, Taken
from schedspec.scheduler.recording.segments import VERSION
from schedspec.virtual.state import StateError
from schedspec.virtual.state.over_time import (
    begin_of,
    inputs_over_time,
    segment_name,
    segments_over_time,
    span_of,
    time_in,
)
from tests.schedspec.lab.recorder.recorded_cluster import kill

START = 1_790_000_000.0


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


def noted(number: int, size: int = 0) -> Noted:
    text = random.Random(number).randbytes(size // 2).hex()
    return Noted({"apiVersion": "test/v1", "kind": "Number", "metadata": {"name": str(number), "text": text}})


WRITERS: list[VersionWriter] = []


@pytest.fixture(autouse=True)
def _end_writers() -> Iterator[None]:
    yield
    end_writers()


def end_writers() -> None:
    while WRITERS:
        kill(WRITERS.pop())


class Numbers:
    """Writes numbers into a recording; the state of a checkpoint is the last number."""

    def __init__(self, folder: Path, *, keep: float = 1e9, most: int = 1 << 30) -> None:
        self.clock = Clock()
        self.folder, self._keep, self._most = folder, keep, most
        self.last = 0
        self.times: dict[int, float] = {}
        """Number → the time at which it was written."""
        self.writer = self.opened()

    def opened(self) -> VersionWriter:
        made = VersionWriter(self.folder, self._keep, self._most, self.clock)
        WRITERS.append(made)
        return made

    def begin(self) -> None:
        self.writer.begin([Started(VERSION, [], {}), PolicyLoaded("", ""), noted(self.last), Taken(self.clock())])

    def write(self, size: int = 0) -> None:
        self.clock.now += 0.5
        self.last += 1
        self.times[self.last] = self.clock.now
        self.writer.write(noted(self.last, size))

    def flush(self) -> None:
        self.clock.now += 0.5
        self.writer.flush()

    def segments(self, count: int, numbers: int = 6) -> None:
        """Write some segments, each with some numbers."""
        for _ in range(count):
            self.begin()
            for _ in range(numbers):
                self.write()
                self.flush()

    def restart(self, seconds: float) -> None:
        """Kill the writer: another one begins later."""
        kill(self.writer)
        self.clock.now += seconds
        self.writer = self.opened()


def numbers_in(inputs: Iterator[tuple[float, Input]]) -> list[int]:
    return [int(given.object["metadata"]["name"]) for _, given in inputs if isinstance(given, Noted)]


def gaps_in(folder: Path) -> list[Gap]:
    return [given for _, given in inputs_over_time(folder) if isinstance(given, Gap)]


@pytest.fixture
def numbers(tmp_path: Path) -> Numbers:
    return Numbers(tmp_path / "recording")


def test_segments_that_follow_each_other_have_no_gap(numbers: Numbers) -> None:
    numbers.segments(4)
    numbers.writer.close()
    assert len(segments_over_time(numbers.folder)) == 4
    assert gaps_in(numbers.folder) == []
    assert numbers_in(inputs_over_time(numbers.folder)) == [*range(25)]


def test_every_input_has_the_time_at_which_it_was_written(numbers: Numbers) -> None:
    numbers.segments(3)
    read = {}
    for at, each in inputs_over_time(numbers.folder):
        if isinstance(each, Noted):
            read[int(each.object["metadata"]["name"])] = at
    assert {number: at for number, at in read.items() if number} == numbers.times


def test_a_killed_recorder_leaves_a_gap_from_its_last_flush_to_its_successor(numbers: Numbers) -> None:
    numbers.segments(1)
    flushed = numbers.clock.now
    numbers.write()  # lost: it was not flushed
    numbers.restart(30.0)
    numbers.begin()
    began = numbers.clock.now
    numbers.flush()
    assert [(gap.since, gap.until, gap.kind) for gap in gaps_in(numbers.folder)] == [(flushed, began, "")]


def test_a_clock_that_is_set_back_does_not_turn_the_time_back(numbers: Numbers) -> None:
    numbers.segments(1)
    numbers.clock.now -= 3600.0
    numbers.segments(2)
    times = [at for at, _ in inputs_over_time(numbers.folder)]
    assert times == sorted(times)
    assert gaps_in(numbers.folder) == []


Damage = Callable[[Path, float], None]


def cut(path: Path, part: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * part)])


def garble(path: Path, part: float) -> None:
    content = bytearray(path.read_bytes())
    at = min(int(len(content) * part), len(content) - 1)
    content[at : at + 40] = bytes((byte ^ 0xA5) for byte in content[at : at + 40])
    path.write_bytes(content)


def remove(path: Path, _part: float) -> None:
    path.unlink()


@given(
    st.sampled_from([cut, garble, remove]),
    st.integers(0, 3),
    st.floats(0.0, 0.999),
    st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_whatever_a_damaged_file_lacks_lies_in_a_marked_gap(
    damage: Damage, which: int, part: float, kills: list[bool]
) -> None:
    with tempfile.TemporaryDirectory() as place:
        numbers = Numbers(Path(place))
        for is_killed in kills:
            numbers.segments(1)
            if is_killed:
                numbers.restart(5.0)
        if not kills[-1]:
            numbers.writer.close()
        damage(segments_over_time(numbers.folder)[which], part)
        inputs = [*inputs_over_time(numbers.folder)]
        end_writers()
    times = [at for at, _ in inputs]
    assert times == sorted(times)
    seen = {*numbers_in(iter(inputs))}
    gaps = [each for _, each in inputs if isinstance(each, Gap)]
    begins, ends = times[0], times[-1]
    lost = {number: at for number, at in numbers.times.items() if number not in seen and begins < at < ends}
    assert [number for number, at in lost.items() if not any(gap.since <= at <= gap.until for gap in gaps)] == []
    assert damage is not remove or which in (0, 3) or gaps


def test_a_recording_without_a_complete_checkpoint_is_refused(numbers: Numbers) -> None:
    numbers.segments(1)
    numbers.writer.close()
    cut(segments_over_time(numbers.folder)[0], 0.1)
    with pytest.raises(StateError, match="complete checkpoint"):
        next(inputs_over_time(numbers.folder))


@given(st.lists(st.integers(0, 60_000), min_size=20, max_size=60), st.integers(1 << 16, 1 << 18))
def test_the_size_of_a_recording_stays_within_its_bound(sizes: list[int], most: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        numbers = Numbers(Path(place), most=most)
        for size in sizes:
            if numbers.writer.wants_checkpoint:
                numbers.begin()
            numbers.write(size)
            numbers.flush()
            assert sum(path.stat().st_size for path in segments_over_time(numbers.folder)) <= most
        assert numbers_in(inputs_over_time(numbers.folder))[-1] == numbers.last
        assert gaps_in(numbers.folder) == []
        end_writers()


def test_segments_that_ended_long_ago_are_deleted(tmp_path: Path) -> None:
    numbers = Numbers(tmp_path, keep=100.0)
    for _ in range(8):
        numbers.segments(1)
        numbers.clock.now += 40.0
        numbers.flush()
        begins = [*map(begin_of, segments_over_time(tmp_path)), numbers.clock.now]
        assert all(end >= numbers.clock.now - 100.0 for end in begins[1:])
    assert 2 <= len(segments_over_time(tmp_path)) <= 4


def test_a_state_that_does_not_fit_into_the_bound_is_refused(tmp_path: Path) -> None:
    numbers = Numbers(tmp_path, most=1000)
    large = [Started(VERSION, [], {}), PolicyLoaded("", ""), noted(1, 5000), Taken(START)]
    with pytest.raises(FolderError, match="--max-size"):
        numbers.writer.begin(large)
    assert segments_over_time(tmp_path) == []


def test_two_recorders_do_not_write_into_one_folder(numbers: Numbers) -> None:
    with pytest.raises(FolderError, match="another recorder"):
        numbers.opened()


def test_a_segment_ends_after_an_hour_at_the_latest(numbers: Numbers) -> None:
    numbers.begin()
    numbers.write()
    assert not numbers.writer.wants_checkpoint
    numbers.clock.now += writer_module.MAX_SECONDS
    assert numbers.writer.wants_checkpoint


def test_a_segment_is_private_and_named_after_its_time(numbers: Numbers) -> None:
    numbers.begin()
    [path] = segments_over_time(numbers.folder)
    assert path.name == "versions-20260921T141320.000Z.jsonl.gz" == segment_name(START)
    assert begin_of(path) == START
    assert (path.stat().st_mode & 0o777, numbers.folder.stat().st_mode & 0o777) == (0o600, 0o700)


@given(st.integers(0, 10**10))
def test_the_time_of_a_segment_is_that_in_its_name(milliseconds: int) -> None:
    at = round(START + milliseconds / 1000, 3)
    assert begin_of(Path(segment_name(at))) == at


def test_a_time_of_yesterday_is_found_in_a_recording_of_two_days(numbers: Numbers) -> None:
    numbers.segments(1)
    numbers.clock.now += 86400.0
    numbers.segments(1)
    assert time_in(numbers.folder, "14:20") == START + 400.0
    assert time_in(numbers.folder, "14:13:21") == START + 86401.0


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("14:13", START - 20.0),
        ("14:13:21", START + 1.0),
        ("14:20", START + 400.0),
        ("2026-09-21T14:13:30Z", START + 10.0),
        ("2026-09-21T16:13:30+02:00", START + 10.0),
        ("2026-09-21 14:13:30", START + 10.0),
    ],
)
def test_a_time_is_read_in_utc_on_the_last_day_of_the_recording(numbers: Numbers, text: str, at: float) -> None:
    numbers.segments(1)
    assert time_in(numbers.folder, text) == at


@pytest.mark.parametrize(
    "text", ["", "24:00", "2:61", "02:13:60", "noon", "1e9", "99999-01-01", "-1:00", "02:1", "٠٢:١٣:xx"]
)
def test_a_text_that_is_no_time_is_refused(numbers: Numbers, text: str) -> None:
    numbers.segments(1)
    with pytest.raises(StateError, match="is no time"):
        time_in(numbers.folder, text)


def test_the_span_of_a_recording_ends_with_its_last_flush(numbers: Numbers) -> None:
    numbers.segments(2)
    assert span_of(numbers.folder) == (START, numbers.clock.now)
    assert isinstance([*itertools.islice(inputs_over_time(numbers.folder), 6)][-1][1], Passed | Noted)
