"""Read the state of a recording right before an eviction, as the deciding cycle saw it."""

from __future__ import annotations

from pathlib import Path

from ..recording.events import Decided
from ..recording.segments import RecordError, read_segment, segments
from ..state import At, State, read_state
from ..state.recorded import apply_to


def state_before(path: Path, pod: str) -> State:
    """Return the state before a pod was evicted, or the state at the end if no recorded cycle evicted it.

    Args:
        path: A dump, a list, a recording, or the record of a scenario that has one.
        pod: The pod as `namespace/name`; empty for the state at the end.

    Raises:
        StateError: the file cannot be used.
    """
    known = segments(path) if path.is_dir() else [path] if path.name.startswith("cycles-") else []
    for segment in reversed(known) if pod else ():
        if (found := _before(segment, pod)) is not None:
            return found
    return read_state(path, At.END)


def _before(segment: Path, pod: str) -> State | None:
    """Return the state before the last cycle that evicted the pod in a segment; None if no cycle did."""
    try:
        inputs = read_segment(segment)
        moments = [decided.cycle for decided in inputs if isinstance(decided, Decided) and _evicts(decided, pod)]
        state = State(str(segment))
        for given in read_segment(segment) if moments else ():
            if isinstance(given, Decided) and given.cycle == moments[-1]:
                state.taken = given.now
                state.settle()
                return state
            apply_to(state, given)
    except RecordError:
        return None  # `read_state` reports what is wrong with the file
    return None


def _evicts(given: Decided, pod: str) -> bool:
    return any(eviction.task == pod for eviction in given.decisions.evictions)
