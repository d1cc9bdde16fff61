"""Read the states right before incidents from the recording of a cluster, as its scheduler saw them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from ...scheduler.inputs import Input, ObjectSeen
from ...scheduler.model.objects import Pod
from ...scheduler.model.task import job_key_of
from ...virtual.state import State
from ...virtual.state.over_time import inputs_over_time, state_over_time
from ..recorder.judge import Finding, Judge
from ..recorder.versions import VersionReader


def states_before_evictions(recording: Path, pod: str) -> Iterator[State]:
    """Yield the state before each eviction or deletion of the pod `namespace/name` that ran. Raises StateError."""
    known = ""
    for at, given in inputs_over_time(recording):
        seen = _pod(given)
        if seen is not None and seen.metadata.uid != known and _is_victim(seen, pod):
            known = seen.metadata.uid
            yield state_over_time(recording, at, partial(_is, holds=partial(_is_victim, pod=pod)))


def states_before_findings(recording: Path, monitor: str, policy: str) -> Iterator[State]:
    """Yield the state before each act in which a monitor finds something. Raises StateError."""
    found: list[Finding] = []
    judge = Judge(found.append)
    VersionReader(judge, policy=policy or None).read_all(inputs_over_time(recording))
    judge.end(float("inf"))
    for finding in (finding for finding in found if finding.monitor == monitor):
        is_about = partial(_is_about, name=finding.about)
        yield state_over_time(recording, finding.at, partial(_is, holds=is_about))


def _pod(given: Input) -> Pod | None:
    """Return the pod whose version an input is."""
    return given.object if isinstance(given, ObjectSeen) and given.kind == "Pod" else None


def _is(given: Input, holds: Callable[[Pod], bool]) -> bool:
    seen = _pod(given)
    return seen is not None and holds(seen)


def _is_victim(seen: Pod, pod: str) -> bool:
    marks = {condition.type for condition in seen.status.conditions or () if condition.status == "True"}
    is_marked = seen.metadata.deletion_timestamp is not None or "DisruptionTarget" in marks
    return seen.metadata.key == pod and is_marked and seen.status.phase not in ("Succeeded", "Failed")


def _is_about(seen: Pod, name: str) -> bool:
    """Whether a pod, or its job, has this name."""
    return name in (seen.metadata.key, job_key_of(seen))
