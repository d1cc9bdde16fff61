"""Begin a simulation from a state: show the state to the core, and continue its work.

Running work needs a remaining run time, and waiting work a run time. A cluster knows neither, so `RunTimes` defines
a rule. The later inputs of a recording (`RecordedLoad`) are a load:

1. A PodGroup and its pods arrive when the recording shows the first of them.
2. A job runs as long as it ran in the recording. The run time of a job that still runs at the end is unknown.
3. Nodes are added, changed and removed as recorded. Queues and policies are not, because a plan varies them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ...scheduler.inputs import Input, ObjectGone, ObjectSeen
from ...scheduler.model import objects, resources, times
from ...scheduler.model.demand import requests_of
from ...scheduler.model.task import COMPLETED, job_key_of, status_of
from ...scheduler.model.times import seconds
from ...scheduler.recording.segments import RecordError, segments
from ...virtual import Adopted, Arrival, OnEviction, Simulation
from ...virtual.state import State, StateError
from ...virtual.state.over_time import inputs_after_first, later_inputs, segments_over_time

ANNOTATION = "schedspec.dev/run-time"
"""Annotation of a PodGroup: the total run time of the job, such as `90m`."""
SHORTEST = 60.0
"""Minimum run time in seconds where the rule derives it from an age: a job may have just begun."""


@dataclass(frozen=True, slots=True)
class RunTimes:
    """The rule for run times: the first source that applies to a job decides.

    1. `known`: the total run time, by the key of the job.
    2. The annotation `schedspec.dev/run-time`: the total run time.
    3. `fixed`: the seconds that the job still runs.
    4. The age: a job that has run for `a` seconds still runs for `factor × a`. If only the age is known and every time
       scale is equally likely, the quartiles of the remaining time are a/3, a and 3a. A job that has not begun runs as
       long as the median of all running jobs.
    """

    known: Mapping[str, float] = field(default_factory=dict)
    fixed: float | None = None
    factor: float = 1.0

    def of(self, group: objects.PodGroup, age: float | None, usual: float) -> tuple[float, float]:
        """Return total run time and elapsed part in seconds. A waiting job has no `age` and runs for `usual`."""
        done = age or 0.0
        total = self.known.get(group.metadata.key)
        if total is None:
            total = times.duration((group.metadata.annotations or {}).get(ANNOTATION, ""))
        if total is None and self.fixed is not None:
            return done + self.fixed, done
        if total is not None:
            return max(total, done + 1.0), done
        return (done + max(done * self.factor, SHORTEST), done) if age is not None else (max(usual, SHORTEST), 0.0)


ENDLESS = RunTimes(fixed=math.inf)
"""Run times with which no work ends, for the immediate effects of a change."""


@dataclass(slots=True)
class Present:
    """The contents of a state, as a plan reports them."""

    running: int = 0
    waiting: int = 0
    foreign_pods: int = 0
    """Pods that occupy capacity and are not scheduled here."""
    without_owner: int = 0
    """Jobs whose pods no controller creates again."""


def begin(
    simulation: Simulation, state: State, run_times: RunTimes, on_eviction: OnEviction = OnEviction.REPLACE
) -> Present:
    """Show a state to a simulation that has not run, at the time of the state."""
    found, pods_of = Present(), state.of_job()
    members = {pod.metadata.key for pods in pods_of.values() for pod in pods}
    for given in state.inputs():
        if given.kind == "Pod" and given.object.metadata.key not in members:
            found.foreign_pods += 1
            simulation.put("Pod", given.object)
        elif given.kind == "Queue":
            simulation.put("Queue", opened(given.object))
        elif given.kind not in ("Pod", "PodGroup"):
            simulation.put(given.kind, given.object)
    ages = {key: _age(pods, state.taken) for key, pods in pods_of.items()}
    usual = _usual([age for age in ages.values() if age is not None], run_times)
    for key, pods in pods_of.items():
        group = state.objects["PodGroup"][key]
        age = ages[key]
        total, done = run_times.of(group, age, usual)
        has_owner = any(pod.metadata.owner_references for pod in pods)
        found.without_owner += not has_owner
        found.running += age is not None
        found.waiting += age is None
        owner = on_eviction if has_owner else OnEviction.VANISH
        simulation.carry_out(Adopted(group, tuple(pods), total, done, _mean(pods), owner))
    return found


def opened(queue: objects.Queue) -> objects.Queue:
    """Return the queue as its controller shows it: open, unless its status names another state."""
    if queue.status.state:
        return queue
    return objects.Queue(queue.metadata, queue.spec, objects.QueueStatus("Open"))


def _age(pods: list[objects.Pod], now: float) -> float | None:
    """Return how long the youngest running pod has run, in seconds; None if no pod runs."""
    begun = [
        times.seconds(pod.status.start_time or pod.metadata.creation_timestamp)
        for pod in pods
        if pod.status.phase == "Running" and pod.spec.node_name
    ]
    return max(now - max(begun), 0.0) if begun else None


def _usual(ages: list[float], run_times: RunTimes) -> float:
    """Return the median run time of the running jobs, by the rule of their age; an hour if no job runs."""
    totals = sorted(age + max(age * run_times.factor, SHORTEST) for age in ages)
    return totals[len(totals) // 2] if totals else 3600.0


def _mean(pods: list[objects.Pod]) -> dict[str, str]:
    """Return the mean requests of the pods that have not ended."""
    live = [pod for pod in pods if not status_of(pod)[0] & COMPLETED]
    total = resources.total_of(requests_of(pod)[0] for pod in live)
    return {
        name: str(amount)
        for name, amount in resources.quantities(
            {name: -(-amount // len(live)) for name, amount in total.items()}
        ).items()
        if name != resources.PODS
    }


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


class RecordedLoad:
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
        if is_of_cluster and not self._known and not len(self):
            raise StateError(
                str(path),
                "has no PodGroup of scheduling.volcano.sh, and so no job that the model could run",
                "name the recording of a cluster whose work has PodGroups (Volcano, schedspec)",
            )
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
