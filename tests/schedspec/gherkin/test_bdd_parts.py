"""Each private part of pytest-bdd and pytest that the harness leans on: an upgrade that moves one fails here first."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedspec.gherkin import bdd

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


@pytest.fixture
def feature(tmp_path: Path) -> Path:
    path = tmp_path / "some.feature"
    path.write_text(FEATURE)
    return path


def test_a_document_knows_the_line_of_everything(feature: Path) -> None:
    (scenario,) = bdd.scenarios_of(bdd.read_document(feature))
    assert scenario.location.line == 6
    assert [row.location.line for row in scenario.examples[0].table_body or ()] == [11, 12]


def test_a_file_that_has_changed_is_read_again(feature: Path) -> None:
    bdd.bind(feature, next(bdd.scenarios_of(bdd.read_document(feature))))
    feature.write_text(FEATURE.replace("There are <n>", "Others"))
    assert bdd.bind(feature, next(bdd.scenarios_of(bdd.read_document(feature)))).__name__ == "Others"


def test_a_bound_scenario_claims_its_place_in_the_feature(feature: Path) -> None:
    function = bdd.bind(feature, next(bdd.scenarios_of(bdd.read_document(feature))))
    assert (function.__code__.co_filename, function.__code__.co_firstlineno) == (str(feature), 6)


def test_sentences_are_rendered_row_by_row_background_first(feature: Path) -> None:
    function = bdd.bind(feature, next(bdd.scenarios_of(bdd.read_document(feature))))
    found = [(row, [(it.type, it.text, it.line) for it in said]) for row, said in bdd.sentences_of(function)]
    assert found == [
        ({"n": "1", "how": "well"}, [("given", "there are 2 pods", 3), ("then", "all is well", 7)]),
        ({"n": "2", "how": "lost"}, [("given", "there are 2 pods", 3), ("then", "all is lost", 7)]),
    ]


def test_definitions_are_found_with_their_place(request: pytest.FixtureRequest) -> None:
    module = request.node.getparent(pytest.Module)
    runs = next(it for it in bdd.definitions_for(module) if it.pattern == '"{name}" runs')
    assert (runs.type, runs.file, runs.is_async) == ("then", "steps/pods.py", False)
    assert runs.matches('"train" runs')
    assert not runs.matches('"train" and "other" runs')


def test_a_kind_of_work_that_there_is_not_makes_no_sentence(request: pytest.FixtureRequest) -> None:
    module = request.node.getparent(pytest.Module)
    run = next(it for it in bdd.definitions_for(module) if it.pattern == "these {work:Work} run:")
    assert run.matches("these Kubernetes jobs run:")
    assert not run.matches("these Kubernetes Jobs run:")
    assert not run.matches("these jobs or services run:")


def test_every_definition_that_was_imported_is_known() -> None:
    assert '"{name}" runs' in {it.pattern for it in bdd.all_definitions()}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("Feature: f\n  Scenario: s\n    Given x\nFeature: g\n", 4),
        ("Feature: f\n  Scenario: s\n    Given x\n  oops\n", 4),
    ],
)
def test_what_is_no_gherkin_has_a_line(feature: Path, text: str, line: int) -> None:
    feature.write_text(text)
    with pytest.raises(bdd.UnreadableFeatureError) as raised:
        bdd.read_document(feature)
    assert raised.value.line == line


def test_a_plain_failure_prints_its_lines_and_nothing_else() -> None:
    failure = bdd.plain_failure(["one", "two"], "short", "x.feature", 3)
    assert str(failure) == "one\ntwo"
    assert (failure.reprcrash.message, failure.reprcrash.lineno) == ("short", 3)
