"""Compare two runs: flipped verdicts, more evictions, longer times; equal scenarios are left out."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from schedspec import results
from schedspec.cli.report import report_command
from schedspec.report import comparison, record
from schedspec.report.html import without_record
from schedspec.results import Numbers, Result, RunResults, Verdict
from tests.support.scene import reclaim


def result(name: str, verdict: Verdict = "passed", *, evictions: int = 0, seconds: float = 1.0) -> Result:
    numbers = Numbers(seconds, evictions)
    return Result(feature="f.feature", scenario=name, example={}, run=1, verdict=verdict, why="why", numbers=numbers)


def run(*found: Result) -> RunResults:
    return RunResults(scheduler="s", version="1", kubernetes="v1", cluster="embedded", results=[*found])


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (result("a"), result("a", "failed"), ["verdict: f.feature: a: passed → failed"]),
        (result("a", evictions=1), result("a", evictions=2), ["evictions: f.feature: a: 1 → 2"]),
        (result("a"), result("a", seconds=3.0), ["seconds until pods run: f.feature: a: 1.00 s → 3.00 s"]),
        (result("a"), result("a", seconds=1.4), []),
        (
            result("a"),
            result("b"),
            ["only in this run: f.feature: b: passed", "only in the other run: f.feature: a: passed"],
        ),
    ],
    ids=["a verdict", "evictions", "a time", "noise of the machine", "another scenario"],
)
def test_differences_are_listed_and_equal_scenarios_are_not(before: Result, after: Result, expected: list[str]) -> None:
    same = result("same")
    found = list(comparison.lines(comparison.compare([run(before, same)], [run(after, same)])))
    assert found == (expected or ["no difference: the same verdicts, evictions and times"])


def written(folder: Path, of_run: RunResults) -> Path:
    made = msgspec.structs.replace(reclaim(), began=1.0)
    record.write(made, folder / "scenarios" / "one")
    (folder / results.FILE).write_bytes(msgspec.json.encode(of_run))
    return folder


def test_the_command_prints_the_differences_and_shows_them_on_the_page(tmp_path: Path) -> None:
    main = written(tmp_path / "main", run(result("<b>x</b>")))
    mine = written(tmp_path / "mine", run(result("<b>x</b>", "failed")))
    page = tmp_path / "report.html"
    done = CliRunner().invoke(
        report_command, [str(mine), "--against", str(main), "-o", str(page)], standalone_mode=False
    )
    assert "verdict: f.feature: <b>x</b>: passed → failed" in done.output
    assert "&lt;b&gt;x&lt;/b&gt;" in page.read_text()
    assert 'id="against"' in page.read_text()


def test_a_folder_without_results_is_no_other_run(tmp_path: Path) -> None:
    mine, page = written(tmp_path / "mine", run(result("a"))), tmp_path / "report.html"
    (tmp_path / "features").mkdir()
    given = [str(mine), "--against", str(tmp_path / "features"), "-o", str(page)]
    assert "pass the folder of a run with --against" in CliRunner().invoke(report_command, given).output
    assert not page.exists()


def test_skipped_scenarios_without_a_record_are_found() -> None:
    skipped = msgspec.structs.replace(result("later", "lacks"), node_id="f::later")
    assert [it.scenario for it in without_record([run(result("a"), skipped)], [reclaim()])] == ["later"]
