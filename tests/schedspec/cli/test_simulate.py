"""`schedspec simulate`: the page, sweeps and monitors that extend the scheduler's simulation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from schedspec.cli import main
from schedspec.scheduler.core import Core
from schedspec.scheduler.framework.decisions import Decisions

POLICIES = Path(__file__).parents[3] / "templates" / "policies"
TRACE = "when,secs,gpus\n" + "".join(f"{100 + n},60,4\n" for n in range(12))
COLUMNS = ("--map", "submitted=when,duration=secs,job_cards=gpus")


def simulate(folder: Path, *more: str, out: str = "result.jsonl") -> int:
    (folder / "trace.csv").write_text(TRACE)
    load = () if "--synthetic" in more else ("--trace", str(folder / "trace.csv"), *COLUMNS)
    given = () if "--join" in more else (*load, "--nodes", "2x8", "--out", str(folder / out))
    with pytest.raises(SystemExit) as ended:
        main(["simulate", *given, *more])
    return int(ended.value.code or 0)


def test_the_page_is_written_beside_the_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(tmp_path) == 0
    assert f"page: {tmp_path / 'result.html'}" in capsys.readouterr().out
    page = (tmp_path / "result.html").read_text("utf-8")
    assert "12 jobs of" in page
    assert "12 completed" in page


def test_with_against_the_page_shows_both_results(tmp_path: Path) -> None:
    assert simulate(tmp_path, out="before.jsonl") == 0
    page = tmp_path / "both.html"
    assert simulate(tmp_path, "--nodes", "1x8", "--against", str(tmp_path / "before.jsonl"), "--page", str(page)) == 0
    assert 'data-worlds="2"' in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (("--against", "result.jsonl"), "--out: result.jsonl is the file of --against, too"),
        (("--page", "./result.jsonl"), "--page: result.jsonl is the file of --out, too"),
        (("--against", "result.html"), "--page: result.html is the file of --against, too"),
        (("--seeds", "0"), "--seeds: 0 seeds are no run; name at least 1"),
        (("--seeds", "-3"), "--seeds: -3 seeds are no run; name at least 1"),
        (("--index", "3"), "--index: nothing reads it without --seeds and --sweep"),
    ],
)
def test_a_file_with_two_uses_and_an_option_without_one_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    more: tuple[str, ...],
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "result.jsonl").write_text("of an earlier run")
    assert simulate(Path(), *more) == 2
    assert problem in capsys.readouterr().err
    assert (tmp_path / "result.jsonl").read_text() == "of an earlier run"


def test_a_comparison_with_no_result_is_refused_before_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "result.jsonl").write_text("of an earlier run")
    (tmp_path / "before.jsonl").write_text("no result")
    assert simulate(tmp_path, "--against", str(tmp_path / "before.jsonl")) == 2
    assert "before.jsonl:1: not a line of a result" in capsys.readouterr().err
    assert (tmp_path / "result.jsonl").read_text() == "of an earlier run"


def test_a_recording_of_another_run_is_not_continued(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(tmp_path, "--record", str(tmp_path / "rec")) == 0
    assert simulate(tmp_path, "--record", str(tmp_path / "rec")) == 2
    assert "has the recording of another run, which would go on; name a new folder" in capsys.readouterr().err


def test_after_bad_input_no_page_is_written(tmp_path: Path) -> None:
    assert simulate(tmp_path, "--preset", "openb") == 2
    assert not list(tmp_path.glob("*.html"))


LOAD = """
for: 2h
queues:
  red: {rate: 30/h, run_time: {exponential: 10m}}
  blue: {rate: 30/h, run_time: {exponential: 10m}}
"""


def sweep(folder: Path, *more: str) -> int:
    (folder / "load.yaml").write_text(LOAD)
    given = ("--synthetic", str(folder / "load.yaml"), "--nodes", "1x8", "--out", str(folder / "sweep.jsonl"))
    given = () if "--join" in more else given
    with pytest.raises(SystemExit) as ended:
        main(["simulate", *given, *more])
    return int(ended.value.code or 0)


def test_a_sweep_runs_every_policy_with_every_seed_and_prints_ranges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text((POLICIES / "capacity.yaml").read_text("utf-8"))
    assert sweep(tmp_path, "--seeds", "2", "--policy", str(POLICIES / "proportion.yaml"), "--sweep", str(other)) == 0
    names = {it.name for it in (tmp_path / "sweep").iterdir()}
    assert names == {f"{policy}-seed-{seed}.jsonl" for policy in ("proportion", "other") for seed in (1, 2)}
    printed = capsys.readouterr().out
    assert "proportion.yaml: 2 runs" in printed
    assert "other.yaml: 2 runs" in printed
    assert f"{other} against {POLICIES / 'proportion.yaml'}: 2 pairs of runs with the same load" in printed
    assert f"page: {tmp_path / 'sweep.html'}" in printed
    assert (tmp_path / "sweep.html").is_file()
    assert sweep(tmp_path, "--join", str(tmp_path), "--policy", "proportion.yaml") == 0
    assert capsys.readouterr().out in printed
    joined = tmp_path / "joined.html"
    assert sweep(tmp_path, "--join", str(tmp_path), "--policy", "proportion.yaml", "--page", str(joined)) == 0
    assert joined.read_bytes() == (tmp_path / "sweep.html").read_bytes()
    alone = tmp_path / "alone"
    alone.mkdir()
    assert sweep(alone, "--seeds", "2", "--policy", str(POLICIES / "proportion.yaml"), "--index", "1") == 0
    (result,) = (alone / "sweep").iterdir()
    assert result.name == "proportion-seed-2.jsonl"
    assert not list(alone.glob("*.html"))  # the other runs are on other machines
    assert (
        result.read_bytes().splitlines()[1:] == ((tmp_path / "sweep" / result.name).read_bytes().splitlines()[1:])
    )  # the first line names the folder


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (("--seeds", "2", "--index", "2"), "--index 2: the sweep has the runs 0 to 1"),
        (("--join", "nowhere"), "nowhere: no result of a simulation"),
        (("--sweep", "a/p.yaml", "--sweep", "b/p.yaml"), "two policies have one file name"),
        (("--seeds", "2", "--against", "before.jsonl"), "--against: is of one run, not of a sweep"),
        (("--seeds", "2", "--record", "recording"), "--record: is of one run, not of a sweep"),
        (("--seed", "-1"), "--seed: -1 is below 0; name 0 or more"),
        *(
            (("--join", ".", *more), f"{more[0]}: --join only compares results, and reads no such option")
            for more in (
                ("--nodes", "1x8"),
                ("--seeds", "2"),
                ("--out", "x.jsonl"),
                ("--no-monitors",),
                ("--until", "1h"),
            )
        ),
    ],
)
def test_an_invalid_sweep_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], problem: str
) -> None:
    assert sweep(tmp_path, *more) != 0
    assert problem in capsys.readouterr().err


def test_a_folder_of_other_files_or_of_other_policies_is_not_joined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulate(tmp_path) == 0
    assert simulate(tmp_path, "--join", str(tmp_path), "--policy", "new.yaml") == 2
    assert "--policy new.yaml: not a policy of these results\n  do next: name one of" in capsys.readouterr().err
    (tmp_path / "other.jsonl").write_text('{"kind": "event"}\n')
    assert simulate(tmp_path, "--join", str(tmp_path)) == 2
    assert "other.jsonl:1: not a line of a result" in capsys.readouterr().err


def everything_on(node: str, decide_correctly: Callable[..., Decisions]) -> Callable[..., Decisions]:
    """Return a faulty `decide` that binds every pod to one node."""

    def faulty(*given: Any, **more: Any) -> Decisions:
        decisions = decide_correctly(*given, **more)
        return msgspec.structs.replace(
            decisions, binds=[msgspec.structs.replace(it, node=node) for it in decisions.binds]
        )

    return faulty


def test_a_planted_fault_of_the_scheduler_is_found_with_time_and_cycle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Core, "decide", everything_on("node-00000", Core.decide))
    assert simulate(tmp_path) == 1
    error = capsys.readouterr().err
    assert "node: 1970-01-01T00:01:42+00:00, cycle " in error
    assert "bound to node-00000, which then holds 9 of 8 nvidia.com/gpu" in error
    assert "which then holds 9 of 8" in (tmp_path / "result.html").read_text("utf-8")


def test_a_correct_scheduler_has_no_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(tmp_path) == 0
    assert "finding" not in capsys.readouterr().err
