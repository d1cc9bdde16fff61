"""What an editor offers at a place of a feature."""

from __future__ import annotations

import pytest

from schedspec.gherkin.completion import Sentence, completions

SENTENCES = [
    Sentence("given", "these nodes:"),
    Sentence("when", '"{name}" grows to {number:d} pods'),
    Sentence("then", '"{name}" runs'),
    Sentence("then", "nothing is evicted"),
    Sentence("", "anything"),
    Sentence("then", '"{name}" 运行起来'),
]
TEXT = """Feature: f
  Scenario: s
    Given these nodes:
      | node | cpu |
      | n-1  | 4   |
      | n-2  | 4   |
    When "train" completes
    Then """
CASES: dict[str, tuple[str, list[str]]] = {
    "after Then": (TEXT, ['"{name}" runs', "nothing is evicted", "anything", '"{name}" 运行起来']),
    "after And, by the sentence above": (f"{TEXT}nothing is evicted\n    And not", ["nothing is evicted"]),
    "after When": (f'{TEXT}"a" runs\n    When pods', ['"{name}" grows to {number:d} pods']),
    "by words in any order": (f"{TEXT}evicted nothing", ["nothing is evicted"]),
    "within quotes": (f'{TEXT}"n', ["n-1", "n-2"]),
    "a whole name": (f'{TEXT}"train', []),
    "in prose": (f"{TEXT}nothing is evicted\n    some words", []),
    "in a table": (f"{TEXT}nothing is evicted\n      | n", []),
    "in Chinese": ("# language: zh-CN\n功能: f\n  场景: s\n    那么运行", ['"{name}" 运行起来']),
    "in an empty file": ("", []),
}


@pytest.mark.parametrize(("text", "labels"), CASES.values(), ids=CASES)
def test_an_editor_offers_what_can_stand_there(text: str, labels: list[str]) -> None:
    lines = text.splitlines() or [""]
    found = completions(text, len(lines) - 1, len(lines[-1]), SENTENCES)
    assert [it.label for it in found] == labels


def test_a_placeholder_is_a_stop_of_the_snippet() -> None:
    text = f"{TEXT}\n    When "
    (found, *_) = completions(text, 8, 9, SENTENCES)
    assert found.snippet == '"${1:name}" grows to ${2:number} pods'
    assert found.start == 9
