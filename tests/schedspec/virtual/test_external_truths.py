"""Compare the simulation with exact references and with queueing theory."""

from __future__ import annotations

import csv
import gzip
import math
import random
from datetime import UTC, datetime
from statistics import mean
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from tests.support.core import queueing, virtual
from tests.support.core.public_traces import public_trace
from tests.support.core.queueing import Discipline, Job

BY = {
    Discipline.SKIPPING: virtual.policy(),
    Discipline.SHORTEST: virtual.policy(),
    Discipline.STRICT: virtual.policy(first=virtual.STRICT),
}


class Theory(NamedTuple):
    """A queue with a closed form; `deviation` is three standard deviations at 100,000 jobs, as a part of the mean."""

    servers: int
    load: float
    service: float
    mean_wait: float
    deviation: float
    fixed: bool = False


THEORY = {
    "M/M/1": Theory(1, 0.8, 600, 2_400.0, 0.08),
    "M/M/8": Theory(8, 0.9, 3_600, 3_156.9, 0.25),
    "M/M/64": Theory(64, 0.95, 3_600, 661.5, 0.48),
    "M/D/1": Theory(1, 0.8, 600, 1_200.0, 0.08, fixed=True),
}


def differing(jobs: list[Job], discipline: Discipline, quotas: dict[str, int]) -> list[tuple[Job, float, float | None]]:
    """Return the jobs whose start differs from the reference."""
    wanted = queueing.starts(jobs, discipline, quotas)
    seen = virtual.serve(jobs, BY[discipline], quotas, shortest=discipline is Discipline.SHORTEST)
    return [(job, wanted[job.name], seen.get(job.name)) for job in jobs if seen.get(job.name) != wanted[job.name]]


@pytest.mark.parametrize("name", THEORY)
def test_the_reference_agrees_with_the_closed_form_at_100_000_jobs(name: str) -> None:
    it = THEORY[name]
    assert queueing.mean_wait(it.servers, it.load, it.service, fixed=it.fixed) == pytest.approx(it.mean_wait, rel=1e-4)
    jobs = queueing.draws(it.servers, it.load, it.service, 100_000, seed=1, fixed=it.fixed)
    starts = queueing.starts(jobs, Discipline.STRICT, {"default": it.servers})
    assert mean(starts[job.name] - job.submitted for job in jobs) == pytest.approx(it.mean_wait, rel=it.deviation)


def test_the_share_of_jobs_that_wait_follows_erlang_c() -> None:
    assert queueing.probability_of_waiting(64, 0.95) == pytest.approx(0.588, abs=5e-4)


@pytest.mark.parametrize("number", [500, pytest.param(100_000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", THEORY)
def test_every_job_of_a_theoretical_queue_starts_when_the_reference_says(name: str, number: int) -> None:
    it = THEORY[name]
    jobs = queueing.draws(it.servers, it.load, it.service, number, seed=2, fixed=it.fixed)
    assert differing(jobs, Discipline.SKIPPING, {"default": it.servers}) == []


@some.composite
def loads(draw: some.DrawFn) -> tuple[list[Job], dict[str, int]]:
    """Draw jobs at whole seconds, several at some of them, in one pool or in queues with a quota each."""
    rng = random.Random(draw(some.integers(0, 2**32)))
    quotas = {f"q{at}": rng.randint(2, 12) for at in range(draw(some.sampled_from([1, 1, 2, 3])))}
    jobs = []
    for index in range(draw(some.integers(1, 30))):
        queue = rng.choice(list(quotas))
        at, cards = virtual.START + rng.randint(0, 60), rng.randint(1, quotas[queue])
        jobs.append(Job(f"j{index:03}", at, float(rng.randint(1, 40)), cards, queue))
    jobs.sort(key=lambda job: (job.submitted, job.name))
    return jobs, quotas


@pytest.mark.parametrize("discipline", Discipline)
@settings(max_examples=20)
@given(load=loads())
def test_every_job_of_a_random_load_starts_when_the_reference_says(
    discipline: Discipline, load: tuple[list[Job], dict[str, int]]
) -> None:
    jobs, quotas = load
    assert differing(jobs, discipline, quotas) == []


def philly(*, pooled: bool) -> list[Job]:
    """Return the jobs of the trace, sorted stably by time, in one queue or in a queue for each virtual cluster."""
    with gzip.open(public_trace("philly.csv.gz"), "rt", encoding="utf-8") as lines:
        rows = [
            (datetime.fromisoformat(row["timestamp"]).replace(tzinfo=UTC).timestamp(), row)
            for row in csv.DictReader(lines)
        ]
    rows.sort(key=lambda row: row[0])
    return [
        Job(f"j{at:05}", time, float(row["duration"]), int(row["num_gpus"]), "default" if pooled else row["cluster"])
        for at, (time, row) in enumerate(rows)
    ]


def quotas_of(jobs: list[Job], cards: int) -> dict[str, int]:
    """Return `cards` for one pool; or 1.1 times the mean load of each virtual cluster, at least its largest job."""
    queues = {job.queue for job in jobs}
    if len(queues) == 1:
        return dict.fromkeys(queues, cards)
    span = jobs[-1].submitted - jobs[0].submitted
    work = {queue: [job for job in jobs if job.queue == queue] for queue in sorted(queues)}
    return {
        queue: max(*(job.cards for job in mine), 1, int(1.1 * sum(job.cards * job.duration for job in mine) / span))
        for queue, mine in work.items()
    }


@pytest.mark.parametrize(
    ("discipline", "wait", "longest"), [(Discipline.SKIPPING, 15_519, 109_639), (Discipline.SHORTEST, 4_242, 44_273)]
)
def test_the_reference_has_the_known_waits_of_the_philly_trace(discipline: Discipline, wait: int, longest: int) -> None:
    jobs = philly(pooled=True)
    starts = queueing.starts(jobs, discipline, quotas_of(jobs, 640))
    waits = sorted(starts[job.name] - job.submitted for job in jobs)
    assert round(mean(waits)) == wait
    assert waits[math.ceil(0.99 * len(waits)) - 1] == longest


PART = slice(20_000, 20_400)
"""Four hundred jobs from the trace's busiest week."""


@pytest.mark.parametrize(
    ("part", "cards"), [(PART, 120), pytest.param(slice(None), 640, marks=pytest.mark.nightly)], ids=["part", "whole"]
)
@pytest.mark.parametrize("pooled", [True, False], ids=["pooled", "by virtual cluster"])
@pytest.mark.parametrize("discipline", Discipline)
def test_every_job_of_the_philly_trace_starts_when_the_reference_says(
    discipline: Discipline, pooled: bool, part: slice, cards: int
) -> None:
    jobs = philly(pooled=pooled)[part]
    assert differing(jobs, discipline, quotas_of(jobs, cards)) == []
