"""Read the state from a recording, or from a dump, which is a recording of one checkpoint."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from ...scheduler.inputs import (
    Assumed,
    Decided,
    Input,
    Noted,
    ObjectGone,
    ObjectSeen,
    PolicyLoaded,
    Remembered,
    Reverted,
    Started,
    Taken,
    Unnoted,
)
from ...scheduler.recording.segments import OtherVersionError as OtherRecordError
from ...scheduler.recording.segments import RecordError, read_segment, unpacked
from . import kueue
from .state import CutStateError, OtherVersionError, State, StateError


class At(StrEnum):
    """The moment of a recording whose state is read."""

    CHECKPOINT = "checkpoint"
    """The beginning of the last segment."""
    END = "end"
    """The last cycle."""


def read_recorded(path: Path, source: str, at: At) -> State:
    """Read the state of one segment. Raises StateError."""
    state, has_cycle, is_dump = State(source), False, False
    try:
        for given in read_segment(path):
            if has_cycle and at is At.CHECKPOINT:
                break
            is_dump = is_dump or isinstance(given, Taken)
            has_cycle = has_cycle or isinstance(given, Decided)
            apply_to(state, given)
    except OtherRecordError as error:
        raise OtherVersionError(source, str(error), "use the schedspec that wrote it, or write it again") from error
    except RecordError as error:
        raise StateError(source, str(error), "name a dump, a recording, or a file of `kubectl get -o json`") from error
    is_cut = not is_whole(path)
    if is_cut and not (has_cycle or is_dump):
        raise CutStateError(source, "ends before its state is complete", "copy or write it again")
    state.cut = is_cut
    if not is_dump and not has_cycle:
        raise StateError(source, "contains no cycle and so no time", "write it again with `schedspec dump`")
    state.settle()
    return state


def apply_to(state: State, given: Input) -> None:
    match given:
        case Started():
            state.scheduler_names, state.node_selector = given.scheduler_names, given.node_selector
        case PolicyLoaded():
            state.policy = given if given.text else None
        case ObjectSeen():
            state.put(given.kind, given.object)
        case ObjectGone():
            state.forget(given)
        case Assumed():
            state.assume(given)
        case Reverted():
            state.revert(given.key)
        case Decided():
            state.taken = given.now
        case Noted() if kueue.is_kept(given.object):
            kueue.put_served(state, given.object)
        case Unnoted():
            state.others.get(given.kind, {}).pop(given.key, None)
        case Taken():
            state.taken, state.redacted = given.at, given.redacted
            state.notes += given.notes


def later_inputs(path: Path) -> Iterator[tuple[float, Input]]:
    """Yield the inputs after the first cycle of a segment, each with the time of the next cycle. Raises RecordError."""
    before_cycle: list[Input] = []
    has_begun = False
    for given in read_segment(path):
        if isinstance(given, Decided):
            if has_begun:
                yield from ((given.now, earlier) for earlier in before_cycle)
            before_cycle, has_begun = [], True
        elif not isinstance(given, Remembered):
            before_cycle.append(given)


def is_whole(path: Path) -> bool:
    unzip = zlib.decompressobj(wbits=31)
    for _ in unpacked(path, unzip):
        pass
    return unzip.eof
