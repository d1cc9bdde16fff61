"""Metrics of jobs: time to start and missing resources; deleted jobs leave no series."""

from __future__ import annotations

from typing import Any

import pytest

from schedspec.scheduler.live.series import JobSeries
from tests.scheduler.live.metrics_setup import MetricsSetup, lines

TABLE: dict[str, Any] = {
    "nodes": [{"name": "n1", "has": "4 cpu"}],
    "queues": [{"name": "default"}],
    "jobs": [
        {"name": "fits", "tasks": "2 x 1 cpu"},
        {"name": "large", "tasks": "5 x 1 cpu", "min": 3},
        {"name": "spare", "tasks": ["1 x 1 cpu running on n1", "1 x 9 cpu"], "min": 1},
    ],
}
OF_FITS = '{job_name="fits",job_namespace="t",queue="default"}'


def series_of(showing: MetricsSetup) -> JobSeries:
    return showing.status_builder._job_series


def test_a_waiting_job_shows_how_many_tasks_its_gang_lacks() -> None:
    showing = MetricsSetup("plain", TABLE)
    showing.cycle()
    assert showing.values("volcano_unschedule_task_count") == {
        '{job_id="large",job_ns="t"}': 3.0,
        '{job_id="spare",job_ns="t"}': 0.0,  # its gang runs; the waiting task is beyond the minimum
    }
    assert showing.values("volcano_unschedule_job_count") == {"": 2.0}


def test_a_job_that_no_longer_waits_has_no_count_of_missing_tasks() -> None:
    showing = MetricsSetup("plain", TABLE)
    showing.cycle()
    showing.world.load({"nodes": [{"name": "n2", "has": "20 cpu"}]})
    showing.cycle()
    assert showing.values("volcano_unschedule_task_count") == {}
    assert showing.values("volcano_unschedule_job_count") == {"": 0.0}


def test_a_job_shows_how_long_after_its_creation_it_was_last_bound() -> None:
    showing = MetricsSetup("plain", TABLE)
    created = showing.world.cluster.jobs["t/fits"].creation
    showing.bind(showing.cycle(), at=created + 2.5)
    assert showing.values("volcano_e2e_job_scheduling_duration") == {OF_FITS: 2500.0}


def test_a_jobs_start_is_counted_once_with_the_time_of_its_last_bind() -> None:
    showing = MetricsSetup("plain", TABLE)
    created = showing.world.cluster.jobs["t/fits"].creation
    decisions = showing.cycle()
    assert showing.values("volcano_e2e_job_scheduling_latency_milliseconds_count") == {"": 0.0}
    showing.bind(decisions, at=created + 2.5)
    for _ in range(2):
        showing.cycle()
    assert showing.values("volcano_e2e_job_scheduling_latency_milliseconds_count") == {"": 1.0}
    assert showing.values("volcano_e2e_job_scheduling_latency_milliseconds_sum") == {"": 2500.0}


@pytest.mark.parametrize(("tasks", "starts"), [("2 x 1 cpu", 1), ("2 x 1 cpu running on n1", 0)])
def test_a_job_that_ran_before_the_scheduler_started_is_not_counted_as_started(tasks: str, starts: int) -> None:
    showing = MetricsSetup("plain", {**TABLE, "jobs": [{"name": "job", "tasks": tasks}]})
    [job] = showing.world.cluster.jobs.values()
    observed: list[float] = []
    series = JobSeries(lambda _: True, observed.append)
    series.bound(job, job.creation + 1.0)  # in a burst of binds, statuses follow later
    series.note(job, "Running", waits=False)
    assert observed == [1.0] * starts


def test_a_deleted_job_leaves_neither_series_nor_data() -> None:
    showing = MetricsSetup("plain", TABLE)
    showing.bind(showing.cycle(), at=showing.world.now)
    showing.cycle()
    assert len(lines(showing.metrics, 'volcano_e2e_job_scheduling_duration{job_name="fits"')) == 1
    for kind, key in list(showing.world.objects):
        if kind in ("Pod", "PodGroup"):
            showing.world.remove(kind, key)
    assert not [line for line in showing.metrics.render().decode().splitlines() if 'job_name="' in line]
    assert showing.values("volcano_unschedule_task_count") == {}
    showing.cycle()
    assert series_of(showing)._jobs == {}


def test_a_recreated_job_of_the_same_name_is_counted_anew() -> None:
    showing = MetricsSetup("plain", TABLE)
    showing.bind(showing.cycle(), at=showing.world.now)
    showing.cycle()
    for pod in showing.world.pods_of("fits"):
        showing.world.remove("Pod", pod)
    showing.world.remove("PodGroup", "t/fits")
    showing.world.load({"jobs": [{"name": "fits", "tasks": "2 x 1 cpu"}]})
    decisions = showing.cycle()
    assert OF_FITS not in showing.values("volcano_e2e_job_scheduling_duration")
    showing.bind(decisions, at=showing.world.now)
    showing.cycle()
    assert showing.values("volcano_e2e_job_scheduling_latency_milliseconds_count") == {"": 2.0}
