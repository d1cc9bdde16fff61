"""`simulate --state`: a simulation begins from the state of a cluster, and replays the load of its recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from schedspec.lab.simulate.present import opened
from schedspec.scheduler.inputs import Input, PolicyLoaded
from schedspec.scheduler.model import objects
from schedspec.scheduler.policy.loader import load_policy
from schedspec.scheduler.recording.segments import SegmentWriter
from schedspec.virtual import Arrival, Simulation, Workload, node
from schedspec.virtual.state.dump import write_state
from tests.support import simulating
from tests.support.core.states import NOW, state_of

POLICY = """
actions: "allocate"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""
TABLE: dict[str, Any] = {
    "policy": POLICY,
    "nodes": [{"name": "n1", "has": "16 cpu, 8 gpu"}],
    "queues": [{"name": "a"}],
    "jobs": [
        {"name": "old", "queue": "a", "tasks": "8 x 1 gpu running on n1"},
        {"name": "next", "queue": "a", "tasks": "4 x 1 gpu"},
    ],
}
CARDS = {"nvidia.com/gpu": "8"}


def simulate(folder: Path, state: Path, *more: str) -> dict[str, dict[str, Any]]:
    """Run the command and return the jobs by name."""
    out = folder / "result.jsonl"
    assert simulating.simulate(["--state", str(state), "--out", str(out), *more]) == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    return {it["job"].rpartition("/")[2]: it for it in lines if it["kind"] == "job"}


def test_a_state_is_continued_under_its_own_policy(tmp_path: Path) -> None:
    write_state(state_of(TABLE), tmp_path / "state.jsonl.gz")
    jobs = simulate(tmp_path, tmp_path / "state.jsonl.gz", "--run-time", "10m")
    assert jobs["old"]["ended"] == NOW + 600
    assert (jobs["next"]["started"], jobs["next"]["ended"]) == (NOW + 600, NOW + 1200)


def test_a_trace_arrives_after_the_state(tmp_path: Path) -> None:
    write_state(state_of(TABLE), tmp_path / "state.jsonl.gz")
    (tmp_path / "jobs.csv").write_text("at,seconds,cards,team\n100,60,8,a\n")
    load = ("--trace", str(tmp_path / "jobs.csv"), "--map", "submitted=at,duration=seconds,job_cards=cards,queue=team")
    jobs = simulate(tmp_path, tmp_path / "state.jsonl.gz", "--run-time", "10m", *load)
    assert (jobs["job-2"]["submitted"], jobs["job-2"]["started"]) == (NOW, NOW + 1200)


def record(folder: Path) -> None:
    """Record a run: a checkpoint while `old` runs, then the arrival of `new`."""
    writer = SegmentWriter(folder)
    began = False

    def record_input(given: Input) -> None:
        if began:
            writer.write(given)

    simulation = Simulation(load_policy(POLICY, "policy"), start=NOW, on_input=record_input)
    simulation.put("Node", node("n1", CARDS))
    simulation.put("Queue", opened(objects.Queue(objects.ObjectMeta(name="default"))))
    load = (Arrival(NOW, Workload("old", 600, CARDS)), Arrival(NOW + 100, Workload("new", 300, CARDS)))
    for _ in simulation.instants(load):
        if not began:
            writer.checkpoint(simulation.cycles.cluster, PolicyLoaded("policy", POLICY))
            began = True
    writer.close()


def test_the_load_of_a_recording_begins_at_its_last_checkpoint(tmp_path: Path) -> None:
    record(tmp_path / "recording")
    jobs = simulate(tmp_path, tmp_path / "recording")
    assert {*jobs} == {"old", "new"}
    assert jobs["new"]["submitted"] == NOW + 100
    assert jobs["new"]["started"] == NOW + 600


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (("--nodes", "1x8"), "--state: has nodes and queues of its own; leave out --nodes and --queues"),
        (("--trace", "a.csv", "--synthetic", "b.yaml"), "--trace and --synthetic exclude each other; leave one out"),
    ],
    ids=["nodes", "loads"],
)
def test_contradicting_options_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], problem: str
) -> None:
    write_state(state_of(TABLE), tmp_path / "state.jsonl.gz")
    assert simulating.simulate(["--state", str(tmp_path / "state.jsonl.gz"), *more]) == 2
    assert problem in capsys.readouterr().err


def test_the_error_names_a_missing_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulating.simulate(["--state", str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err


def test_the_error_of_a_run_without_a_load_names_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulating.simulate(["--nodes", "1x8"]) == 2
    assert "the run has no load; name a --trace, a --synthetic load or a --state" in capsys.readouterr().err
