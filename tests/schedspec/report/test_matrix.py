"""The matrix: a run writes its results, several runs are one table, and its numbers add up."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from schedspec import report
from schedspec.cli.matrix import matrix_command
from schedspec.report import html, matrix, record
from schedspec.report.record import ScenarioRecord, Software
from schedspec.results import Numbers, Result, RunResults, Verdict, read

Run = Callable[..., pytest.RunResult]


def result(scenario: str, verdict: Verdict, run: int = 1, why: str = "", **example: str) -> Result:
    return Result(feature="features/f.feature", scenario=scenario, example=example, run=run, verdict=verdict, why=why)


def a_run(scheduler: str, *results: Result, version: str = "v1") -> RunResults:
    return RunResults(
        scheduler=scheduler, version=version, kubernetes="v1.36.3", cluster="embedded", results=list(results)
    )


OURS = a_run("ours", result("one", "passed"), result("two is <n>", "passed", n="2"))
THEIRS = a_run(
    "theirs",
    *(result("one", verdict, run, why="<other>") for run, verdict in enumerate(("passed", "failed", "passed"), 1)),
    result("two is <n>", "lacks", why="theirs lacks cards (it cannot | count)", n="2"),
)


def test_runs_of_several_schedulers_are_columns() -> None:
    found = matrix.make([OURS, THEIRS])
    assert [column.title for column in found.columns] == [
        "ours v1 on Kubernetes v1.36.3",
        "theirs v1 on Kubernetes v1.36.3",
    ]
    assert [row.scenario for row in found.rows] == ["one", "two is 2"]
    assert [[cell.text if cell else "" for cell in row.cells] for row in found.rows] == [["✓", "✗ 2 of 3"], ["✓", "–"]]


def test_two_runs_of_one_scheduler_are_one_column() -> None:
    found = matrix.make([OURS, a_run("ours", result("one", "failed"))])
    assert [cell.text for row in found.rows for cell in row.cells if cell] == ["✗ 1 of 2", "✓"]
    assert len(matrix.make([OURS, a_run("ours", result("one", "failed"), version="v2")]).columns) == 2


def test_the_summary_counts_by_level_and_lists_differences() -> None:
    core = result("one", "passed")
    runs = [a_run("ours", msgspec.structs.replace(core, level="core")), THEIRS]
    lines = matrix.summary(matrix.make(runs)).splitlines()
    assert lines[2] == "| core | 1 of 1 ✓ | 0 of 1 ✓ |"
    assert lines[3] == "| without a level |  | 1 – |"
    assert lines[4] == "| all | 1 of 1 ✓ | 0 of 1 ✓, 1 – |"
    assert lines[lines.index("| failed | 0 | 1 |") :][:4][-1] == "| all | 1 | 2 |"
    assert lines[-1] == "| theirs v1 on Kubernetes v1.36.3 | features/f.feature: one | ✗ 2 of 3 &lt;other> |"


def test_every_column_adds_up_to_all() -> None:
    totals = matrix.make([OURS, THEIRS]).totals()
    assert [sum(it.values()) for it in totals] == [2, 2]
    assert totals[1]["failed"] == totals[1]["lacks"] == 1


def test_a_scenario_that_was_not_run_is_an_empty_cell() -> None:
    found = matrix.make([OURS, a_run("theirs", result("one", "passed"))])
    assert found.rows[1].cells[1] is None
    assert found.totals()[1]["passed"] == 1


def test_numbers_are_means() -> None:
    runs = [
        msgspec.structs.replace(result("one", "passed", run), numbers=Numbers(seconds, evictions, 0.5))
        for run, seconds, evictions in ((1, 1.0, 2), (2, 2.0, 3))
    ]
    cell = matrix.make([a_run("ours", *runs)]).rows[0].cells[0]
    assert cell is not None
    assert (cell.seconds_to_run, cell.evictions, cell.evicted_to_requested) == (1.5, 2.5, 0.5)


def test_markdown_is_escaped_and_lists_what_happened_instead() -> None:
    text = matrix.markdown(matrix.make([OURS, THEIRS]))
    assert "- **theirs v1 on Kubernetes v1.36.3**, features/f.feature, one: &lt;other>" in text
    assert all(line.count("|") == 4 for line in text.splitlines() if line.startswith("|"))


def test_the_page_of_the_matrix_is_escaped() -> None:
    text = html.render([], [matrix.view(matrix.make([OURS, THEIRS]), [])])
    assert "&lt;other&gt;" in text
    assert "<other>" not in text


def record_of(scheduler: str, kubernetes: str) -> ScenarioRecord:
    return ScenarioRecord(
        feature="f",
        feature_file="features/f.feature",
        scenario="one",
        node_id="features/f.feature::one",
        line=2,
        cluster=Software("embedded", kubernetes),
        scheduler=Software(scheduler, "v1"),
        policy="",
        policy_sha256="",
        began=0.0,
        seconds=1.0,
        verdict="passed",
    )


def test_each_difference_has_a_picture(tmp_path: Path) -> None:
    results = [
        msgspec.structs.replace(result("one", verdict), node_id="features/f.feature::one")
        for verdict in ("known", "passed")
    ]
    found = matrix.make([a_run("theirs", results[0]), a_run("ours", results[1])])
    files = matrix.write(found, tmp_path, [record_of("ours", "v1.36.3"), record_of("theirs", "v1.36.3")])
    assert files[-1] == tmp_path / "pictures" / "theirs-v1-features-f-2.svg"
    assert files[-1].read_text("utf-8").lstrip().startswith("<")
    assert [it.parent.name for it in files].count("pictures") == 1


def test_a_cell_links_to_the_page_of_its_scenario() -> None:
    one = msgspec.structs.replace(result("one", "passed"), node_id="features/f.feature::one")
    records = [record_of("ours", "v1.36.3"), record_of("theirs", "v1.36.3"), record_of("theirs", "v1.37.1")]
    links = re.findall(r'href="#(features-f-2[^"]*)"', matrix.view(matrix.make([a_run("theirs", one)]), records).body)
    titles = {it.anchor: it.record.scheduler.name + it.record.cluster.version for it in html.Report(records).scenarios}
    assert [titles[link] for link in links] == ["theirsv1.36.3"]


def test_a_cell_shows_the_measurements() -> None:
    ran = msgspec.structs.replace(result("one", "passed"), numbers=Numbers(0.314, 4, 2.0))
    found = matrix.make([a_run("ours", ran, result("two", "lacks"))])
    assert "| one | ✓ <br>0.31 s to run, 4 evicted, 2 × the requests |" in matrix.markdown(found)
    assert "0.31 s to run, 4 evicted" in matrix.view(found, []).body
    assert found.rows[1].cells[0] is not None
    assert found.rows[1].cells[0].measured == ""


def test_a_report_of_several_schedulers_has_the_matrix_as_a_page(tmp_path: Path) -> None:
    template = {"feature": "f", "feature_file": "features/f.feature", "scenario": "one", "node_id": "n", "line": 2}
    rest = {"policy": "", "policy_sha256": "", "began": 0.0, "seconds": 1.0, "verdict": "passed"}
    for run in (OURS, THEIRS):
        folder = tmp_path / run.scheduler
        software = {"cluster": {"name": "embedded"}, "scheduler": {"name": run.scheduler}}
        record.write(msgspec.convert({**template, **rest, **software}, ScenarioRecord), folder / "scenarios" / "f")
        (folder / "results.json").write_bytes(msgspec.json.encode(run))
    report.build([tmp_path / "ours"], tmp_path / "one.html")
    report.build([tmp_path], tmp_path / "both.html")
    heading = ">What each scheduler does</h1>"
    assert heading not in (tmp_path / "one.html").read_text("utf-8")
    assert heading in (tmp_path / "both.html").read_text("utf-8")


def test_a_run_writes_its_results(specs: Run, pytester: pytest.Pytester) -> None:
    feature = (
        "Feature: f\n  Scenario: good\n    Then all is well\n\n  Scenario Outline: it is <how>\n    Then all is <what>"
        "\n\n    Examples:\n      | how | what |\n      | bad | lost |\n"
    )
    specs("--out", "out/here", f=feature)
    found = read(pytester.path / "out/here")
    assert found.scheduler == "schedspec"
    assert [(it.feature, it.scenario, it.example, it.verdict) for it in found.results] == [
        ("f.feature", "good", {}, "passed"),
        ("f.feature", "it is <how>", {"how": "bad", "what": "lost"}, "failed"),
    ]
    assert "assert" in found.results[1].why


def test_a_scenario_without_a_cluster_has_the_verdict_error(specs: Run, pytester: pytest.Pytester) -> None:
    steps = """
from schedspec.clusters import ClusterError
from schedspec.gherkin.step_decorators import then

@then("there is no cluster")
def no_cluster():
    raise ClusterError("it did not boot", "here", "try again")
"""
    specs("--out", "out/here", steps=steps, f="Feature: f\n  Scenario: s\n    Then there is no cluster\n")
    (found,) = read(pytester.path / "out/here").results
    assert found.verdict == "error"
    assert "it did not boot" in found.why


def test_the_workers_of_a_run_write_one_file(specs: Run, pytester: pytest.Pytester) -> None:
    specs("-n", "2", "--out", "out/here", f="Feature: f\n  Scenario: s\n    Then all is well\n")
    assert [it.verdict for it in read(pytester.path / "out/here").results] == ["passed"]


def test_the_command_writes_the_tables_and_a_summary(tmp_path: Path) -> None:
    for run in (OURS, THEIRS):
        (tmp_path / run.scheduler).mkdir()
        (tmp_path / run.scheduler / "results.json").write_bytes(msgspec.json.encode(run))
    out = tmp_path / "matrix"
    arguments = [str(tmp_path / "ours"), str(tmp_path / "theirs"), "--out", str(out)]
    done = CliRunner().invoke(matrix_command, arguments)
    assert done.output.split() == [
        *(str(out / f"matrix.{kind}") for kind in ("json", "md", "html")),
        str(out / "summary.md"),
    ]
    assert sorted(it.name for it in out.iterdir()) == ["matrix.html", "matrix.json", "matrix.md", "summary.md"]
    assert msgspec.json.decode((out / "matrix.json").read_bytes(), type=matrix.Matrix).rows


@pytest.mark.parametrize("text", [None, "{", "{}"])
def test_a_folder_without_readable_results_is_refused(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "results.json").write_text(text)
    done = CliRunner().invoke(matrix_command, [str(tmp_path)], standalone_mode=False)
    assert done.return_value == 1
    assert str(tmp_path / "results.json") in done.output


def test_a_column_of_virtual_time_says_so_and_names_no_kubernetes() -> None:
    virtual = msgspec.structs.replace(OURS, cluster="simulated")
    found = matrix.make([OURS, virtual])
    assert [column.title for column in found.columns] == ["ours v1, simulated", "ours v1 on Kubernetes v1.36.3"]
    assert [column.short for column in found.columns] == [["v1", "simulated"], ["v1", "on 1.36.3"]]
