"""Read the state of a recording right before a decision, as the deciding cycle saw it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ...scheduler.recording.events import Decided, Input
from ...scheduler.recording.segments import RecordError, read_segment, segments
from ...virtual.state import At, State, read_state
from ...virtual.state.recorded import apply_to

Decides = Callable[[Decided], bool]
Moment = tuple[float, int]
"""Time and number of a cycle: an instant can have several cycles, and a restarted scheduler counts from 1 again."""


def evicts(pod: str) -> Decides:
    """Return a predicate: whether a cycle evicts the pod `namespace/name`."""
    return lambda given: any(eviction.task == pod for eviction in given.decisions.evictions)


def at_moment(moment: Moment) -> Decides:
    """Return a predicate: whether a cycle is the cycle of this moment."""
    return lambda given: (given.now, given.cycle) == moment


def is_recording(path: Path) -> bool:
    """Whether a path is a recording (a folder of segments, or one segment): it holds cycles, not only a state."""
    return bool(_segments(path))


def inputs_of(path: Path) -> Iterator[Input]:
    """Yield all inputs of a recording, the oldest first. Raises RecordError."""
    for segment in _segments(path):
        yield from read_segment(segment)


def state_before(path: Path, decides: Decides | None) -> State:
    """Return the state before the last cycle that `decides` accepts, or the state at the end if it accepts no cycle.

    Args:
        path: A dump, a list, a recording, or the record of a scenario that has one.
        decides: Predicate on cycles; None for the state at the end.

    Raises:
        StateError: the file cannot be used.
    """
    if decides is not None:
        for segment in reversed(_segments(path)):
            if (found := _before(segment, decides)) is not None:
                return found
    return read_state(path, At.END)


def _segments(path: Path) -> list[Path]:
    return segments(path) if path.is_dir() else [path] if path.name.startswith("cycles-") else []


def _before(segment: Path, decides: Decides) -> State | None:
    """Return the state before the last cycle of a segment that `decides` accepts; None if it accepts none."""
    try:
        moments = [given.cycle for given in read_segment(segment) if isinstance(given, Decided) and decides(given)]
        state = State(str(segment))
        for given in read_segment(segment) if moments else ():
            if isinstance(given, Decided) and given.cycle == moments[-1]:
                state.taken = given.now
                state.settle()
                return state
            apply_to(state, given)
    except RecordError:
        return None  # `read_state` reports the problem with the file
    return None
