"""Simulate both worlds from the state to the end of a load, each in a process of its own, and compare them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ...monitors import Rules
from ...scheduler.model import resources, times
from ...scheduler.model.cluster import Cluster
from ...scheduler.policy.model import Policy
from ...schedulers.pdeathsig import end_with_parent
from ...virtual import Arrival, Settings
from ...virtual.state import State
from ..simulate import records
from ..simulate.bookkeeping import LOAD
from ..simulate.inputs import InitialState
from ..simulate.metrics import spread
from ..simulate.monitored import MonitoredRun
from ..simulate.present import RunTimes, begin
from ..simulate.records import FORMAT, End, JobRecord, Run, read_result
from ..simulate.runner import run
from .answer import JobChange, LoadFinding, OverLoad, QueueChange

MAX_CHANGED = 20
_SAMPLES = 1000
Load = Callable[[RunTimes], Iterable[Arrival]]


@dataclass(frozen=True, slots=True)
class Course:
    """One simulation: a world, a load and an assumption."""

    state: State
    policy: Policy
    policy_text: str
    """The policy's file, which the monitors read by themselves."""
    load: Load
    run_times: RunTimes
    settings: Settings
    resource: str
    out: Path
    name: str
    until: float
    jobs: int | None


def run_courses(courses: list[Course]) -> list[str]:
    """Run simulations on all cores. Return for each why it could not continue; empty if it completed."""
    workers = min(len(courses), os.cpu_count() or 1)
    if workers == 1:
        return [_run(course) for course in courses]
    with ProcessPoolExecutor(workers, initializer=end_with_parent) as pool:
        return list(pool.map(_run, courses))


def _run(course: Course) -> str:
    state, total = course.state, _total(course.state, course.resource)
    jobs = len(state.objects["PodGroup"]) + (course.jobs or 0)
    span = course.until - state.taken if course.until < math.inf else 86400.0
    header = Run(
        FORMAT, course.name, str(course.out), course.resource, total, len(state.objects["Node"]), jobs,
        sorted(state.objects["Queue"]), max(span / _SAMPLES, 1.0),
    )  # fmt: skip
    outcome = run(
        course.policy,
        InitialState(),
        course.load(course.run_times),
        header,
        settings=course.settings,
        out=course.out,
        start=state.taken,
        until=course.until,
        begin=partial(begin, state=state, run_times=course.run_times),
        cluster=Cluster(state.scheduler_names, state.node_selector),
        monitors=MonitoredRun(Rules(course.policy_text)),
    )
    return outcome.problem


def _total(state: State, resource: str) -> float:
    nodes = (node.status.allocatable or node.status.capacity for node in state.objects["Node"].values())
    total = resources.total_of(resources.parse(amounts) for amounts in nodes)
    return total.get(resource, 0) / resources.unit_of(resource)


class Result:
    """The part of one simulation's result file that a plan reports."""

    def __init__(self, path: Path, ran: frozenset[str]) -> None:
        self.jobs: dict[str, JobRecord] = {}
        self.metrics: dict[str, Any] = {}
        self.at = 0.0
        self._found: list[records.Finding] = []
        self._ran = ran
        """Jobs that ran when the simulation began: they have no wait."""
        for record in read_result(path):
            if isinstance(record, JobRecord):
                self.jobs[record.job] = record
            elif isinstance(record, End):
                self.metrics, self.at = record.metrics, record.at
            elif isinstance(record, records.Finding):
                self._found.append(record)

    def findings(self) -> dict[tuple[str, str], LoadFinding]:
        """Return what monitors found, the queues below their guarantees, and jobs that evict in vain.

        The keys are rule and subject: each rule counts once for a job or queue.
        """
        found = []
        for it in self._found:
            name = it.about.removeprefix(LOAD)
            found.append(LoadFinding(it.monitor, name, self.jobs[name].queue if name in self.jobs else "", it.text))
        for name, figures in self.metrics.get("queues", {}).items():
            if (seconds := figures["below_guarantee_seconds"]) > 0:
                text = f"below its guarantee for {seconds:.0f} s while its jobs wait"
                found.append(LoadFinding("below-guarantee", name, name, text))
        evictions = (eviction for job in self.jobs.values() for eviction in job.evictions)
        for name in {eviction.preemptor.removeprefix(LOAD) for eviction in evictions} & self.jobs.keys():
            job = self.jobs[name]
            if job.started is None and job.outcome == "waiting":
                text = "pods are evicted for it, and it does not start"
                found.append(LoadFinding("eviction-in-vain", name, job.queue, text))
        return {(it.rule, it.subject): it for it in reversed(found)}

    def wait(self, job: JobRecord) -> float | None:
        """Return how long a job waited, in seconds; None for a job that already ran or never starts."""
        return None if job.job in self._ran else job.wait

    def numbers(self, queue: str | None = None) -> dict[str, float | None]:
        """Return the metrics of a queue, or of all queues."""
        jobs = [job for job in self.jobs.values() if queue in (None, job.queue)]
        waits = spread([wait for job in jobs if (wait := self.wait(job)) is not None])
        of_queues = [figures for name, figures in self.metrics.get("queues", {}).items() if queue in (None, name)]
        found: dict[str, float | None] = {
            "jobs": len(jobs),
            "completed": sum(job.outcome == "completed" for job in jobs),
            "never_started": sum(job.started is None for job in jobs),
            "wait_p50": waits.get("p50"),
            "wait_p95": waits.get("p95"),
            "wait_max": waits.get("max"),
            "evicted_pods": sum(eviction.pods for job in jobs for eviction in job.evictions if eviction.preemptor),
            "lost_card_hours": math.fsum(job.card_seconds_lost for job in jobs) / 3600,
        }
        for name in ("below_deserved_seconds", "below_guarantee_seconds"):
            found[name] = math.fsum(figures[name] for figures in of_queues)
        return found


def compare(now: Result, proposed: Result, load: str, run_times: str, problem: str) -> OverLoad:
    names = sorted({job.queue for run in (now, proposed) for job in run.jobs.values()})
    changed = []
    for name, job in proposed.jobs.items():
        if (known := now.jobs.get(name)) is None:
            continue
        before, after = now.wait(known), proposed.wait(job)
        gap = (proposed.at - job.submitted if after is None else after) - (
            now.at - known.submitted if before is None else before
        )
        if before != after and not (job.started is not None and known.started is not None and abs(gap) < 1):
            changed.append((abs(gap), name, JobChange(name, job.queue, before, after, _why(job))))
    starved = sorted(
        name
        for name, job in proposed.jobs.items()
        if job.started is None and name in now.jobs and now.jobs[name].started is not None
    )
    judged, judged_then = now.findings(), proposed.findings()
    changed.sort(key=lambda ranked: (-ranked[0], ranked[1]))
    return OverLoad(
        load,
        run_times,
        times.timestamp(max(now.at, proposed.at)),
        len(proposed.jobs),
        now.numbers(),
        proposed.numbers(),
        [QueueChange(name, now.numbers(name), proposed.numbers(name)) for name in names],
        [job for _, _, job in changed[:MAX_CHANGED]],
        starved,
        [judged_then[key] for key in sorted(judged_then.keys() - judged.keys())],
        problem,
    )


def _why(job: JobRecord) -> str:
    return max(job.waits, key=lambda wait: wait.seconds).text if job.waits else ""
