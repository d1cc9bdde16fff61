"""Read the state of a recording right before a decision, as the deciding cycle saw it, and find those that matter."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from ...monitors import MONITORS, Rules
from ...monitors.ledger import BURST
from ...scheduler.inputs import Decided, Input, ObjectSeen, PolicyLoaded
from ...scheduler.model.objects import Pod
from ...scheduler.model.task import job_key_of
from ...scheduler.recording.segments import RecordError, read_segment, segments
from ...virtual.state import At, State, read_state
from ...virtual.state.over_time import apply_to, inputs_over_time, state_over_time
from ..recorder.judge import Finding, Judge
from ..recorder.versions import VersionReader
from ..simulate.monitored import MonitoredRun

DECIDED = 10.0
"""Seconds within which the evictions of one decision are written, and their victims are marked."""


def states_before_evictions(recording: Path, pod: str) -> Iterator[State]:
    """Yield the states before each eviction or deletion of the pod `namespace/name` that ran. Raises StateError.

    The victims of a decision are evicted one after the other. So the state before the first of them comes first.
    """
    known = ""
    lately: deque[tuple[float, str]] = deque()
    for at, given in inputs_over_time(recording):
        seen = _pod(given)
        if seen is None or not _is_victim(seen, seen.metadata.key) or seen.metadata.uid in {uid for _, uid in lately}:
            continue
        lately.append((at, seen.metadata.uid))
        while lately[0][0] < at - DECIDED:
            lately.popleft()
        if seen.metadata.key == pod and seen.metadata.uid != known:
            known = seen.metadata.uid
            for moment, uid in dict.fromkeys((lately[0], lately[-1])):
                yield state_over_time(recording, moment, partial(_is, holds=partial(_is_marked, uid=uid)))


def states_while_waiting(recording: Path, name: str) -> Iterator[State]:
    """Yield the states right before a pod of a job that waited was bound, the last one first. Raises StateError.

    `name`: the pod, its PodGroup, or the owner of the pod, as `namespace/name`.
    """
    found: list[tuple[float, str]] = []
    waiting: set[str] = set()
    for at, given in inputs_over_time(recording):
        seen = _pod(given)
        if seen is None or not _belongs(seen, name):
            continue
        if not seen.spec.node_name:
            waiting.add(seen.metadata.uid)
        elif seen.metadata.uid in waiting:
            waiting.remove(seen.metadata.uid)
            found.append((at, seen.metadata.uid))
    for at, uid in reversed(found):
        yield state_over_time(recording, at, partial(_is, holds=partial(_has_uid, uid=uid)))


def findings(recording: Path, monitor: str, policy: str) -> list[Finding]:
    """Return what a monitor finds in the recording of a cluster. Raises StateError."""
    found: list[Finding] = []
    judge = Judge(found.append)
    VersionReader(judge, policy=policy or None).read_all(inputs_over_time(recording))
    judge.end(float("inf"))
    return [finding for finding in found if finding.monitor == monitor]


def state_before_finding(recording: Path, finding: Finding) -> State:
    """Return the state before the act in which a monitor finds something. Raises StateError."""
    is_about = partial(_is_about, name=finding.about)
    return state_over_time(recording, finding.at, partial(_is, holds=is_about))


def _pod(given: Input) -> Pod | None:
    return given.object if isinstance(given, ObjectSeen) and given.kind == "Pod" else None


def _is(given: Input, holds: Callable[[Pod], bool]) -> bool:
    seen = _pod(given)
    return seen is not None and holds(seen)


def _is_victim(seen: Pod, pod: str) -> bool:
    marks = {condition.type for condition in seen.status.conditions or () if condition.status == "True"}
    is_marked = seen.metadata.deletion_timestamp is not None or "DisruptionTarget" in marks
    return seen.metadata.key == pod and is_marked and seen.status.phase not in ("Succeeded", "Failed")


def _is_marked(seen: Pod, uid: str) -> bool:
    return _has_uid(seen, uid) and _is_victim(seen, seen.metadata.key)


def _has_uid(seen: Pod, uid: str) -> bool:
    return seen.metadata.uid == uid


def _belongs(seen: Pod, name: str) -> bool:
    """Whether a pod, its job or its owner has this name."""
    owners = (f"{seen.metadata.namespace}/{owner.name}" for owner in seen.metadata.owner_references or ())
    return _is_about(seen, name) or name in owners


def _is_about(seen: Pod, name: str) -> bool:
    """Whether a pod, or its job, has this name."""
    return name in (seen.metadata.key, job_key_of(seen))


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
    for segment in _segments(path):
        yield from read_segment(segment)


def state_before(path: Path, decides: Decides | None) -> State:
    """Return the state before the last cycle that `decides` accepts, or the state at the end if it accepts no cycle.

    `path`: a dump, a list, a recording, or the record of a scenario that has one.

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


def moments(path: Path, monitor: str) -> Iterator[tuple[float, int]]:
    """Yield the times and numbers of the cycles in which a monitor finds a violation, in order, each once.

    A violation that precedes every bind and eviction of the recording belongs to no cycle. An unknown
    monitor finds nothing. `path`: the folder of a recording, or one of its segments.
    """
    if monitor not in MONITORS:
        return
    inputs = [*inputs_of(path)]
    policy = [given.text for given in inputs if isinstance(given, PolicyLoaded)][-1:]
    monitors, now = MonitoredRun(Rules("".join(policy)), burst=BURST), 0.0
    acts: list[tuple[str, tuple[float, int]]] = []
    for recorded in inputs:
        monitors.observe(now, recorded)
        if isinstance(recorded, Decided):
            now = recorded.now
            monitors.begin_cycle(now, recorded.cycle)
            done = [act.task for act in recorded.decisions.binds]
            done += [act.task for act in recorded.decisions.evictions]
            acts += [(_short(task), (now, recorded.cycle)) for task in done]
            for eviction in recorded.decisions.evictions:
                monitors.evict(eviction.task, eviction.reason)
    seen: set[tuple[float, int]] = set()
    for found in (found for found in monitors.close() if found.monitor == monitor):
        about = _short(found.about)
        before = [(pod, moment) for pod, moment in acts if moment[0] <= found.time]
        own = [moment for pod, moment in before if pod == about or pod.startswith(f"{about}-")]
        moment = next(reversed(own or [moment for _, moment in before]), None)
        if moment is not None and moment not in seen:
            seen.add(moment)
            yield moment


def _short(key: str) -> str:
    return key.rpartition("/")[2]
