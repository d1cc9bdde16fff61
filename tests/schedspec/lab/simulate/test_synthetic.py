"""A synthetic load has the quantiles of theory, depends only on file and seed, and reports errors with their lines."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

import pytest

from schedspec.lab.simulate.columns import InputError, TraceJob
from schedspec.lab.simulate.synthetic import parse, read_synthetic

LOAD = """
for: 10d
seed: 7
queues:
  research:
    rate: 60/h
    run_time: {lognormal: {median: 20m, sigma: 1}}
    pods: {choice: {1: 3, 8: 1}}
    priority: {choice: {0: 9, 100: 1}}
  service:
    rate: 240/d
    run_time: 1h
    cards: 2
    cpu: 500m
"""


def load(folder: Path, text: str = LOAD, seed: int | None = None, queues: list[str] | None = None) -> list[TraceJob]:
    path = folder / "load.yaml"
    path.write_text(text)
    return read_synthetic(path, "nvidia.com/gpu", seed, queues)[0].jobs


def of(jobs: list[TraceJob], queue: str) -> list[TraceJob]:
    return [job for job in jobs if job.queue == queue]


@pytest.mark.parametrize(
    ("given", "quantiles"),
    [
        (3.0, {0.1: 3, 0.9: 3}),
        ({"exponential": 600.0}, {0.5: 600 * math.log(2), 1 - math.exp(-2): 1200}),
        ({"uniform": {"from": 10.0, "to": 20.0}}, {0.25: 12.5, 0.5: 15}),
        ({"lognormal": {"median": 60.0, "sigma": 2}}, {0.5: 60, 0.8413447460685429: 60 * math.e**2}),
        ({"pareto": {"least": 10.0, "shape": 2}}, {0.75: 20, 0.99: 100}),
        ({"pareto": {"least": 10.0, "shape": 2}, "most": 50.0}, {0.75: 20, 0.99: 50}),
        ({"choice": {1.0: 1, 5.0: 3}}, {0.2: 1, 0.3: 5, 0.99: 5}),
    ],
    ids=["value", "exponential", "uniform", "lognormal", "pareto", "cut-pareto", "choice"],
)
def test_a_distribution_has_the_quantiles_of_theory(given: object, quantiles: dict[float, float]) -> None:
    quantile = parse(given, float)
    assert [quantile(share) for share in quantiles] == pytest.approx([*quantiles.values()])


def test_a_load_follows_its_description(tmp_path: Path) -> None:
    jobs = load(tmp_path)
    research, service = of(jobs, "research"), of(jobs, "service")
    assert [job.submitted for job in jobs] == sorted(job.submitted for job in jobs)
    assert [job.line for job in jobs] == list(range(1, len(jobs) + 1))
    assert abs(len(research) - 14_400) < 5 * math.sqrt(14_400)
    assert abs(len(service) - 2_400) < 5 * math.sqrt(2_400)
    assert statistics.median(job.run_time for job in research) == pytest.approx(1200, rel=0.05)
    assert sum(job.pods == 8 for job in research) / len(research) == pytest.approx(0.25, abs=0.02)
    assert sum(job.priority == 100 for job in research) / len(research) == pytest.approx(0.1, abs=0.015)
    assert {job.requests for job in service} == {(("nvidia.com/gpu", "2"), ("cpu", "500m"))}
    assert {job.run_time for job in service} == {3600}


def test_arrivals_follow_the_hours_of_the_day(tmp_path: Path) -> None:
    day = [0] * 8 + [2] * 4 + [1] * 12
    text = f"for: 20d\nstart: 2026-01-05T00:00:00Z\nqueues: {{research: {{rate: 240/d, run_time: 1m, day: {day}}}}}"
    hours = [int(job.submitted % 86400 // 3600) for job in load(tmp_path, text)]
    assert abs(len(hours) - 4800) < 5 * math.sqrt(4800)
    assert min(hours) == 8
    assert sum(hour < 12 for hour in hours) / len(hours) == pytest.approx(8 / 20, abs=0.03)


def test_the_seed_determines_the_load_and_queues_draw_independently(tmp_path: Path) -> None:
    first = load(tmp_path)
    assert load(tmp_path) == first
    assert load(tmp_path, seed=7) == first
    assert load(tmp_path, seed=8) != first
    other = of(load(tmp_path, LOAD.replace("rate: 60/h", "rate: 5/h")), "service")
    assert [(job.submitted, job.run_time) for job in other] == [
        (job.submitted, job.run_time) for job in of(first, "service")
    ]


@pytest.mark.parametrize(
    ("was", "now", "place", "problem"),
    [
        ("for: 10d", "for: soon", "2", "for: 'soon' is not a time above 0; write for: 7d"),
        ("for: 10d", "until: 10d", "2", "until: is not a field; fields are for, queues, seed, start"),
        ("for: 10d", "for: 1s", "2", "for: no job arrives in this time; raise rate or for"),
        ("rate: 60/h", "rate: 60", "6", "queues.research.rate: 60 is not a number of jobs per s, min, h or d"),
        ("run_time: 1h", "run_times: 1h", "12", "queues.service.run_times: is not a field"),
        ("    run_time: 1h\n", "", "10", "queues.service.run_time: is missing; write run_time: 20m"),
        (
            "median: 20m",
            "mean: 20m",
            "7",
            "queues.research.run_time: {'mean': '20m', 'sigma': 1} is not {median:",
        ),
        ("lognormal", "normal", "7", "names no distribution; known are constant: VALUE, exponential: MEAN"),
        ("8: 1}", "0: 1}", "8", "queues.research.pods: 0 is not a whole number from 1"),
        ("cpu: 500m", "cpu: lots", "14", "queues.service.cpu: 'lots' is not a quantity; write for example 2"),
        ("rate: 240/d", "{", "", "not YAML"),
    ],
    ids=["time", "field", "none", "rate", "name", "missing", "parameter", "distribution", "pods", "cpu", "yaml"],
)
def test_the_error_of_a_bad_field_names_its_line(tmp_path: Path, was: str, now: str, place: str, problem: str) -> None:
    assert was in LOAD
    with pytest.raises(InputError) as error:
        load(tmp_path, LOAD.replace(was, now, 1) if now != "{" else "for: {")
    assert problem in str(error.value)
    assert str(error.value).startswith(f"{tmp_path / 'load.yaml'}:{place}")


def test_an_empty_file_and_an_unknown_queue_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"load\.yaml: is empty"):
        load(tmp_path, "")
    with pytest.raises(InputError, match=r"queues\.service: 'service' is not a queue; add it to --queues, which has"):
        load(tmp_path, queues=["research"])
