"""Read the state from recordings: of a scheduler (or a dump, which has one checkpoint), and of a cluster over time.

The recording of a cluster (`schedspec record`) has every input with its time, and what is missing between them.

A segment begins with a checkpoint of all objects at the time in its name. Lines `Passed` tell the time of the inputs
after them. A recorder that begins the next segment writes its time as the last line of the segment before.

The one rule: whatever is missing is reported as a `Gap`. If a segment does not begin at the time at which the readable
part of the segment before it ends, all versions between these times may be missing: the recorder did not run, or a file
was cut, damaged or removed. The recorder itself writes the gaps of single kinds.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

from ...scheduler import inputs
from ...scheduler.model.objects import read_annotations
from ...scheduler.model.times import timestamp
from ...scheduler.recording.segments import SUFFIX, RecordError, UnopenedError, read_segment, unpacked
from ...scheduler.recording.segments import OtherVersionError as OtherRecordError
from . import kueue
from .state import CutStateError, OtherVersionError, State, StateError


class At(StrEnum):
    CHECKPOINT = "checkpoint"
    """The beginning of the last segment."""
    END = "end"


def read_recorded(path: Path, source: str, at: At) -> State:
    """Read the state of one segment. Raises StateError."""
    state, has_cycle, is_dump = State(source), False, False
    try:
        for given in read_segment(path):
            if has_cycle and at is At.CHECKPOINT:
                break
            is_dump = is_dump or isinstance(given, inputs.Taken)
            has_cycle = has_cycle or isinstance(given, inputs.Decided)
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


def apply_to(state: State, given: inputs.Input) -> None:
    match given:
        case inputs.Started():
            state.scheduler_names, state.node_selector = given.scheduler_names, given.node_selector
        case inputs.PolicyLoaded():
            state.policy = given if given.text else None
        case inputs.ObjectSeen():
            state.put(given.kind, given.object)
        case inputs.ObjectGone():
            state.forget(given)
        case inputs.Assumed():
            state.assume(given)
        case inputs.Reverted():
            state.revert(given.key)
        case inputs.Decided():
            state.taken = given.now
        case inputs.Noted() if _is_gang(given.object["apiVersion"], given.object["kind"]):
            state.gangs[kueue.key_of(given.object)] = given.object
        case inputs.Unnoted() if _is_gang(given.api_version, given.kind):
            state.gangs.pop(given.key, None)
        case inputs.Noted() if kueue.is_kept(given.object):
            kueue.put_served(state, given.object)
        case inputs.Unnoted():
            state.others.get(given.kind, {}).pop(given.key, None)
        case inputs.Taken():
            state.taken, state.redacted = given.at, given.redacted
            state.notes += given.notes


def _is_gang(api_version: str, kind: str) -> bool:
    return kind == "PodGroup" and api_version.startswith("scheduling.k8s.io/")


def later_inputs(path: Path) -> Iterator[tuple[float, inputs.Input]]:
    """Yield the inputs after the first cycle of a segment, each with the time of the next cycle. Raises RecordError."""
    before_cycle: list[inputs.Input] = []
    has_begun = False
    for given in read_segment(path):
        if isinstance(given, inputs.Decided):
            if has_begun:
                yield from ((given.now, earlier) for earlier in before_cycle)
            before_cycle, has_begun = [], True
        elif not isinstance(given, inputs.Remembered):
            before_cycle.append(given)


def is_whole(path: Path) -> bool:
    unzip = zlib.decompressobj(wbits=31)
    for _ in unpacked(path, unzip):
        pass
    return unzip.eof


PREFIX = "versions-"
_NAME = re.compile(rf"{PREFIX}(\d{{8}}T\d{{6}})\.(\d{{3}})Z{re.escape(SUFFIX)}")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?")
_QUIET = 10.0
"""Seconds without any line after which the recorder did not run: it writes the time every second."""
_NEAR, _MAX_GAPS = 60.0, 20
"""Seconds before a state in which gaps are noted, and their maximum number."""
Timed = tuple[float, inputs.Input]
"""An input with the time at which it was observed, in seconds since 1970."""


def segment_name(at: float) -> str:
    """Return the name of the segment that begins at a time, which is read with a precision of milliseconds."""
    moment = datetime.fromtimestamp(round(at, 3), UTC)
    return f"{PREFIX}{moment:%Y%m%dT%H%M%S}.{moment.microsecond // 1000:03}Z{SUFFIX}"


def begin_of(segment: Path) -> float:
    """Return the time at which a segment begins, from its name."""
    found = _NAME.fullmatch(segment.name)
    assert found is not None, segment
    moment = datetime.strptime(found[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    return round(moment.timestamp() + int(found[2]) / 1000, 3)


def segments_over_time(folder: Path) -> list[Path]:
    """Return the segments of a recording of a cluster, the oldest first; none if the folder holds no such recording."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))


def inputs_over_time(folder: Path, since: float = -float("inf"), until: float = float("inf")) -> Iterator[Timed]:
    """Yield the inputs of a recording up to `until`, each with its time; the first ones are those of a checkpoint.

    A checkpoint begins with `Started` and ends with `Taken`. The first checkpoint is the last one before `since`. Later
    ones are yielded only after a gap, since they repeat what is known. `Passed` shows that nothing happened meanwhile.

    Raises:
        StateError: the folder has no readable segment, or one of another version of the format.
    """
    known = segments_over_time(folder)
    first = max((number for number, path in enumerate(known) if begin_of(path) <= since), default=0)
    while first and not _has_checkpoint(known[first]):
        first -= 1
    ended: float | None = None
    for segment in known[first:]:
        began, rest = begin_of(segment), _readable(segment)
        if began > until:
            break
        checkpoint = _checkpoint_in(rest)
        if checkpoint is None:
            continue
        if ended is not None and began != ended:
            yield began, inputs.Gap("", ended, began, "the recorder did not run, or a file is cut or missing")
        if began != ended:
            yield from ((began, given) for given in checkpoint)
        del checkpoint
        ended = began
        for given in rest:
            if isinstance(given, inputs.Passed):
                if given.at > until:
                    return
                ended = given.at
            yield ended, given
    if ended is None:
        remedy = "name the folder of `schedspec record --out`, and a time after its first checkpoint"
        raise StateError(str(folder), "contains no recording of a cluster with a complete checkpoint", remedy)


def inputs_after_first(folder: Path) -> Iterator[Timed]:
    """Yield the inputs of a recording after its first checkpoint, without those about the recording itself."""
    is_after = False
    for at, given in inputs_over_time(folder):
        if is_after and not isinstance(given, inputs.Passed | inputs.Gap | inputs.Started | inputs.Taken):
            yield at, given
        is_after = is_after or isinstance(given, inputs.Taken)


def _checkpoint_in(given_inputs: Iterator[inputs.Input]) -> list[inputs.Input] | None:
    """Return the first inputs of a segment, its checkpoint; None if the file is cut or damaged before its end."""
    found: list[inputs.Input] = []
    for given in given_inputs:
        found.append(given)
        if isinstance(given, inputs.Taken):
            return found
    return None


def _has_checkpoint(segment: Path) -> bool:
    return any(isinstance(given, inputs.Taken) for given in _readable(segment))


def _readable(segment: Path) -> Iterator[inputs.Input]:
    """Yield the inputs of a segment up to the place at which it is cut or damaged. Raises StateError."""
    try:
        yield from read_segment(segment)
    except OtherRecordError as error:
        raise OtherVersionError(str(segment), str(error), "use the schedspec that wrote it") from error
    except UnopenedError as error:
        raise StateError(
            str(segment), str(error).removeprefix(f"{segment}: "), "permit access, or remove it"
        ) from error
    except RecordError:
        return


def span_of(folder: Path) -> tuple[float, float]:
    """Return the times at which a recording begins and ends. Raises StateError."""
    known = segments_over_time(folder)
    begins = next((begin_of(segment) for segment in known if _has_checkpoint(segment)), None)
    last = begin_of(known[-1]) if known else 0.0
    ends = max(at for at, _ in inputs_over_time(folder, last))
    assert begins is not None
    return begins, ends


def state_over_time(
    folder: Path, at: float | None = None, before: Callable[[inputs.Input], bool] = lambda _given: False
) -> State:
    """Return the state of a recorded cluster at a time, or at the end of its recording.

    `before`: the state ends right before the first input at this time for which this is true.

    Raises:
        StateError: the recording cannot be read, or does not cover the time.
    """
    begins, ends = span_of(folder)
    at = ends if at is None else at
    if not begins <= at <= ends:
        what = f"has no state at {timestamp(at)}: it begins at {timestamp(begins)} and ends at {timestamp(ends)}"
        raise StateError(str(folder), what, "name a time between these")
    state, gaps = State(str(folder)), list[inputs.Gap]()
    for moment, given in inputs_over_time(folder, at, at):
        if moment >= at and before(given):
            break
        if isinstance(given, inputs.Started):
            state = State(str(folder))
        elif isinstance(given, inputs.Gap):
            gaps.append(given)
        apply_to(state, given)
        state.taken = moment
    if at - state.taken > _QUIET:
        until = next(begin_of(segment) for segment in segments_over_time(folder) if begin_of(segment) > at)
        gaps.append(inputs.Gap("", state.taken, until, "the recorder did not run, or a file is cut"))
        state.notes.append(f"the state is that of {timestamp(state.taken)}")
    state.notes += [shown(gap) for gap in gaps[-_MAX_GAPS:] if gap.until >= at - _NEAR]
    state.taken = at
    for item in (item for found in state.objects.values() for item in found.values()):
        item.metadata.annotations = read_annotations(item.metadata.annotations)
    state.keep_scheduled()
    return state


def shown(gap: inputs.Gap) -> str:
    """Return a gap as a clause."""
    what = f"versions of {gap.kind or 'all kinds'}"
    how = "may be missing" if gap.is_lost else "were observed late"
    return f"{what} from {timestamp(gap.since)} to {timestamp(gap.until)} {how}: {gap.why}"


def time_in(folder: Path, text: str) -> float:
    """Return the time that a user names, in UTC: `02:13` or `02:13:07`, or ISO 8601.

    A time without a date is the last such time in the recording, or on its last day if the recording has none.

    Raises:
        StateError: the text is no time.
    """
    clock = _CLOCK.fullmatch(text)
    begins, ends = span_of(folder)
    try:
        if clock is None:
            moment = datetime.fromisoformat(text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        day = datetime.fromtimestamp(ends, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        hour, minute, second = int(clock[1]), int(clock[2]), float(clock[3] or 0)
        if hour > 23 or minute > 59 or second >= 60:
            raise ValueError(text)
        found = (day + timedelta(hours=hour, minutes=minute, seconds=second)).timestamp()
        return found - 86400.0 if found > ends and found - 86400.0 >= begins else found
    except (ValueError, OverflowError):
        raise StateError(
            text or "an empty text", "is no time", "write 02:13, 02:13:07 or 2026-11-27T02:13:00Z; times are UTC"
        ) from None
