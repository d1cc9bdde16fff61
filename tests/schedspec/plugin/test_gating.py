"""Missing capabilities skip a scenario, known differences are expected failures, and repeated runs are counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., pytest.RunResult]

STEPS = '''
from schedspec.api.capabilities import Capability
from schedspec.api.errors import Unmet
from schedspec.gherkin.step_decorators import given as own_given, then as own_then
from schedspec.schedulers import UnsuitableClusterError

@own_given("a tree of queues", needs=(Capability.QUEUES, Capability.HIERARCHY))
def tree():
    """There is a tree of queues."""

@own_given("these things:", needs=lambda sentence: {Capability.CARDS} if "cards" in sentence.columns else ())
def things(datatable):
    """There are things of any sort."""

@own_then("it is otherwise")
def otherwise():
    """The condition is not met."""
    raise Unmet("this", "that")

@own_then("exactly {number:d} pods are evicted{more}")
def evicted(number, more):
    """The number of evictions is not met."""
    raise Unmet(f"{number} evictions", "none")

@own_then("it suits no installation")
def unsuitable():
    """The run may not configure the scheduler."""
    raise UnsuitableClusterError("known lacks this policy here (another setting)")

@own_then("it breaks")
def breaks():
    """The step has a defect."""
    raise RuntimeError("broken")
'''

ADAPTER = """
from pathlib import Path
from schedspec.api.capabilities import Capability
from schedspec.schedulers import Own

class Flat(Own):
    name = "flat"
    lacks = {Capability.HIERARCHY: "its queues are a list", Capability.CARDS: "it cannot count"}

class Known(Own):
    name = "known"
    known_file = Path(__file__).with_name("known.yaml")

class Thrice(Own):
    name = "thrice"
    runs = 3
"""

PLAIN = "Feature: f\n  Scenario: s\n    Then all is well\n"


@pytest.fixture
def adapters(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytester.makepyfile(my_adapters=ADAPTER)
    monkeypatch.syspath_prepend(pytester.path)
    monkeypatch.delitem(__import__("sys").modules, "my_adapters", raising=False)
    return pytester.path


TREE, CARDS, END = "Given a tree of queues", "Given these things:\n      | cards |\n      | 8 |", "Then all is well\n"
LACKING = {
    "a sentence": (f"  Scenario: s\n    {TREE}\n    {END}", "hierarchy (its queues are a list)"),
    "a column": (f"  Scenario: s\n    {CARDS}\n    {END}", "cards (it*"),
    "a tag": (f"  @needs-hierarchy\n  Scenario: s\n    {END}", "hierarchy (its queues are a list)"),
    "several": (
        f"  @needs-cards\n  Scenario: s\n    {TREE}\n    {END}",
        "hierarchy (its queues are a list); cards (it cannot count)",
    ),
}


@pytest.mark.parametrize(("scenario", "why"), LACKING.values(), ids=LACKING)
def test_a_scenario_is_skipped_with_the_capability_that_the_scheduler_lacks(
    specs: Run, adapters: Path, scenario: str, why: str
) -> None:
    result = specs("--scheduler", "my_adapters:Flat", "-rs", steps=STEPS, f=f"Feature: f\n{scenario}")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines([f"SKIPPED*flat lacks {why}*"])


def test_our_own_scheduler_lacks_no_capability(specs: Run) -> None:
    specs(steps=STEPS, f=f"Feature: f\n{LACKING['several'][0]}").assert_outcomes(passed=1)


def test_an_absent_column_needs_no_capability(specs: Run, adapters: Path) -> None:
    feature = "Feature: f\n  Scenario: s\n    Given these things:\n      | pods |\n      | 8 |\n    Then all is well\n"
    specs("--scheduler", "my_adapters:Flat", steps=STEPS, f=feature).assert_outcomes(passed=1)


def test_an_unknown_need_is_refused(specs: Run) -> None:
    result = specs(f="Feature: f\n  @needs-hirarchy\n  Scenario: s\n    Then all is well\n")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*unknown tag @needs-hirarchy; is @needs-hierarchy meant?*"])


def test_a_policy_that_an_installation_does_not_permit_counts_as_lacking(specs: Run, adapters: Path) -> None:
    (adapters / "known.yaml").write_text(
        ENTRY % (adapters.name, "s", "", "")
    )  # it does not count as a known difference
    feature = "Feature: f\n  Scenario: s\n    Then it suits no installation\n"
    result = specs("--scheduler", "my_adapters:Known", "-rs", "--out", "out", steps=STEPS, f=feature)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*known lacks this policy here (another setting)"])
    (row,) = json.loads((adapters / "out" / "results.json").read_text("utf-8"))["results"]
    assert (row["verdict"], row["why"]) == ("lacks", "known lacks this policy here (another setting)")


OUTLINE = (
    "Feature: f\n  Scenario Outline: it is <how>\n    Then all is <what>\n\n"
    "    Examples:\n      | how | what |\n      | good | well |\n      | bad | lost |\n"
)
ENTRY = (
    "- {feature: %s/f.feature, scenario: '%s', instead: 'the other thing', upstream: 'https://example.org/1',"
    " signatures: [{sentence: 'exactly 2 pods are evicted%s', expected: {evictions: 2}}]%s}\n"
)


def known(path: Path, scenario: str, more: str = "", sentence: str = "") -> None:
    (path / "known.yaml").write_text(ENTRY % (path.name, scenario, sentence, more))


@pytest.mark.parametrize(
    "sentence", ["it is otherwise", "exactly 3 pods are evicted, at most", "exactly 2 pods are evicted, at least"]
)
def test_a_different_failure_of_a_scenario_is_not_a_known_difference(specs: Run, adapters: Path, sentence: str) -> None:
    known(adapters, "s", sentence=", at most")
    feature = f"Feature: f\n  Scenario: s\n    Then {sentence}\n"
    result = specs("--scheduler", "my_adapters:Known", steps=STEPS, f=feature)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*This is a different failure*", f"sentence: {sentence}"])


def test_a_known_difference_is_an_expected_failure(specs: Run, adapters: Path) -> None:
    known(adapters, "s", sentence=", at most")
    result = specs(
        *("--scheduler", "my_adapters:Known", "-rx"),
        steps=STEPS,
        f="Feature: f\n  Scenario: s\n    Then exactly 2 pods are evicted, at most\n",
    )
    result.assert_outcomes(xfailed=1)
    result.stdout.fnmatch_lines(["XFAIL*known difference: the other thing (https://example.org/1)*"])


def test_a_difference_by_design_is_neither_known_nor_failed(specs: Run, adapters: Path) -> None:
    entry = ENTRY.replace("upstream: 'https://example.org/1'", "design: 'https://example.org/design.md'")
    (adapters / "known.yaml").write_text(entry % (adapters.name, "s", ", at most", ""))
    feature = "Feature: f\n  Scenario: s\n    Then exactly 2 pods are evicted, at most\n"
    result = specs("--scheduler", "my_adapters:Known", "-rx", "--out", "out", steps=STEPS, f=feature)
    result.assert_outcomes(xfailed=1)
    [row] = json.loads((adapters / "out" / "results.json").read_text())["results"]
    assert row["verdict"] == "by design"
    assert row["why"] == "differs by design: the other thing (https://example.org/design.md)"


def test_a_difference_is_a_mistake_or_a_design_not_both(specs: Run, adapters: Path) -> None:
    known(adapters, "s", ", design: 'https://example.org/design.md'")
    result = specs("--scheduler", "my_adapters:Known", f=PLAIN)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*known.yaml: s: name `upstream` for a mistake or `design`, not both*"])


def test_a_known_difference_that_is_fixed_fails_the_run(specs: Run, adapters: Path) -> None:
    known(adapters, "s")
    result = specs("--scheduler", "my_adapters:Known", f=PLAIN)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*XPASS(strict)*known difference: the other thing*"])


def test_a_scenario_with_an_intermittent_known_difference_may_pass(specs: Run, adapters: Path) -> None:
    known(adapters, "s", ", sometimes: true")
    specs("--scheduler", "my_adapters:Known", f=PLAIN).assert_outcomes(xpassed=1)


def test_a_known_difference_does_not_hide_a_defect_of_a_step(specs: Run, adapters: Path) -> None:
    known(adapters, "s")
    feature = "Feature: f\n  Scenario: s\n    Then it breaks\n"
    specs("--scheduler", "my_adapters:Known", steps=STEPS, f=feature).assert_outcomes(failed=1)


def test_a_known_difference_can_cover_a_single_row_of_examples(specs: Run, adapters: Path) -> None:
    known(adapters, "it is <how>", ", example: {how: bad}", sentence=" *")
    feature = OUTLINE.replace("all is <what>", "<what>").replace("| well", "| all is well")
    feature = feature.replace("| lost |", "| exactly 2 pods are evicted at all |")
    specs("--scheduler", "my_adapters:Known", steps=STEPS, f=feature).assert_outcomes(passed=1, xfailed=1)


def test_a_known_difference_covers_only_its_versions_of_kubernetes(specs: Run, adapters: Path) -> None:
    known(adapters, "s", ", versions: ['1.36']")
    arguments = ("--scheduler", "my_adapters:Known", "--cluster", "embedded", "--kubernetes-version", "1.37")
    specs(*arguments, f=PLAIN).assert_outcomes(passed=1)


def test_an_invalid_file_of_known_differences_is_a_usage_error(specs: Run, adapters: Path) -> None:
    known(adapters, "s", ", upstraem: typo")
    result = specs("--scheduler", "my_adapters:Known", f=PLAIN)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*known.yaml: Object contains unknown field `upstraem`*"])


def test_a_scheduler_without_a_deterministic_order_runs_scenarios_several_times(specs: Run, adapters: Path) -> None:
    specs("--scheduler", "my_adapters:Thrice", f=PLAIN).assert_outcomes(passed=3)
    specs("--scheduler", "my_adapters:Thrice", "--runs", "2", f=PLAIN).assert_outcomes(passed=2)
    specs("--scheduler", "my_adapters:Thrice", "--runs", "1", f=PLAIN).assert_outcomes(passed=1)
    result = specs("--runs", "2", "-v", f=OUTLINE.replace("| lost |", "| well |").replace("bad", "fine"))
    result.stdout.fnmatch_lines(["*it is good[[]run 1[]] PASSED*"])
    result.assert_outcomes(passed=4)


@pytest.mark.parametrize("runs", ["0", "x", "1001"])
def test_an_invalid_number_of_runs_is_a_usage_error(specs: Run, runs: str) -> None:
    result = specs("--runs", runs, f=PLAIN)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: '{runs}' is not a number above 0"])
