"""Write and read recordings: all inputs of the scheduler, which suffice to repeat its decisions.

A segment is self-contained: it begins with a checkpoint of the state, and every later input follows in the order in
which it was applied. Therefore the oldest segments can be deleted at any time. A segment is a gzip file of JSON lines
(`scheduler.inputs`), readable with `zcat` and `jq`, and is flushed after every cycle.
"""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..backlog.backlog import Backlog
from ..core import Core
from ..inputs import (
    Assumed,
    Decided,
    Input,
    Nominated,
    ObjectSeen,
    Overdue,
    PolicyLoaded,
    Remembered,
    Reverted,
    Started,
    apply_input,
    read_line,
    write_line,
)
from ..model.cluster import Cluster
from ..model.input_files import open_input
from ..model.printable import one_line
from ..model.state_kinds import STATE_KINDS
from ..model.task import TaskStatus

VERSION = 2
SEGMENT_BYTES = 256 << 20
KEPT = 8
"""Default number of segments to keep."""
SUFFIX = ".jsonl.gz"
MAX_LINE = 64 << 20
"""Maximum bytes of a line. The longest lines are the decisions of a cycle, with some hundred bytes for each job."""
MAX_LINES, MAX_BYTES = 4_000_000, 1 << 30
"""Maximum lines and unpacked bytes of a segment: several times what `SegmentWriter` writes. A file of 1 MB that repeats
one line could otherwise take hours.
"""
_MAGIC = b"\x1f\x8b"
"""The first bytes of every gzip file."""
_CHUNK = 1 << 20


class RecordError(Exception):
    """An unreadable recording; the text names file, line and problem."""


class UnopenedError(RecordError):
    """A segment that cannot be opened or is not a file: nothing of it is read, and it is not merely cut off."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.why = why


class OtherVersionError(RecordError):
    """A recording of another version of this format."""


class SegmentWriter:
    """Write a recording into a directory. A restarted scheduler begins a new segment.

    Args:
        segment_bytes: Maximum size of a segment before compression.
        keep: Number of segments to keep.
    """

    def __init__(self, directory: Path, *, segment_bytes: int = SEGMENT_BYTES, keep: int = KEPT) -> None:
        self.directory = directory
        self._segment_bytes, self._keep = segment_bytes, keep
        self._file: gzip.GzipFile | None = None
        self._written = 0

    @property
    def wants_checkpoint(self) -> bool:
        """Whether a checkpoint has to be written next: at the beginning, and when the segment is full."""
        return self._file is None or self._written >= self._segment_bytes

    def checkpoint(self, cluster: Cluster, policy: PolicyLoaded, backlog: Backlog | None = None) -> None:
        """Begin a new segment with the current state and delete the oldest segments of this folder.

        Raises:
            OSError: The directory is not writable.
        """
        self.close()
        # private, because the files contain objects of every namespace
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        known = _segments_in(self.directory)
        number = int(known[-1].name.removesuffix(SUFFIX).rpartition("-")[2]) + 1 if known else 1
        for old in known[: max(len(known) + 1 - self._keep, 0)]:
            old.unlink()
        self._file = _created(self.directory / f"cycles-{number:06d}{SUFFIX}")
        self._written = 0
        for given in checkpoint_of(cluster, policy, backlog):
            self.write(given)

    def write(self, given: Input) -> None:
        """Record one input, before or after it is applied to the state.

        Raises:
            OSError: The file is not writable.
        """
        if self._file is None:
            return
        line = write_line(given) + b"\n"
        self._written += len(line)
        self._file.write(line)
        if isinstance(given, Decided):
            self._file.flush(zlib.Z_SYNC_FLUSH)

    def close(self) -> None:
        """Finish the segment."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _created(path: Path) -> gzip.GzipFile:
    """Create a segment that only its owner can read."""
    path.touch(mode=0o600, exist_ok=False)
    return gzip.open(path, "wb", compresslevel=1)


def checkpoint_of(cluster: Cluster, policy: PolicyLoaded, backlog: Backlog | None = None) -> Iterator[Input]:
    """Yield the inputs that lead from an empty state to the current state."""
    yield Started(VERSION, sorted(cluster.scheduler_names), cluster.node_selector)
    yield policy
    for name, kind in STATE_KINDS.items():
        for _, item in sorted(kind.objects(cluster).items()):
            yield ObjectSeen(name, item)
    for key, task in sorted(cluster.tasks.items()):
        if task.assumed and task.status is TaskStatus.UNKNOWN:
            yield Overdue(key, task.uid)
        elif task.assumed:
            node = "" if task.status is TaskStatus.RELEASING else task.node
            yield Assumed(key, task.uid, node, dict(task.assigned) if node else {})
        elif key in cluster.refused_binds:
            yield Reverted(key, task.uid)
        if task.nominated != task.pod.status.nominated_node_name:
            yield Nominated(key, task.uid, task.nominated)
    if backlog is not None and backlog.policy:
        yield remembered(backlog)


def remembered(backlog: Backlog) -> Remembered:
    """Return the backlog as an input."""
    return Remembered(
        backlog.policy,
        dict(sorted(backlog.entries.items())),
        sorted(backlog.due),
        sorted(backlog.freed),
        backlog.turns,
        backlog.claims,
        backlog.lapses,
        moved=sorted(backlog.moved),
    )


def cut(path: Path, since: float, to: Path) -> int:
    """Copy the cycles from `since` on (seconds since 1970) into a new recording in the directory `to`.

    The scheduler may still write the original recording.

    Returns:
        The number of cycles.

    Raises:
        RecordError: The recording cannot be read.
        OSError: `to` cannot be written.
    """
    inputs = [given for segment in _since(segments(path), since) for given in read_segment(segment)]
    first = next((at for at, item in enumerate(inputs) if isinstance(item, Decided) and item.now >= since), len(inputs))
    core, policy = Core(Cluster()), PolicyLoaded("", "")
    for given in inputs[:first]:
        match given:
            case Started():
                core = Core(Cluster(given.scheduler_names, given.node_selector))
            case PolicyLoaded():
                policy = given
            case _:
                with contextlib.suppress(ValueError):  # an object that the live scheduler could not read either
                    apply_input(core, given)
    recorder = SegmentWriter(to)
    recorder.checkpoint(core.cluster, policy, core.backlog)
    for given in inputs[first:]:
        recorder.write(given)
    recorder.close()
    return sum(isinstance(item, Decided) for item in inputs[first:])


def _since(known: Sequence[Path], since: float) -> Sequence[Path]:
    """Return the last segment whose first cycle is before `since`, and all later segments."""
    for at in range(len(known) - 1, 0, -1):
        first = next((item for item in read_segment(known[at]) if isinstance(item, Decided)), None)
        if first is not None and first.now < since:
            return known[at:]
    return known


def segments(path: Path) -> list[Path]:
    """Return the segments of a recording, oldest first. A file is a recording of one segment.

    If the folder itself has no segments, its subfolder `recording/` is searched, as in the folder of a failed scenario.
    """
    if path.exists() and not path.is_dir():
        return [path]
    return _segments_in(path) or _segments_in(path / "recording")


def required_segments(path: Path) -> list[Path]:
    """Return the segments of a recording, oldest first. Raises RecordError where there is none."""
    if found := segments(path):
        return found
    below = min(path.rglob(f"cycles-*{SUFFIX}"), default=None)
    do_next = f"create one with `run --record {path}`" if below is None else f"there is one in {below.parent}"
    raise RecordError(f"{path} contains no recording; {do_next}")


def _segments_in(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"cycles-*{SUFFIX}"))


def read_segment(path: Path, lost_end: Callable[[str], object] = lambda _: None) -> Iterator[Input]:
    """Yield the inputs of one segment. An unfinished segment ends with its last complete line.

    Args:
        path: The segment.
        lost_end: Receives a sentence if the segment ends within a line.

    Raises:
        RecordError: The file is not a recording, or is a recording of another version.
    """
    for number, line in _lines(path, lost_end):
        try:
            given = read_line(line)
        except (ValueError, RecursionError) as error:
            raise RecordError(f"{path}, line {number}: {one_line(str(error))}") from None
        if number == 1 and not isinstance(given, Started):
            raise RecordError(f"{path} does not begin with a checkpoint; is it a recording of `run --record`?")
        if isinstance(given, Started) and given.version != VERSION:
            raise OtherVersionError(
                f"{path} is a recording of version {given.version}, this program reads version {VERSION}"
            )
        yield given


def _lines(path: Path, lost_end: Callable[[str], object]) -> Iterator[tuple[int, bytes]]:
    number, begun, size, total = 0, list[bytes](), 0, 0
    try:
        for piece in unpacked(path, zlib.decompressobj(wbits=31)):
            total += len(piece)
            if total > MAX_BYTES or number > MAX_LINES:
                raise RecordError(f"{path}: has more than {MAX_BYTES} bytes or {MAX_LINES} lines; no segment has")
            *ends, rest = piece.split(b"\n")
            for end in ends:
                number += 1
                yield number, b"".join((*begun, end))
                begun, size = [], 0
            begun.append(rest)  # joined once, at the end of the line: it may have many pieces
            size += len(rest)
            if size > MAX_LINE:
                raise RecordError(
                    f"{path}, line {number + 1}: has more than {MAX_LINE} bytes, and no recording has such a line"
                )
        if any(begun):
            lost_end(f"{path}: ends within a line, which is left out: the file was cut, or its writer was killed")
    except zlib.error as error:
        text = f"{error}; a segment is a gzip file named cycles-*{SUFFIX}"
        with open_input(path) as file:
            if file.read(2) != _MAGIC:
                text = "is no recording; name the folder of `run --record`, or one of its files"
        raise RecordError(f"{path}: {text}") from None
    except OSError as error:
        raise UnopenedError(path, str(error.strerror)) from None


def unpacked(path: Path, unzip: Any) -> Iterator[bytes]:
    """Yield the unpacked content of a gzip file in pieces of bounded size. Raises OSError, zlib.error."""
    with open_input(path) as file:
        while chunk := file.read(_CHUNK):
            while chunk:
                yield unzip.decompress(chunk, _CHUNK)
                chunk = unzip.unconsumed_tail
