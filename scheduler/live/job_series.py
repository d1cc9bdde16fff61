"""Prometheus series of each job: how long its pods took to be placed, and how many still lack a node.

A job has series while its PodGroup exists. A scrape builds the series in its own thread; only the event loop changes
the underlying data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from ..model.job import Job, PodGroupPhase

_NOT_STARTED = ("", PodGroupPhase.PENDING, PodGroupPhase.INQUEUE)


@dataclass(slots=True)
class _JobNumbers:
    """The numbers of one job, while its PodGroup has this `uid`."""

    uid: str
    created: float
    queue: str
    phase: str
    started: bool
    """Whether the job has ever started, by the phase of its PodGroup."""
    lacking: int | None = None
    """Number of tasks for which the gang still needs a node; None if the job does not wait."""
    bound_at: float | None = None
    """When the last bind of one of its pods succeeded, in seconds since the epoch."""


class JobSeries(Collector):
    """The series of all jobs, by key (`namespace/name`).

    Args:
        exists: Returns True if the job's PodGroup still exists.
        on_start: Receives, once per job, the seconds from its creation to the last bind that it needed to start.
    """

    def __init__(self, exists: Callable[[str], bool], on_start: Callable[[float], None]) -> None:
        self._exists = exists
        self._on_start = on_start
        self._jobs: dict[str, _JobNumbers] = {}

    def bound(self, job: Job, at: float) -> None:
        """Record that a pod of the job was bound at `at`, in seconds since the epoch."""
        self._numbers_of(job).bound_at = at

    def note(self, job: Job, phase: str, *, waits: bool) -> None:
        """Record a cycle's findings: the PodGroup's phase, and whether a part of the job waits with a reason."""
        numbers = self._numbers_of(job)
        numbers.queue, numbers.phase = job.queue, phase
        numbers.lacking = max(job.min_available - job.ready, 0) if waits else None
        if not numbers.started and phase in (PodGroupPhase.RUNNING, PodGroupPhase.COMPLETED):
            numbers.started = True
            if numbers.bound_at is not None:
                self._on_start(max(numbers.bound_at - numbers.created, 0.0))

    def forget_all_but(self, jobs: Mapping[str, object]) -> None:
        """Remove the jobs that no longer exist. Their series ended earlier, with their PodGroups."""
        if len(self._jobs) > len(jobs):
            for key in self._jobs.keys() - jobs.keys():
                del self._jobs[key]

    def phases(self) -> Counter[tuple[str, str]]:
        """Return the number of PodGroups by queue and phase."""
        return Counter((numbers.queue, numbers.phase or PodGroupPhase.PENDING) for _, numbers in self._existing())

    def describe(self) -> Iterator[Metric]:
        """Yield the metric families; scrapes by name need them."""
        return self.collect()

    def collect(self) -> Iterator[Metric]:
        """Yield the series of all jobs."""
        lacking = GaugeMetricFamily(
            "volcano_unschedule_task_count",
            "Number of tasks for which the gang of a waiting job still needs a node",
            labels=["job_ns", "job_id"],
        )
        took = GaugeMetricFamily(
            "volcano_e2e_job_scheduling_duration",
            "From the creation of a job's PodGroup to its last bind, in milliseconds",
            labels=["job_namespace", "job_name", "queue"],
        )
        for key, numbers in self._existing():
            namespace, _, name = key.partition("/")
            if numbers.lacking is not None:
                lacking.add_metric([namespace, name], numbers.lacking)
            if numbers.bound_at is not None:
                took.add_metric([namespace, name, numbers.queue], max(numbers.bound_at - numbers.created, 0.0) * 1000)
        yield from (lacking, took)

    def _numbers_of(self, job: Job) -> _JobNumbers:
        uid = job.group.metadata.uid if job.group is not None else ""
        numbers = self._jobs.get(job.key)
        if numbers is None or numbers.uid != uid:
            started = job.phase not in _NOT_STARTED
            numbers = self._jobs[job.key] = _JobNumbers(uid, job.creation, job.queue, job.phase, started)
        return numbers

    def _existing(self) -> Iterator[tuple[str, _JobNumbers]]:
        return ((key, numbers) for key, numbers in self._jobs.copy().items() if self._exists(key))
