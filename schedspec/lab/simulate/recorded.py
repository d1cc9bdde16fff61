"""The load of a recording: all arrivals and ends after the checkpoint from which a simulation begins.

1. A PodGroup and its pods arrive when the recording shows the first of them.
2. A job runs as long as it ran in the recording. The run time of a job that still runs at the end is unknown.
3. Nodes are added, changed and removed as recorded. Queues and policies are not, because a plan varies them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ...scheduler.inputs import Input, ObjectGone, ObjectSeen
from ...scheduler.model import objects
from ...scheduler.model.task import COMPLETED, job_key_of, status_of
from ...scheduler.model.times import seconds
from ...scheduler.recording.segments import RecordError, segments
from ...virtual import Adopted, Arrival
from ...virtual.state import State, StateError
from ...virtual.state.over_time import inputs_after_first, segments_over_time
from ...virtual.state.recorded import later_inputs
from .present import RunTimes

_VARIED = ("Queue", "Pod", "PodGroup")


@dataclass(slots=True)
class _Job:
    at: float
    group: objects.PodGroup | None = None
    pods: dict[str, objects.Pod] = field(default_factory=dict)
    """First version of each pod, by key."""
    running: dict[str, float] = field(default_factory=dict)
    """Running pods → the time of their start."""
    ended: float | None = None
    began: float | None = None

    @property
    def run_time(self) -> float | None:
        """Return the seconds from the last start of a pod to the end of the job; None if the job had not ended."""
        if self.began is None or self.ended is None:
            return None
        return max(self.ended - self.began, 1.0)


class Recorded:
    """The later inputs of a recording. Raises StateError."""

    def __init__(self, path: Path, state: State) -> None:
        self._jobs: dict[str, _Job] = {}
        self._known = {key: _Job(state.taken, state.objects["PodGroup"][key]) for key in state.of_job()}
        self._others: list[tuple[float, Input]] = []
        self.until = state.taken
        """Time of the last cycle."""
        for key, pods in state.of_job().items():
            for pod in pods:
                self._pod(self._known[key], pod)
        try:
            is_of_cluster = bool(segments_over_time(path))
            for at, given in inputs_after_first(path) if is_of_cluster else later_inputs(segments(path)[-1]):
                self.until = max(self.until, at)
                self._read(at, given)
        except (RecordError, IndexError) as error:
            raise StateError(str(path), f"is no recording: {error}", "name a recording of `run --record`") from error
        self.run_times = {key: job.run_time for key, job in self._known.items() if job.run_time is not None}
        """Job of the state → its total run time in seconds."""

    def __len__(self) -> int:
        return sum(job.group is not None for job in self._jobs.values())

    def _read(self, at: float, given: Input) -> None:
        match given:
            case ObjectSeen(kind="PodGroup"):
                self._of(given.object.metadata.key, at).group = given.object
            case ObjectSeen(kind="Pod"):
                if key := job_key_of(given.object):
                    self._pod(self._of(key, at), given.object, at)
            case ObjectGone(kind="Pod"):
                for job in (*self._known.values(), *self._jobs.values()):
                    if job.running.pop(given.key, None) is not None and not job.running:
                        job.ended = at
            case ObjectSeen() | ObjectGone() if given.kind not in _VARIED:
                self._others.append((at, given))

    def _of(self, key: str, at: float) -> _Job:
        return self._known.get(key) or self._jobs.setdefault(key, _Job(at))

    @staticmethod
    def _pod(job: _Job, pod: objects.Pod, at: float = 0.0) -> None:
        key, status = pod.metadata.key, status_of(pod)[0]
        job.pods.setdefault(key, pod)
        if pod.status.phase == "Running" and key not in job.running:
            job.running[key] = job.began = seconds(pod.status.start_time) or at
            job.ended = None
        elif status & COMPLETED and job.running.pop(key, None) is not None and not job.running:
            job.ended = at

    def arrivals(self, run_times: RunTimes) -> Iterator[Arrival]:
        """Yield the load; jobs without a known run time follow the rule of `run_times`."""
        known = sorted(job.run_time for job in self._jobs.values() if job.run_time is not None)
        usual = known[len(known) // 2] if known else 3600.0
        found: list[tuple[float, Any]] = [*self._others]
        for _, job in sorted(self._jobs.items()):
            if job.group is not None:
                total = job.run_time or run_times.of(job.group, None, usual)[0]
                pods = tuple(_pending(pod) for _, pod in sorted(job.pods.items()))
                group = msgspec.structs.replace(job.group, status=objects.PodGroupStatus("Pending"))
                found.append((job.at, Adopted(group, pods, total)))
        for at, item in sorted(found, key=lambda entry: entry[0]):
            yield Arrival(at, item)


def _pending(pod: objects.Pod) -> objects.Pod:
    meta = msgspec.structs.replace(pod.metadata, deletion_timestamp=None)
    return objects.Pod(meta, msgspec.structs.replace(pod.spec, node_name=""), objects.PodStatus())
