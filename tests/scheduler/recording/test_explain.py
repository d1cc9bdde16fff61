"""``explain`` says why a pod or job of a recorded cycle got what it got."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scheduler.__main__ import main


def explained(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["explain", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_a_victim_learns_for_whom_and_by_whose_vote(reclaimed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = explained(capsys, reclaimed, "pod", "t/old-3")

    assert "pod t/old-3, cycle 2 at" in out
    assert (
        "evicted: reclaimed for t/new of queue a (victim's queue: b); "
        "tier 1 decided (gang permits, conformance permits, capacity permits); others: 2 not needed"
    ) in out
    assert "queue b: cpu" not in out
    assert "nvidia.com/gpu 4 allocated, 2 deserved, 4 asked for in all, 4 at most" in out


def test_a_preemptor_learns_who_made_room(reclaimed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = explained(capsys, reclaimed, "job", "t/new", "--cycle", 2)

    assert "t/new-0: t/old-3 makes room for it" in out
    assert "t/new-1: t/old-2 makes room for it" in out
    assert "t/new-0: waits for room on n1" in out


def test_a_waiting_job_learns_what_stands_in_its_way(reclaimed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = explained(capsys, reclaimed, "pod", "t/more-0")

    assert "its job t/more waits: " in out
    assert "queue a may not reclaim: 2 nvidia.com/gpu allocated and 1 requested, deserved 2" in out


def test_a_job_learns_its_phase_and_what_it_waits_for(
    scheduler: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    live = scheduler()
    live.show({"nodes": [{"name": "n[1-3]", "has": "1 cpu"}], "queues": [{"name": "default"}]})
    live.show({"jobs": [{"name": "a", "tasks": "1 x 2 cpu"}]})
    live.cycle()
    live.recorder.close()
    out = explained(capsys, live.recorder.directory, "job", "t/a")
    assert "  its PodGroup becomes Inqueue\n" in out
    assert "  waits: 3 nodes: 3 lack cpu" in out


def test_what_is_no_recording_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no recording\n")
    assert main(["explain", str(plain), "job", "t/new"]) == 2
    assert f"{plain}: " in capsys.readouterr().err


def test_every_cycle_is_shown_on_request(reclaimed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = explained(capsys, reclaimed, "job", "t/new", "--all")

    assert "cycle 2 at" in out
    assert "cycle 3 at" in out
    assert "t/new-0: bound to n1" in out


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("t/old-0", "no recorded cycle decided anything about it"),
        ("t/unknown", "no recorded cycle knew it (write namespace/name)"),
    ],
)
def test_what_no_cycle_decided_about_is_said_so(
    reclaimed: Path, capsys: pytest.CaptureFixture[str], name: str, says: str
) -> None:
    assert main(["explain", str(reclaimed), "pod", name]) == 1
    assert says in capsys.readouterr().err
