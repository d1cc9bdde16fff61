"""Each internal of pytest-bdd and pytest that the harness uses has a test, so that an upgrade fails here first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from schedspec.gherkin import bdd, documents, plain_failure

FEATURE = """\
Feature: f
  Background:
    Given there are 2 pods

  Rule: r
    Scenario Outline: There are <n>
      Then all is <how>

      Examples:
        | n | how  |
        | 1 | well |
        | 2 | lost |
"""


LONG = '''\
Feature: f
  Background:
    Given a
  Rule: r
    Background:
      Given b
      * c
    Scenario Outline: <n>
      When d <n>
      And e:
        | n   |
        | <n> |
      Then f
        """
        text <n>
        """
      Examples:
        | n |
        | 1 |
        | 2 |
    Scenario: s
      Then g
      But h
'''


@pytest.fixture
def feature(tmp_path: Path) -> Path:
    path = tmp_path / "some.feature"
    path.write_text(FEATURE)
    return path


def test_a_document_has_the_line_of_each_scenario_and_row(feature: Path) -> None:
    (scenario,) = documents.scenarios_of(documents.read_document(feature))
    assert scenario.location.line == 6
    assert [row.location.line for row in scenario.examples[0].table_body or ()] == [11, 12]


def test_a_file_that_has_changed_is_read_again(feature: Path) -> None:
    bdd.bind(feature, next(documents.scenarios_of(documents.read_document(feature))))
    feature.write_text(FEATURE.replace("There are <n>", "Others"))
    assert bdd.bind(feature, next(documents.scenarios_of(documents.read_document(feature)))).__name__ == "Others"


def test_the_code_of_a_bound_scenario_has_its_file_and_line(feature: Path) -> None:
    function = bdd.bind(feature, next(documents.scenarios_of(documents.read_document(feature))))
    assert (function.__code__.co_filename, function.__code__.co_firstlineno) == (str(feature), 6)


def test_each_row_of_examples_yields_its_sentences_with_the_background_first(feature: Path) -> None:
    written = documents.sentences_in(documents.read_document(feature))
    found = [(case.row, [(step.type, step.text, step.line) for step in case.sentences]) for case in written]
    assert found == [
        ({"n": "1", "how": "well"}, [("given", "there are 2 pods", 3), ("then", "all is well", 7)]),
        ({"n": "2", "how": "lost"}, [("given", "there are 2 pods", 3), ("then", "all is lost", 7)]),
    ]


def test_definitions_have_their_file(request: pytest.FixtureRequest) -> None:
    module = request.node.getparent(pytest.Module)
    runs = next(step for step in bdd.definitions_for(module) if step.pattern == '"{name}" runs')
    assert (runs.type, runs.file, runs.is_async) == ("then", "steps/pods.py", False)
    assert runs.matches('"train" runs')
    assert not runs.matches('"train" and "other" runs')


def test_a_sentence_with_an_unknown_kind_of_work_does_not_match(request: pytest.FixtureRequest) -> None:
    module = request.node.getparent(pytest.Module)
    run = next(step for step in bdd.definitions_for(module) if step.pattern == "these {work:Work} run:")
    assert run.matches("these Kubernetes jobs run:")
    assert not run.matches("these Kubernetes Jobs run:")
    assert not run.matches("these jobs or services run:")


def test_all_imported_definitions_are_listed() -> None:
    assert '"{name}" runs' in {step.pattern for step in bdd.all_definitions()}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("Feature: f\n  Scenario: s\n    Given x\nFeature: g\n", 4),
        ("Feature: f\n  Scenario: s\n    Given x\n  oops\n", 4),
    ],
)
def test_a_syntax_error_has_a_line(feature: Path, text: str, line: int) -> None:
    feature.write_text(text)
    with pytest.raises(documents.UnreadableFeatureError) as raised:
        documents.read_document(feature)
    assert [number for number, _ in raised.value.problems][:1] == [line]


def test_all_syntax_errors_are_reported(feature: Path) -> None:
    feature.write_text("Feature: f\n  Scenario: s\n    Given x\n  oops\n    Given y\n  oops\n")
    with pytest.raises(documents.UnreadableFeatureError) as raised:
        documents.read_document(feature)
    assert [line for line, _ in raised.value.problems] == [4, 6]


def test_the_sentences_of_the_document_are_those_that_pytest_bdd_runs(feature: Path) -> None:
    """The static checks read the document; a run uses pytest-bdd's steps. Types, texts, tables and order are equal."""
    feature.write_text(LONG)
    document = documents.read_document(feature)
    read = [case.sentences for case in documents.sentences_in(document)]
    templates = [
        bdd.scenario_wrapper_template_registry[bdd.bind(feature, node)] for node in documents.scenarios_of(document)
    ]
    rows = [
        (template, row)
        for template in templates
        for row in [*(row for examples in template.examples for row in examples.as_contexts())] or [{}]
    ]
    run = [bdd._rendered(template, row) for template, row in rows]
    assert [[(step.type, step.text, step.line, step.table) for step in steps] for steps in read] == [
        [(step.type, step.text, step.line, step.table) for step in steps] for steps in run
    ]


def test_a_sentence_has_its_lines_and_the_values_of_its_example(feature: Path) -> None:
    feature.write_text(LONG)
    (first, *_) = documents.sentences_in(documents.read_document(feature))
    (table,) = [sentence for sentence in first.sentences if sentence.table]
    assert (table.line, table.table_lines, table.values) == (10, (11, 12), (("n", "1"),))
    assert first.sentences[-1].docstring_line == 14


def test_the_keywords_of_a_language_are_grouped_by_kind() -> None:
    assert documents.keywords_of("zh-CN").headings["场景大纲"] == "outline"
    assert documents.keywords_of("en").usual("scenario") == "Scenario"
    assert "而且" in documents.keywords_of("zh-CN").steps


RETURNS = {"False": "returns False, which nothing reads", "n == 2": "returns True, which nothing reads", "None": ""}


@pytest.mark.parametrize("verdict", RETURNS)
def test_a_step_of_the_project_that_returns_a_verdict_fails(
    specs: Callable[..., pytest.RunResult], verdict: str
) -> None:
    steps = f"\n@own_given('the answer is {{n:d}}')\ndef _(n):\n    return {verdict}\n"
    text = "Feature: f\n  Scenario: s\n    Given the answer is 2\n    Then all is well\n"
    result = specs(steps=steps, some=text)
    result.assert_outcomes(failed=bool(RETURNS[verdict]), passed=not RETURNS[verdict])
    assert RETURNS[verdict] in result.stdout.str()
    assert "Traceback" not in result.stdout.str()


def test_a_plain_failure_prints_only_its_lines() -> None:
    failure = plain_failure.failure_of(["one", "two"], "short", "x.feature", 3)
    assert str(failure) == "one\ntwo"
    assert (failure.reprcrash.message, failure.reprcrash.lineno) == ("short", 3)
