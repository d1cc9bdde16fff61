"""What a run says on GitHub: from JUnit files that pytest has really written, failures and all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from schedspec.ci import github, results
from schedspec.ci.results import Case, Place, Results, ResultsError

Run = Callable[..., pytest.RunResult]

FEATURE = """\
Feature: f
  Rule: r
    Scenario: good
      Then all is well
    Scenario: bad, with a comma
      Given there are 2 pods
      Then all is lost
"""
UNDEFINED = "Feature: g\n  Scenario: s\n    Given one\n    Then two\n"


@pytest.fixture
def read(specs: Run, pytester: pytest.Pytester) -> Callable[..., Results]:
    """Run these features and read what pytest wrote."""

    def run(*arguments: str, **features: str) -> Results:
        specs("--junitxml", "out/junit.xml", "-o", "strict=false", *arguments, **features)
        return results.read([pytester.path / "out"])

    return run


def case(name: str, text: str = "why", places: int = 1) -> Case:
    blamed = tuple(Place("features/x.feature", line, "Then it runs: 0 of 1") for line in range(1, places + 1))
    return Case(name, "features/x.feature", "failed", 1.0, text, blamed)


def test_results_are_counted(read: Callable[..., Results]) -> None:
    found = read("--continue-on-collection-errors", good=FEATURE, bad=UNDEFINED)
    assert [found.count(it) for it in ("passed", "failed", "error")] == [1, 1, 1]
    assert (found.verdict, github.headline(found)) == ("failed", "2 of 3 scenarios failed")


def test_a_failure_is_annotated_at_its_line(read: Callable[..., Results]) -> None:
    (line,) = github.annotate(read(good=FEATURE), prefix="specs")
    assert line.startswith("::error file=specs/good.feature,line=5,title=bad%2C with a comma::")


def test_every_undefined_sentence_is_annotated_at_its_line(read: Callable[..., Results]) -> None:
    lines = list(github.annotate(read(bad=UNDEFINED)))
    assert lines == [
        "::error file=bad.feature,line=3,title=bad.feature::no step says: Given one",
        "::error file=bad.feature,line=4,title=bad.feature::no step says: Then two",
    ]


def test_ten_are_annotated_and_the_others_counted() -> None:
    lines = list(github.annotate(Results(tuple(case(f"c{number}") for number in range(12)))))
    assert [line.startswith("::error") for line in lines] == [True] * 10 + [False]
    assert lines[-1] == "::notice::2 more failures are in the step summary"


def test_commands_are_escaped() -> None:
    (line,) = github.annotate(
        Results((Case("50%: a,b", "x", "failed", 1.0, "", (Place("x.feature", 3, "100%\r\nmore"),)),))
    )
    assert line == "::error file=x.feature,line=3,title=50%25%3A a%2Cb::100%25%0D%0Amore"


def test_outputs_are_what_a_workflow_asks(read: Callable[..., Results]) -> None:
    said = github.outputs(read(good=FEATURE), "out/run", "out/run/report.html")
    assert said == (
        "verdict=failed\npassed=1\nfailed=1\nerrors=0\nskipped=0\nreport=out/run\npage=out/run/report.html\n"
    )


def test_the_summary_has_the_story_and_the_files(read: Callable[..., Results]) -> None:
    said = github.summary(read(good=FEATURE))
    assert said.startswith("## schedspec: 1 of 2 scenarios failed\n")
    assert "<code>good.feature:5</code> (<code>report.html#" in said
    assert "</code>) bad, with a comma</summary>" in said
    assert "in the sentence: Then all is lost" in said
    assert "| `good.feature` | 1 | 1 |" in said


def test_a_story_cannot_break_out_of_its_fence() -> None:
    said = github.summary(Results((case("x <b>", "```\n</details>\n````"),)))
    assert "\n`````text\n```\n</details>\n````\n`````\n" in said
    assert "x &lt;b&gt;</summary>" in said


def test_the_summary_stays_below_the_limit_of_github() -> None:
    said = github.summary(Results(tuple(case(f"c{number}", "x" * 150 + "\n" * 70) for number in range(6000))))
    assert len(said.encode()) < 1 << 20
    assert "more failures, which the uploaded report has" in said


def test_a_run_of_nothing_says_so(read: Callable[..., Results]) -> None:
    found = read("-k", "absent", good=FEATURE)
    assert (found.verdict, github.headline(found)) == ("empty", "no scenario was run")


def test_no_junit_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="no JUnit file"):
        results.read([tmp_path])


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").write_text("<testsuites>")
    with pytest.raises(ResultsError, match=r"junit\.xml: no element found"):
        results.read([tmp_path])


def test_shards_of_a_run_join(specs: Run, pytester: pytest.Pytester) -> None:
    for number in (1, 2, 3):
        specs("--shard", f"{number}/3", "--junitxml", f"out/{number}/junit.xml", "--out", f"out/{number}", a=FEATURE)
    found = results.read([pytester.path / "out"])
    assert (found.count("passed"), found.count("failed")) == (1, 1)
    (pytester.path / "out/2/shard.json").unlink()
    with pytest.raises(ResultsError, match="missing: 2"):
        results.read([pytester.path / "out"])


def test_a_run_leaves_its_durations_for_the_next(specs: Run, pytester: pytest.Pytester) -> None:
    specs("--out", "out", a=FEATURE)
    result = specs("--shard", "1/2", "--shard-durations", "out/durations.json", "--collect-only", "-q", a=FEATURE)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*1/2 tests collected (1 deselected)*"])


def test_a_shard_without_scenarios_is_no_failure(specs: Run) -> None:
    assert specs("--shard", "3/3", a=FEATURE).ret == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--shard", "7/2"], "*'7/2' is not a shard*"),
        (["--shard", "1/2", "--shard-durations", "none.json"], "*none.json' is not a file*"),
        (["--shard", "1/2", "--shard-durations", "a.feature"], "*is not a file of durations*"),
    ],
)
def test_a_wrong_shard_is_refused_at_once(specs: Run, arguments: list[str], said: str) -> None:
    result = specs(*arguments, a=FEATURE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])
