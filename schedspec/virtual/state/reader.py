"""Read a state from a file or a folder, in any of its formats."""

from __future__ import annotations

import zlib
from pathlib import Path

from ...scheduler.recording.segments import SUFFIX, segments
from .errors import StateError
from .listed import read_lists
from .podless import add_missing_pods
from .recorded import At, read_recorded
from .state import State

__all__ = ["At", "read_state"]

_MAGIC = b"\x1f\x8b"
_BEGINS = b'{"type":"started"'
_LISTS = (".json", ".yaml", ".yml", ".gz")


def read_state(path: Path, at: At = At.END) -> State:
    """Read a state, and add the pods of jobs whose pods do not exist yet.

    Args:
        path: A dump or a recording (file or folder), or files of `kubectl get -o json` or `-o yaml`.
        at: The moment of a recording.

    Raises:
        StateError: the file cannot be read, is cut, is too large, or belongs to another version or queueing system.
    """
    state = _read(path, at)
    add_missing_pods(state)
    return state


def _read(path: Path, at: At) -> State:
    source = str(path)
    if not path.exists():
        raise StateError(source, "does not exist", "write one with `schedspec dump`")
    if path.is_dir():
        found = segments(path)
        if found:
            return read_recorded(found[-1], source, at)
        inside = sorted(entry for entry in path.iterdir() if entry.suffix in _LISTS)
        if len(inside) == 1 and _is_recording(inside[0]):
            return read_recorded(inside[0], source, at)
        if not inside:
            raise StateError(source, f"contains no cycles-*{SUFFIX} and no list", "name a dump, a recording, or lists")
        return read_lists(inside, source)
    if _is_recording(path):
        return read_recorded(path, source, at)
    return read_lists([path], source)


def _is_recording(path: Path) -> bool:
    """Whether a file is compressed and begins with the header of a recording, or is cut off before any text."""
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise StateError(str(path), f"cannot be read: {error.strerror}", "name a readable file") from error
    if head[:2] != _MAGIC:
        return False
    try:
        text = zlib.decompressobj(wbits=31).decompress(head)
    except zlib.error as error:
        raise StateError(str(path), f"is not compressed by gzip: {error}", "copy or write it again") from error
    return not text or text.startswith(_BEGINS)
