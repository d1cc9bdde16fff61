"""Read a state from a file or a folder, in any of its formats."""

from __future__ import annotations

import zlib
from pathlib import Path

from ...scheduler.model.input_files import open_input
from ...scheduler.recording.segments import SUFFIX, segments
from . import kueue
from .known_jobs import add_missing_pods
from .listed import REMEDY, read_lists
from .over_time import At, begin_of, read_recorded, segments_over_time, state_over_time
from .state import ForeignStateError, State, StateError

_OF_KUEUE = "kueue.x-k8s.io/managed"
"""A label of every pod that Kueue admits."""
_MAGIC = b"\x1f\x8b"
_BEGINS = b'{"type":"started"'
_LISTS = (".json", ".yaml", ".yml", ".gz")


def read_state(path: Path, at: At | float = At.END, *, with_kueue: bool = False) -> State:
    """Read a state, and add the pods of jobs whose pods do not exist yet.

    Args:
        path: A dump or a recording (file or folder), or files of `kubectl get -o json` or `-o yaml`.
        at: The moment of a recording; of a cluster's recording, also a time in seconds since 1970.
        with_kueue: Whether the caller asks Kueue itself; else a state in which only Kueue decides is refused.

    Raises:
        StateError: the file cannot be read, is cut, is too large, or belongs to another version or queueing system.
    """
    state = _read(path, at)
    _check(state)
    if not with_kueue:
        require_ours(state)
    add_missing_pods(state)
    return state


def require_ours(state: State) -> None:
    """Check that our own scheduler can decide on a state. Raises ForeignStateError or StateError."""
    kinds = ", ".join(sorted(state.others))
    if state.objects["PodGroup"]:
        if kinds:
            state.notes.append(f"Kueue decides here too ({kinds}): its pods count as pods that are not scheduled here")
    elif kinds:
        raise ForeignStateError(
            state.source,
            f"contains Kueue's objects ({kinds}) and no PodGroup: Kueue decides in this cluster",
            "ask Kueue itself with `schedspec plan --scheduler kueue`; this needs Queues and PodGroups of "
            "scheduling.volcano.sh",
        )
    if not state.objects["Node"]:
        raise StateError(state.source, "has no Node", REMEDY)


def _check(state: State) -> None:
    """Raise ForeignStateError for pods of Kueue without the objects by which Kueue decides."""
    managed = sum(_OF_KUEUE in (pod.metadata.labels or {}) for pod in state.objects["Pod"].values())
    if managed and not state.objects["PodGroup"] and not state.others:
        raise ForeignStateError(
            state.source,
            f"contains {managed} pods that Kueue manages, no PodGroup, and no object of Kueue: Kueue decides in this "
            "cluster",
            f"add {','.join(plural for plural, _ in kueue.PLURALS.values())} to the list, and plan with "
            "--scheduler kueue",
        )


def holds_load(path: Path) -> bool:
    """Whether a path is the folder of a recording, which also has what happened after its first state."""
    return path.is_dir() and bool(segments(path) or segments_over_time(path))


def _read(path: Path, at: At | float) -> State:
    source = str(path)
    if not path.exists():
        raise StateError(source, "does not exist", "write one with `schedspec dump`")
    if known := segments_over_time(path):
        return state_over_time(
            path, at if not isinstance(at, At) else begin_of(known[0]) if at is At.CHECKPOINT else None
        )
    if not isinstance(at, At):
        raise StateError(source, "has one state, not one at each time", "name the folder of `schedspec record --out`")
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
        with open_input(path) as file:
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
