"""At the end of a run: the report, its path, its links in JUnit, Cucumber Messages; the same under xdist."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

Run = Callable[..., pytest.RunResult]

FEATURE = """\
@smoke
Feature: f
  Background:
    Given there are 3 pods
  Rule: r
    Scenario: passes
      When nothing happens
      Then all is well
    Scenario: fails
      Then all is lost
"""


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "under xdist"])
def test_every_run_ends_with_the_path_of_its_report(specs: Run, pytester: pytest.Pytester, workers: list[str]) -> None:
    result = specs("--junitxml", "out/demo.xml", "--cucumber-messages", "out/run.ndjson", *workers, f=FEATURE)
    result.assert_outcomes(passed=1, failed=1)
    page = pytester.path / "out/demo/report.html"
    result.stdout.fnmatch_lines([f"report: {page}"])
    text = page.read_text("utf-8")
    assert "1 of 2 scenarios failed" in text
    for words in ("passes", "fails", "@smoke", "Rule</span> r", "there are 3 pods"):
        assert words in text
    rows = [json.loads(line) for line in (pytester.path / "out/run.ndjson").read_text("utf-8").splitlines()]
    assert sum("testCaseFinished" in row for row in rows) == 2
    junit = (pytester.path / "out/demo.xml").read_text("utf-8")
    links = re.findall(r'name="schedspec-report" value="[^"]*report.html#([^"]+)"', junit)
    assert len(links) == 2
    assert all(f'id="{link}"' in text for link in links)


def test_a_report_has_the_scenarios_of_its_own_run_only(specs: Run, pytester: pytest.Pytester) -> None:
    specs("--junitxml", "out/demo.xml", f=FEATURE)
    specs("--junitxml", "out/demo.xml", "-k", "passes", f=FEATURE)
    assert "1 scenario passed" in (pytester.path / "out/demo/report.html").read_text("utf-8")


def test_a_scenario_that_passes_deletes_the_files_of_its_earlier_failure(specs: Run, pytester: pytest.Pytester) -> None:
    feature = FEATURE.replace("all is lost", "it is unmet")
    steps = '''
from schedspec.api.errors import Unmet

@then("it is unmet")
def unmet():
    """Never."""
    raise Unmet("all pods run", "1 of 2 run", (), "within 20 s")
'''
    specs("--junitxml", "out/demo.xml", f=feature, steps=steps)
    [failed] = (pytester.path / "out/demo/scenarios").glob("*fails*")
    assert (failed / "failure.txt").exists()
    specs("--junitxml", "out/demo.xml", f=feature, steps=steps.replace("raise", "assert True or"))
    assert sorted(it.name for it in failed.iterdir()) == ["f-9-fails.json"]


def test_a_run_without_scenarios_writes_no_report(specs: Run, pytester: pytest.Pytester) -> None:
    result = specs("--junitxml", "out/demo.xml", "--collect-only", f=FEATURE)
    result.stdout.no_fnmatch_line("report: *")
    assert not (pytester.path / "out/demo/report.html").exists()
