"""`.ci/summary` sums the results of `make test`: JUnit files of tests, `results.json` of feature runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "summary"
JUNIT = """<testsuites><testsuite time="1.5">
<testcase name="good"/><testcase name="bad"><failure message="m">expected 1
seen 2</failure></testcase><testcase name="late"><skipped message="no cluster"/></testcase>
</testsuite></testsuites>"""


def summary(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False, timeout=60)


def feature_run(out: Path, *verdicts: str) -> None:
    folder = out / "kind" / "features-kind"
    folder.mkdir(parents=True)
    rows = [{"node_id": f"f.feature::{it}", "verdict": it, "text": f"why {it}", "seconds": 0.25} for it in verdicts]
    (folder / "results.json").write_text(json.dumps({"results": rows, "others": []}))


def test_tests_and_features_are_added_up(tmp_path: Path) -> None:
    (tmp_path / "tests-unit.xml").write_text(JUNIT)
    feature_run(tmp_path, "passed", "failed", "known", "lacks", "error")

    done = summary(str(tmp_path), "0")

    assert done.stdout.splitlines()[:2] == [
        "features-kind: 1 failed, 1 passed, 2 skipped, 1 error in 1.25s",
        "tests-unit: 1 failed, 1 passed, 1 skipped in 1.50s",
    ]
    assert "2 failed, 2 passed, 3 skipped, 1 error in 2.75s" in done.stdout
    assert done.returncode == 0


def test_a_test_that_passed_when_repeated_is_named_and_counts_as_passed(tmp_path: Path) -> None:
    (tmp_path / "tests-unit.xml").write_text(JUNIT)
    (tmp_path / "again").mkdir()
    repeated = JUNIT.replace('<failure message="m">expected 1\nseen 2</failure>', "")
    (tmp_path / "again" / "tests-unit.xml").write_text(repeated)
    feature_run(tmp_path, "passed")

    output = summary(str(tmp_path), "0").stdout

    assert "tests-unit: bad failed, and passed when it was run once more: find out why" in output
    assert "tests-unit: 2 passed, 1 skipped in 1.50s" in output


@pytest.mark.parametrize("verdicts", [(), ("skipped", "lacks")])
def test_a_run_without_a_scenario_on_kind_fails(tmp_path: Path, verdicts: tuple[str, ...]) -> None:
    if verdicts:
        feature_run(tmp_path, *verdicts)
    done = summary(str(tmp_path), "0")
    assert "no scenario ran on Kind" in done.stdout
    assert done.returncode == 1


def test_the_page_shows_failures_and_names_truncated_files(tmp_path: Path) -> None:
    (tmp_path / "tests-unit.xml").write_text(JUNIT)
    (tmp_path / "tests-kind.xml").write_text(JUNIT[:80])
    feature_run(tmp_path, "passed", "failed")

    page = summary(str(tmp_path)).stdout

    assert "| features-kind | 1 | 1 | 0 | 0 |" in page
    assert "| tests-kind | was cut off | | | |" in page
    assert "**bad**\n\n```\nexpected 1\nseen 2\n```" in page
    assert "why failed" in page
