"""Summary, annotations and outputs of a run for GitHub, from results that real runs have written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from schedspec.api.errors import HarnessError
from schedspec.ci import github, joined
from schedspec.ci.joined import ResultsError, Suite
from schedspec.results import FeatureLine, Result, Verdict

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
def read(specs: Run, pytester: pytest.Pytester) -> Callable[..., Suite]:
    """Run these features and read the results that pytest wrote."""

    def run(*arguments: str, **features: str) -> Suite:
        specs("--junitxml", "out/junit.xml", "-o", "strict=false", *arguments, **features)
        return joined.read([pytester.path / "out"])

    return run


def case(name: str, text: str = "why") -> Result:
    place = FeatureLine("features/x.feature", 1, "Then it runs: 0 of 1")
    file = place.path
    return Result(feature=file, node_id=f"{file}::{name}", verdict="failed", seconds=1.0, text=text, places=[place])


def test_results_are_counted(read: Callable[..., Suite]) -> None:
    found = read("--continue-on-collection-errors", good=FEATURE, bad=UNDEFINED)
    assert sorted(it.verdict for it in found.results) == ["error", "failed", "passed"]
    assert (found.verdict, github.headline(found)) == ("failed", "1 of 2 scenarios failed, 1 did not run")


def test_a_failure_is_annotated_at_its_line(read: Callable[..., Suite]) -> None:
    (line,) = github.annotate(read(good=FEATURE), prefix="specs")
    assert line.startswith("::error file=specs/good.feature,line=7,title=bad%2C with a comma::")


def test_every_undefined_sentence_is_annotated_at_its_line(read: Callable[..., Suite]) -> None:
    lines = list(github.annotate(read(bad=UNDEFINED)))
    assert lines == [
        "::error file=bad.feature,line=3,title=bad.feature::no step matches: Given one",
        "::error file=bad.feature,line=4,title=bad.feature::no step matches: Then two",
    ]


def test_ten_failures_are_annotated_and_the_others_are_counted() -> None:
    lines = list(github.annotate(Suite(tuple(case(f"c{number}") for number in range(12)))))
    assert [line.startswith("::error") for line in lines] == [True] * 10 + [False]
    assert lines[-1] == "::notice::2 more failures are in the step summary"


def test_commands_are_escaped() -> None:
    (line,) = github.annotate(Suite((replace(case("50%: a,b"), places=[FeatureLine("x.feature", 3, "100%\r\nmore")]),)))
    assert line == "::error file=x.feature,line=3,title=50%25%3A a%2Cb::100%25%0D%0Amore"


def test_outputs_have_verdict_counts_and_paths(read: Callable[..., Suite]) -> None:
    markdown = github.outputs(read(good=FEATURE), "out/run", "out/run/report.html")
    assert markdown == (
        "verdict=failed\npassed=1\nfailed=1\nerrors=0\nskipped=0\nreport=out/run\npage=out/run/report.html\n"
    )


def test_the_summary_has_the_story_and_the_files(read: Callable[..., Suite]) -> None:
    markdown = github.summary(read(good=FEATURE))
    assert markdown.startswith("## schedspec: 1 of 2 scenarios failed\n")
    assert "<code>good.feature:7</code> (in the report: <code>#" in markdown
    assert "</code>) bad, with a comma</summary>" in markdown
    assert "in the sentence: Then all is lost" in markdown
    assert "| `good.feature` | 1 | 1 |  |" in markdown


def test_the_details_of_the_summary_are_folded() -> None:
    failed = replace(
        case("a | b"), expected="exactly 1 eviction", seen="2 evictions: a-0, a-1", because="reclaimed for chat"
    )
    skipped = replace(case("later"), verdict="skipped", places=[])
    markdown = github.summary(Suite((failed, skipped)))
    head, _, folded = markdown.partition("<details>")
    assert head.splitlines() == [
        "## schedspec: 1 of 1 scenario failed, 1 skipped",
        "",
        "| scenario | expected | seen | because |",
        "| --- | --- | --- | --- |",
        r"| `features/x.feature:1` a \| b | exactly 1 eviction | 2 evictions: a-0, a-1 | reclaimed for chat |",
        "",
        "",
    ]
    assert "<details open>" not in markdown
    assert folded.count("<details>") == folded.count("</details>") - 1
    (line,) = github.annotate(Suite((failed,)))
    assert line.endswith("::Then it runs: 0 of 1%0Areclaimed for chat")


def test_the_summary_of_many_failures_fits_on_one_screen() -> None:
    head = github.summary(Suite(tuple(case(f"c{number}", "x" * 900) for number in range(90)))).partition("<details>")[0]
    assert len(head.splitlines()) < 30
    assert "… and 70 more: see the stories below." in head


def test_the_summary_links_to_the_line_of_the_commit_and_to_the_uploaded_files() -> None:
    variables = {
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_SHA": "abc",
        "GITHUB_RUN_ID": "7",
    }
    markdown = github.summary(Suite((case("a"),)), links=github.Links.of(variables, "specs"))
    assert "[`features/x.feature:1`](https://github.com/o/r/blob/abc/specs/features/x.feature#L1)" in markdown
    assert "[Download the report](https://github.com/o/r/actions/runs/7#artifacts)" in markdown
    assert "](http" not in github.summary(Suite((case("a"),)), links=github.Links.of({}))


def test_a_story_cannot_break_out_of_its_fence() -> None:
    markdown = github.summary(Suite((case("x <b>", "```\n</details>\n````"),)))
    assert "\n`````text\n```\n</details>\n````\n`````\n" in markdown
    assert "x &lt;b&gt;</summary>" in markdown


def test_the_summary_stays_below_the_limit_of_github() -> None:
    markdown = github.summary(Suite(tuple(case(f"c{number}", "x" * 150 + "\n" * 70) for number in range(6000))))
    assert len(markdown.encode()) < 1 << 20
    assert "more failures: see the uploaded report" in markdown


def test_a_run_without_scenarios_is_reported_as_such(read: Callable[..., Suite]) -> None:
    found = read("-k", "absent", good=FEATURE)
    assert (found.verdict, github.headline(found)) == ("empty", "no scenario was run")


def test_a_folder_without_results_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"no results\.json found"):
        joined.read([tmp_path])


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("{")
    with pytest.raises(HarnessError, match=r"results\.json"):
        joined.read([tmp_path])


def test_shards_of_a_run_join(specs: Run, pytester: pytest.Pytester) -> None:
    for number in (1, 2, 3):
        specs("--shard", f"{number}/3", "--junitxml", f"out/{number}/junit.xml", "--out", f"out/{number}", a=FEATURE)
    found = joined.read([pytester.path / "out"])
    assert (len(found.passed), len(found.bad)) == (1, 1)
    (pytester.path / "out/2/shard.json").unlink()
    with pytest.raises(ResultsError, match="missing: 2"):
        joined.read([pytester.path / "out"])


def test_a_run_writes_its_durations_for_the_next_run(specs: Run, pytester: pytest.Pytester) -> None:
    specs("--out", "out", a=FEATURE)
    result = specs("--shard", "1/2", "--shard-durations", "out/durations.json", "--collect-only", "-q", a=FEATURE)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*1/2 tests collected (1 deselected)*"])


def test_a_shard_without_scenarios_is_no_failure(specs: Run) -> None:
    assert specs("--shard", "3/3", a=FEATURE).ret == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shard", "7/2"], "*'7/2' is not a shard*"),
        (["--shard", "1/2", "--shard-durations", "none.json"], "*none.json' is not a file*"),
        (["--shard", "1/2", "--shard-durations", "a.feature"], "*is not a file of durations*"),
    ],
)
def test_an_invalid_shard_is_rejected_as_a_usage_error(specs: Run, arguments: list[str], message: str) -> None:
    result = specs(*arguments, a=FEATURE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


HEADLINES = {
    "12 scenarios passed in 12 s": {"passed": 12},
    "2 of 12 scenarios failed, 8 did not run, 1 skipped": {"passed": 10, "failed": 2, "error": 8, "skipped": 1},
    "1 scenario passed in 9 s, 8 did not run": {"passed": 1, "error": 8},
    "8 did not run": {"error": 8},
    "no scenario was run, 3 skipped": {"skipped": 3},
}


@pytest.mark.parametrize(("text", "verdicts"), HEADLINES.items(), ids=HEADLINES)
def test_the_headline_names_what_failed_and_what_did_not_run(text: str, verdicts: dict[Verdict, int]) -> None:
    results = [replace(case(f"{it}{n}"), verdict=it) for it, number in verdicts.items() for n in range(number)]
    assert github.headline(Suite(tuple(results))) == text
