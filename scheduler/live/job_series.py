"""What Prometheus gets to read of each job: how long it took to get its pods placed, and what it still lacks.

The one rule: a job has series for as long as its PodGroup is there. They are made of what is known when they are
asked for, in the thread that asks; what they are made of changes in the event loop alone.
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
class _Known:
    """One job, for as long as its PodGroup is the one with ``uid``."""

    uid: str
    created: float
    queue: str
    phase: str
    started: bool
    """Whether it had what it needs to start, ever."""
    lacking: int | None = None
    """Tasks that its gang still needs a node for; None where it does not wait."""
    bound_at: float | None = None
    """When the last bind of one of its pods was answered well, in seconds since the epoch."""


class JobSeries(Collector):
    """The jobs, by key (``namespace/name``). ``is_there`` says whether a job's PodGroup is still there; ``on_start``
    is told, once for a job, the seconds from its creation to the last of the binds that it needed to start.
    """

    def __init__(self, is_there: Callable[[str], bool], on_start: Callable[[float], None]) -> None:
        self._is_there = is_there
        self._on_start = on_start
        self._jobs: dict[str, _Known] = {}

    def bound(self, job: Job, at: float) -> None:
        """A pod of the job was bound at ``at``, seconds since the epoch."""
        self._known(job).bound_at = at

    def note(self, job: Job, phase: str, *, waits: bool) -> None:
        """What a cycle found: the PodGroup's phase, and whether something of the job waits with a reason."""
        known = self._known(job)
        known.queue, known.phase = job.queue, phase
        known.lacking = max(job.min_available - job.ready, 0) if waits else None
        if not known.started and phase in (PodGroupPhase.RUNNING, PodGroupPhase.COMPLETED):
            known.started = True
            if known.bound_at is not None:
                self._on_start(max(known.bound_at - known.created, 0.0))

    def forget_all_but(self, jobs: Mapping[str, object]) -> None:
        """Let go of jobs that are gone; what is shown of them has ended before."""
        if len(self._jobs) > len(jobs):
            for key in self._jobs.keys() - jobs.keys():
                del self._jobs[key]

    def phases(self) -> Counter[tuple[str, str]]:
        """How many PodGroups there are, by queue and phase."""
        return Counter((known.queue, known.phase or PodGroupPhase.PENDING) for _, known in self._there())

    def describe(self) -> Iterator[Metric]:
        """What there may be series of, for who asks for metrics by name."""
        return self.collect()

    def collect(self) -> Iterator[Metric]:
        """The series of all jobs."""
        lacking = GaugeMetricFamily(
            "volcano_unschedule_task_count",
            "Tasks that a waiting job's gang still needs a node for",
            labels=["job_ns", "job_id"],
        )
        took = GaugeMetricFamily(
            "volcano_e2e_job_scheduling_duration",
            "From the creation of a job's PodGroup to its last bind, in milliseconds",
            labels=["job_namespace", "job_name", "queue"],
        )
        for key, known in self._there():
            namespace, _, name = key.partition("/")
            if known.lacking is not None:
                lacking.add_metric([namespace, name], known.lacking)
            if known.bound_at is not None:
                took.add_metric([namespace, name, known.queue], max(known.bound_at - known.created, 0.0) * 1000)
        yield from (lacking, took)

    def _known(self, job: Job) -> _Known:
        uid = job.group.metadata.uid if job.group is not None else ""
        known = self._jobs.get(job.key)
        if known is None or known.uid != uid:
            started = job.phase not in _NOT_STARTED
            known = self._jobs[job.key] = _Known(uid, job.creation, job.queue, job.phase, started)
        return known

    def _there(self) -> Iterator[tuple[str, _Known]]:
        return ((key, known) for key, known in self._jobs.copy().items() if self._is_there(key))
