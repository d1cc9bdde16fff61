"""The metrics of a run equal figures that were computed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from schedspec.lab.simulate.metrics import Metrics, spread
from tests.schedspec.lab.simulate.test_command import COLUMNS, HEADER, PREEMPT, lines, simulate


def metrics_of(folder: Path) -> dict[str, Any]:
    (end,) = lines(folder, "end")
    found: dict[str, Any] = end["metrics"]
    return found


def test_percentiles_are_by_nearest_rank() -> None:
    assert spread(range(1, 101)) == {"jobs": 100, "mean": 50.5, "p50": 50, "p95": 95, "p99": 99, "max": 100}
    assert spread([7.0]) == {"jobs": 1, "mean": 7, "p50": 7, "p95": 7, "p99": 7, "max": 7}
    assert spread([]) == {"jobs": 0}


def test_every_metric_shows_a_queue_that_waits_for_its_share(tmp_path: Path) -> None:
    """Red holds all eight cards for 100 s. Blue wants four from second 40 on, deserves them, and runs for 50 s."""
    assert simulate(tmp_path, "0,100,8,red\n40,50,4,blue\n", nodes="1x8") == 0
    found = metrics_of(tmp_path)
    assert (found["wait_seconds"]["mean"], found["wait_seconds"]["p50"], found["wait_seconds"]["p99"]) == (30, 0, 60)
    assert {name: it["max"] for name, it in found["wait_seconds_by_queue"].items()} == {"red": 0, "blue": 60}
    assert {name: it["max"] for name, it in found["wait_seconds_by_size"].items()} == {"8": 0, "2-7": 60}
    assert (found["completion_seconds"]["mean"], found["completion_seconds"]["max"]) == (105, 110)
    assert found["makespan_seconds"] == 150
    assert found["utilisation"] == pytest.approx((8 * 100 + 4 * 50) / (8 * 150))
    assert found["used_card_hours"] == pytest.approx(1000 / 3600)
    blue, red = found["queues"]["blue"], found["queues"]["red"]
    assert (blue["below_deserved_seconds"], blue["below_deserved_longest_seconds"]) == (60, 60)
    assert (red["below_deserved_seconds"], red["distance_from_deserved"]) == (0, 0)
    assert blue["distance_from_deserved"] == pytest.approx(4 * 60 / (4 * 110))
    entitled = 8 * 40 + 4 * 60 + 4 * 110  # red alone, red beside blue, blue
    assert found["distance_from_deserved"] == pytest.approx(4 * 60 / entitled)
    assert found["jain"] == pytest.approx((40 * 1 + 60 * 0.5 + 50 * 1) / 150)


def test_evictions_are_counted_by_pods_jobs_and_cards(tmp_path: Path) -> None:
    """Sixteen one-card pods run for 30 s, and are evicted for a job of eight."""
    given = "0,60,16,red,0\n30,20,8,blue,9\n"
    assert simulate(tmp_path, given, "--map", f"{COLUMNS},priority=prio", header=f"{HEADER},prio") == 0
    assert metrics_of(tmp_path)["evicted_pods"] == 0
    given = "0,60,16,red,0\n30,20,8,red,9\n"
    columns = ("--map", f"{COLUMNS},priority=prio")
    assert simulate(tmp_path, given, *columns, header=f"{HEADER},prio", policy=PREEMPT) == 0
    found = metrics_of(tmp_path)
    assert (found["evicted_pods"], found["evicted_jobs"], found["evictions_per_job"]) == (16, 1, 8)
    assert found["evicted_to_requested"] == 2
    assert found["lost_card_hours"] == pytest.approx(16 * 30 / 3600)
    assert found["queues"]["red"]["evicted_cards"] == 16


@pytest.mark.parametrize(
    ("more", "outcome", "ended", "lost"),
    [
        ((), "completed", 149 + 60, 8 * 16),
        (("--on-eviction", "checkpoint", "--checkpoint-every", "5s"), "completed", 149 + 55, 3 * 16),
        (("--on-eviction", "abort"), "aborted", 115, 8 * 16),
    ],
    ids=["restart", "checkpoint", "abort"],
)
def test_delays_and_checkpoints_move_the_times(
    tmp_path: Path, more: tuple[str, ...], outcome: str, ended: float, lost: float
) -> None:
    """Bound at 100, started at 102, evicted at 110, ended at 115; the preemptor runs 117 to 147; restarted at 149."""
    rows, columns = "100,60,16,red,0\n110,30,16,red,9\n", f"{COLUMNS},priority=prio"
    given = ("--map", columns, "--grace", "5s", "--start-delay", "2s", *more)
    assert simulate(tmp_path, rows, *given, header=f"{HEADER},prio", policy=PREEMPT) == 0
    low, high = sorted(lines(tmp_path, "job"), key=lambda job: job["job"])
    assert (low["started"], low["outcome"], low["ended"], low["card_seconds_lost"]) == (102, outcome, ended, lost)
    assert (high["started"], high["ended"]) == (117, 147)


def test_a_run_ends_with_its_last_job_although_an_aborted_job_would_have_run_longer(tmp_path: Path) -> None:
    """Four cards are held for 250 s, and two of them for 100 s more: 1,200 of 1,400 card seconds."""
    rows, columns = "0,1000,4,red,0\n250,100,2,red,9\n", f"{COLUMNS},priority=prio"
    given = ("--map", columns, "--on-eviction", "abort")
    assert simulate(tmp_path, rows, *given, header=f"{HEADER},prio", policy=PREEMPT, nodes="1x4") == 0
    found = metrics_of(tmp_path)
    assert (found["makespan_seconds"], found["utilisation"]) == (350, pytest.approx(1200 / 1400))


def test_the_error_of_checkpoints_without_an_interval_names_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulate(tmp_path, "0,1,1,red\n", "--on-eviction", "checkpoint") == 2
    assert "add --checkpoint-every 30m" in capsys.readouterr().err


def test_time_below_the_guarantee_and_time_below_the_share_are_separate() -> None:
    metrics = Metrics(8.0)
    metrics.hold("red", 3.0)
    metrics.integrate({"red": (4.0, 2.0)}, 10.0)  # entitled to 4, guaranteed 2 of them, holds 3
    metrics.hold("red", -2.0)
    metrics.integrate({"red": (4.0, 2.0)}, 5.0)
    metrics.hold("red", 3.0)
    metrics.integrate({"red": (4.0, 2.0)}, 100.0)
    metrics.hold("red", -4.0)
    metrics.integrate({"red": (4.0, 2.0)}, 7.0)
    totals = metrics.of("red")
    assert totals.guarantee_short_seconds == 5 + 7
    assert (totals.short_seconds, totals.longest) == (10 + 5 + 7, 15)
    assert totals.short == 1 * 10 + 3 * 5 + 4 * 7


GAPS = {
    "no gap": (4.0, 4.0, [(1.0, 1)], False),
    "less than a card": (4.5, 4.0, [(1.0, 1)], False),
    "a card": (4.0, 3.0, [(1.0, 1)], True),
    "a card, by sums that are rounded": (0.1 + 0.2 + 3.7, 3.0, [(1.0, 1)], True),
    "less than a usual pod": (20.0, 16.0, [(8.0, 3), (1.0, 2)], False),
    "a usual pod": (24.0, 16.0, [(8.0, 3), (1.0, 2)], True),
    "most pods have one card": (20.0, 16.0, [(8.0, 3), (1.0, 4)], True),
    "shared cards: still a whole one": (4.0, 3.5, [(0.5, 8)], False),
    "nothing was submitted": (4.0, 3.5, [], False),
}
"""Entitled and held cards, the sizes and numbers of the queue's pods, whether the queue is below its share."""


@pytest.mark.parametrize(("entitled", "held", "pods", "is_short"), GAPS.values(), ids=GAPS)
def test_a_gap_into_which_no_usual_pod_fits_is_not_below_the_share(
    entitled: float, held: float, pods: list[tuple[float, int]], *, is_short: bool
) -> None:
    metrics = Metrics(32.0)
    for cards, number in pods:
        metrics.submitted(0.0, "red", cards, number)
    metrics.hold("red", held)
    metrics.integrate({"red": (entitled, entitled)}, 10.0)
    totals = metrics.of("red")
    assert (totals.short_seconds, totals.longest, totals.guarantee_short_seconds) == (
        (10, 10, 10) if is_short else (0, 0, 0)
    )
    assert totals.short == (pytest.approx((entitled - held) * 10) if is_short else 0)
    assert (metrics.jain == 10.0) or is_short
