"""Features on a simulated cluster: whole runs in virtual time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from schedspec.report import record
from schedspec.scheduler.recording.replay import cycles
from tests.support import verdicts

FEATURE = """
Feature: Virtual time

  Background:
    Given these nodes:
      | node | cpu | memory |
      | n1   | 2   | 8Gi    |

  Scenario: A job runs
    When these jobs are submitted:
      | job   | replicas | cpu |
      | train | 2        | 1   |
    Then "train" runs
    And "train" keeps running

  Scenario: A job that does not fit waits
    When these jobs are submitted:
      | job   | replicas | cpu |
      | train | 3        | 1   |
    Then "train" stays pending
    And "train" waits because of "cpu"

  Scenario: A job that does not fit is said to run
    When these jobs are submitted:
      | job   | replicas | cpu |
      | train | 3        | 1   |
    Then "train" runs

  Scenario: A queue that contradicts itself
    When this queue is submitted:
      | queue | weight |
      | bad   | 0      |
    Then it is refused because of "weight"
"""
ROOT = Path(__file__).parents[3]


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeini("[pytest]\naddopts = -p schedspec.plugin -p no:cacheprovider")
    pytester.makefile(".feature", virtual=FEATURE)
    return pytester


def run(suite: pytest.Pytester, *options: str) -> pytest.RunResult:
    return suite.runpytest_subprocess("virtual.feature", "-rs", "--cluster", "simulated", "--out", "out", *options)


def test_scenarios_pass_and_fail_in_virtual_time(suite: pytest.Pytester) -> None:
    result = run(suite)
    result.assert_outcomes(passed=3, failed=1)
    results = json.loads((suite.path / "out" / "results.json").read_text("utf-8"))
    assert results["cluster"] == "simulated"
    result.stdout.fnmatch_lines(['*> Then "train" runs (20.* s) fails'])  # virtual seconds
    result.stdout.fnmatch_lines(["*3 requested*"])
    records = record.read_all([suite.path / "out"])
    assert sorted(it.verdict for it in records) == ["failed", "passed", "passed", "passed"], (
        "no record is attributed to an earlier run"
    )


def test_a_run_in_virtual_time_keeps_recordings_and_claims_no_kubernetes(suite: pytest.Pytester) -> None:
    result = run(suite)
    (line,) = [line for line in result.outlines if line.startswith("simulated, in virtual time: ")]
    assert not any(word in line for word in ("running already", "logs in", "v1."))
    results = json.loads((suite.path / "out" / "results.json").read_text("utf-8"))
    assert results["kubernetes"] == ""
    decided = [it for it in record.read_all([suite.path / "out"]) if it.objects]
    assert len(decided) >= 3
    for one in decided:
        assert (one.cluster.name, one.cluster.version) == ("simulated", "")
        recorded = list(cycles(suite.path / one.recording))
        assert recorded, one.scenario
        assert all(it.namespace == one.namespace for cycle in recorded for it in cycle.cluster.jobs.values())
    page = (suite.path / "out" / "report.html").read_text("utf-8")
    assert "explain &#39;&#39;" not in page
    assert "explain ''" not in page
    assert "Kubernetes v" not in page


def test_each_worker_of_xdist_has_its_own_simulated_cluster(suite: pytest.Pytester) -> None:
    run(suite, "-n", "2", "-k", "runs or waits").assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--scheduler", "kube-scheduler"], "runs our own scheduler only"),
        (["--reuse-cluster"], "cannot be kept or reused"),
        (["--gang-api", "kubernetes"], "runs our own scheduler only"),
    ],
)
def test_unsupported_options_of_a_simulated_cluster_are_rejected(
    suite: pytest.Pytester, options: list[str], words: str
) -> None:
    result = run(suite, *options)
    assert result.ret != 0
    assert words in result.stdout.str() + result.stderr.str()


def results_of(file: Path, judged: dict[str, str]) -> Path:
    """Return the results.json of a run with one verdict for each node id."""
    same = {"feature": "a.feature", "scenario": "s", "example": {}, "run": 1}
    rows = [{**same, "node_id": node_id, "verdict": verdict} for node_id, verdict in judged.items()]
    run = {"schema": 1, "scheduler": "schedspec", "version": "", "kubernetes": "", "cluster": "embedded"}
    file.write_text(json.dumps({**run, "results": rows}), "utf-8")
    return file


TEN = {f"s{number}": "passed" for number in range(10)}
COMPARED: dict[str, tuple[dict[str, str], dict[str, str], int, str]] = {
    "equal": (TEN, TEN, 0, "10 scenarios were judged by both"),
    "different": (TEN, {**TEN, "s3": "failed"}, 1, "s3: passed and failed\n"),
    "left out by one run": (TEN, {**TEN, "s3": "skipped"}, 0, "9 scenarios were judged by both"),
    "too few": (TEN, {"s3": "passed"}, 1, "too few"),
    "other scenarios": (TEN, {"other": "passed"}, 1, "too few"),
    "none": ({}, {}, 1, "too few"),
}


@pytest.mark.parametrize(("one", "two", "status", "words"), COMPARED.values(), ids=COMPARED)
def test_verdicts_of_two_runs_are_compared_by_scenario(
    one: dict[str, str],
    two: dict[str, str],
    status: int,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = [results_of(tmp_path / "one.json", one), results_of(tmp_path / "two.json", two)]
    assert verdicts.main([str(file) for file in files]) == status
    assert words in capsys.readouterr().out


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"results": 1}'])
def test_results_that_cannot_be_read_are_named(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = results_of(tmp_path / "one.json", TEN), tmp_path / "two.json"
    if content is not None:
        two.write_text(content, "utf-8")
    assert verdicts.main([str(one), str(two)]) == 2
    assert str(two) in capsys.readouterr().err


def test_an_act_is_judged_by_the_policy_of_its_time(suite: pytest.Pytester) -> None:
    """Under card-quota no card is kept free for a guarantee; under capacity, which comes later, it is."""
    text = """
    Feature: A policy that keeps guarantees comes late
      Scenario: Work of an earlier policy uses what is guaranteed
        Given the policy "card-quota"
        And these nodes:
          | node | cpu | memory | gpus |
          | n1   | 8   | 8Gi    | 4    |
        And these queues:
          | queue | deserved | guarantee |
          | red   | gpus 2   |           |
          | blue  | gpus 2   | gpus 2    |
        And these jobs run:
          | job  | queue | gpus |
          | rose | red   | 3    |
        When the policy "capacity" is given
        And these jobs are submitted:
          | job  | queue | gpus |
          | leaf | red   | 1    |
        Then "leaf" stays pending
    """
    suite.makefile(".feature", virtual=text)
    result = run(suite)
    result.assert_outcomes(passed=1)
