"""The samples of docs/harness.md are run: a page whose imports do not exist is found here, not by its reader."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "harness.md"
SAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def test_the_sentences_of_the_page_are_found_at_collection(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nstrict = true\n")
    pytester.makeconftest(SAMPLES[0])
    (pytester.path / "scale.feature").write_text(
        'Feature: f\n  Scenario: s\n    When service "chat" gets 3 replicas\n    Then all of "chat" runs\n'
    )
    result = pytester.runpytest_inprocess("-p", "schedspec.plugin", "-p", "no:cacheprovider", "--collect-only", "-q")
    result.stdout.fnmatch_lines(["*scale.feature::s*"])
    assert result.ret == 0


def test_the_check_of_the_page_tells_what_it_saw() -> None:
    from schedspec.observe.history import History  # noqa: PLC0415 - as the sample imports

    made: dict[str, object] = {}
    exec(compile(SAMPLES[1], str(PAGE), "exec"), made)
    outcome = made["runs"]("chat")(History("ns").now())  # type: ignore[operator]
    assert outcome.expected == "chat runs"
    assert outcome.seen


def test_every_python_sample_of_the_page_is_run_here() -> None:
    assert len(SAMPLES) == 2
