"""A line that looks like a step is never prose, in any language of Gherkin; a file that cannot be read says why."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest
from gherkin.dialect import DIALECTS

from schedspec.gherkin import documents, lost_lines, selection

SENTENCES = ("these jobs run:", "nothing is evicted", '"build" runs', "以下作业在运行：", "没有 Pod 被驱逐")
PROSE = (
    "These jobs have run for years, and nothing was evicted until now.",
    "Note: a queue that lends cards gets them back.",
    "Where jobs run: on cards.",
    "作业在运行，没有被驱逐。",
)


def _problems(language: str, *described: str) -> list[int]:
    """Return the lines that are refused in a file whose scenario has this description, from line 4 on."""
    words = documents.keywords_of(language)
    head = [f"# language: {language}", f"{words.usual('feature')}: f", f"  {words.usual('scenario')}: s"]
    lines = [*head, *(f"    {line}" for line in described)]
    document, problems = lost_lines.read("\n".join(lines))
    assert document is not None
    known = set(SENTENCES).__contains__
    return [line for line, _ in [*problems, *lost_lines.find(document, lines, known)]]


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("language", sorted(DIALECTS))
def test_a_sentence_without_its_keyword_is_no_prose(language: str, sentence: str) -> None:
    assert _problems(language, sentence) == [4]
    assert _problems(language, "A first line of prose", f"Suppose {sentence}") == [5]


@pytest.mark.parametrize("language", [name for name in sorted(DIALECTS) if name.startswith(("zh", "ja", "ko"))])
def test_a_misspelt_keyword_without_a_blank_behind_it_is_no_prose(language: str) -> None:
    assert _problems(language, f"假入{SENTENCES[3]}") == [4]


@pytest.mark.parametrize("argument", [("| job |", "| a |"), ('"""', "text", '"""'), ("```", "text", "```")])
@pytest.mark.parametrize("language", sorted(DIALECTS))
def test_prose_has_no_table_and_no_text_block(language: str, argument: tuple[str, ...]) -> None:
    assert _problems(language, "any words at all", *argument) == [5]


@pytest.mark.parametrize("prose", PROSE)
@pytest.mark.parametrize("language", ["en", "zh-CN", "de"])
def test_prose_is_accepted(language: str, prose: str) -> None:
    assert _problems(language, prose, "and a second line of it") == []


@pytest.mark.parametrize(
    ("data", "line", "text"),
    [
        (codecs.BOM_UTF8 + b"Feature: f\n", 1, "byte-order mark"),
        ("Feature: f\n".encode("utf-16"), 1, "UTF-16"),
        ("Feature: f\n".encode("utf-32"), 1, "UTF-32"),
        (codecs.BOM_UTF32_BE + "Feature: f\n".encode("utf-32-be"), 1, "UTF-32"),
        (codecs.BOM_UTF16_BE + "Feature: f\n".encode("utf-16-be"), 1, "UTF-16"),
        ("Feature: f\n  Scenario: café\n".encode("latin-1"), 2, "byte 0xe9 is not UTF-8"),
    ],
)
def test_a_file_that_is_not_plain_utf_8_says_so_in_one_sentence(
    tmp_path: Path, data: bytes, line: int, text: str
) -> None:
    file = tmp_path / "f.feature"
    file.write_bytes(data)
    with pytest.raises(documents.UnreadableFeatureError) as refused:
        documents.read_text(file)
    assert [(at, text in problem) for at, problem in refused.value.problems] == [(line, True)]


@pytest.mark.parametrize("line", ["4", "999", "1000000"])
def test_a_line_beyond_the_file_selects_nothing(tmp_path: Path, line: str) -> None:
    (tmp_path / "f.feature").write_text("Feature: f\n  Scenario: s\n    Then nothing is evicted")
    with pytest.raises(selection.NotSelectableError, match=f"f.feature:{line}: the file has 3 lines"):
        selection.node_ids([f"f.feature:{line}"], tmp_path)
