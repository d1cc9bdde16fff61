"""Write a recording of a cluster into a folder: segments that begin with a checkpoint, within bounds of age and size.

1. A segment is begun with all objects of the cluster; later versions follow, each after the time of its observation.
2. Every flush writes the time, so that a reader knows up to when nothing else happened.
3. A new segment ends the old one with its own time. A killed recorder cannot, and so the reader finds the gap.

The one rule: after every flush the folder holds at most `most` bytes, and no segment that ended before `keep` seconds.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

import filelock

from ...api.errors import HarnessError
from ...scheduler.inputs import Input, Passed, write_line
from ...virtual.state.over_time import begin_of, segment_name, segments_over_time

MAX_SEGMENT = 256 << 20
"""Bytes before compression after which a segment ends, beside its checkpoint; readers refuse four times as many."""
MAX_SECONDS = 3600.0
"""Seconds after which a segment ends, so that the state at any time is near a checkpoint."""
_PARTS = 8
"""A segment ends at this part of all bytes, so that the oldest one is a small part of the recording."""
LEAST_BYTES = 1 << 20
LOCK = ".recorder.lock"


class FolderError(HarnessError):
    """A folder in which no recording can be written."""


class VersionWriter:
    """Write a recording of a cluster. Only one process writes into a folder. Not thread-safe.

    Args:
        folder: The folder; it is created for its owner only, because a recording has objects of every namespace.
        keep: Seconds for which segments are kept.
        most: Maximum bytes of all segments.
        clock: Returns seconds since 1970.

    Raises:
        FolderError: another recorder writes into the folder, or it cannot be written.
    """

    def __init__(self, folder: Path, keep: float, most: int, clock: Callable[[], float]) -> None:
        self.folder, self._keep, self._most, self._clock = folder, keep, most, clock
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = filelock.FileLock(folder / LOCK, timeout=0)
            self._lock.acquire()
        except filelock.Timeout:
            text = f"{folder}: another recorder writes here\n  do next: end it, or name another --out"
            raise FolderError(text) from None
        except OSError as error:
            raise FolderError(f"{folder}: {error.strerror}\n  do next: name a folder that can be written") from error
        self._raw: IO[bytes] | None = None
        self._file: gzip.GzipFile | None = None
        self._path = folder
        self._began = self._written = self._checkpoint = self._first = 0.0
        self._closed = {path: path.stat().st_size for path in segments_over_time(folder)}
        """Ended segments, the oldest first, with their sizes."""
        self.at = max(map(begin_of, self._closed), default=0.0)
        """Time of the last line. Times grow, even if the clock is set back."""
        self.bytes = sum(self._closed.values())
        """Size of all segments after the last flush."""

    @property
    def wants_checkpoint(self) -> bool:
        """Whether a new segment has to be begun: at first, and when the present one is large or old."""
        if self._raw is None:
            return True
        size = self._raw.tell()
        is_large = size - self._first >= max(self._most // _PARTS - self._first, self._first)
        return is_large or self._written >= MAX_SEGMENT or self._now() - self._began >= MAX_SECONDS

    def begin(self, checkpoint: Iterable[Input]) -> None:
        """End the present segment, and begin the next one with a checkpoint, which ends with `Taken`.

        Raises:
            OSError: the folder cannot be written.
            FolderError: a checkpoint alone takes more than half of the permitted bytes.
        """
        at = max(self._now(), round(self.at + 0.001, 3))
        self._end(at)
        self._path = self.folder / segment_name(at)
        self._path.touch(mode=0o600, exist_ok=False)
        self._raw = self._path.open("wb")
        self._file = gzip.GzipFile(filename="", mode="wb", fileobj=self._raw, compresslevel=6, mtime=0)
        self.at = self._began = at
        self._written = 0
        for given in checkpoint:
            self._file.write(write_line(given) + b"\n")
        self._file.flush(zlib.Z_SYNC_FLUSH)
        self._first = self._raw.tell()
        if self._first > self._most // 2:
            self._end(None)
            self._path.unlink()
            del self._closed[self._path]
            least = 4 * int(self._first)
            raise FolderError(
                f"{self.folder}: one state of this cluster takes {int(self._first):,} of {self._most:,} bytes\n"
                f"  do next: allow at least --max-size {least}"
            )
        self._bound()

    def write(self, given: Input) -> None:
        """Write an input that was observed now. Raises OSError."""
        if self._file is None:
            return
        self._pass(self._now())
        self._line(given)

    def flush(self) -> None:
        """Write the time and everything before it to the disk, and delete what exceeds the bounds. Raises OSError."""
        if self._file is not None and self._raw is not None:
            self._pass(self._now())
            self._file.flush(zlib.Z_SYNC_FLUSH)
            self._raw.flush()
            self._bound()

    def close(self) -> None:
        """End the recording. Raises OSError."""
        try:
            self._end(max(self._now(), self.at))
        finally:
            self._lock.release()

    def give_up(self) -> None:
        """End the present segment where it is, after an error of the disk; the next `begin` continues after a gap."""
        try:
            self._end(None)
        except OSError:
            self._file = self._raw = None

    def _now(self) -> float:
        return max(self.at, round(self._clock(), 3))

    def _pass(self, at: float) -> None:
        if at > self.at:
            self.at = at
            self._line(Passed(at))

    def _line(self, given: Input) -> None:
        assert self._file is not None
        line = write_line(given) + b"\n"
        self._written += len(line)
        self._file.write(line)

    def _end(self, at: float | None) -> None:
        """End the present segment at a time, which is where the next one begins."""
        if self._file is None or self._raw is None:
            return
        file, raw = self._file, self._raw
        if at is not None:
            self._pass(at)
        self._file = self._raw = None
        try:
            file.close()
        finally:
            raw.close()
            self._closed[self._path] = self._path.stat().st_size

    def _bound(self) -> None:
        """Delete the oldest segments until both bounds hold."""
        present = self._raw.tell() if self._raw is not None else 0
        begins = [*map(begin_of, self._closed), self._began]
        for path, ended in zip([*self._closed], begins[1:], strict=True):
            if sum(self._closed.values()) + present <= self._most and ended >= self.at - self._keep:
                break
            path.unlink(missing_ok=True)
            del self._closed[path]
        self.bytes = sum(self._closed.values()) + present
