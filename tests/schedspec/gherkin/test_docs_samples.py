"""Run the samples of docs/harness.md, so that a page with imports that do not exist fails here."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from schedspec.api.kinds import Kind, Ref
from schedspec.observe.history import History

PAGE = Path(__file__).parents[3] / "docs" / "harness.md"
SAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def test_the_sentences_of_the_page_can_be_collected(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nstrict = true\n")
    pytester.makeconftest(SAMPLES[0])
    (pytester.path / "scale.feature").write_text(
        'Feature: f\n  Scenario: s\n    When service "chat" gets 3 replicas\n    Then all of "chat" runs\n'
    )
    result = pytester.runpytest_inprocess("-p", "schedspec.plugin", "-p", "no:cacheprovider", "--collect-only", "-q")
    result.stdout.fnmatch_lines(["*scale.feature::s*"])
    assert result.ret == 0


def test_the_check_of_the_page_returns_expectation_and_observation() -> None:
    made: dict[str, object] = {}
    exec(compile(SAMPLES[1], str(PAGE), "exec"), made)
    outcome = made["runs"]("chat")(History("ns").now())  # type: ignore[operator]
    assert outcome.expected == "chat runs"
    assert outcome.seen


@pytest.mark.parametrize(
    ("leaving", "found"), [(4, []), (5, ["5 pods leave at once, 0.00 s after the scenario began"])]
)
def test_the_monitor_of_the_page_judges_every_state(leaving: int, found: list[str]) -> None:
    made: dict[str, Any] = {}
    exec(compile(SAMPLES[2], str(PAGE), "exec"), made)
    history = History("ns")
    for number in range(leaving):
        meta = {
            "name": f"p{number}",
            "namespace": "ns",
            "uid": f"u{number}",
            "deletionTimestamp": "2026-01-01T00:00:00Z",
        }
        pod = {"metadata": meta, "spec": {}, "status": {}}
        history.record(Ref(Kind.POD, f"p{number}", "ns"), "added", pod)
    for number in range(leaving):  # at the end no pod is left: only the states in between show the violation
        ref = Ref(Kind.POD, f"p{number}", "ns")
        history.record(ref, "gone", history.story(ref)[-1].object)
    assert made["pytest_schedspec_judge"](SimpleNamespace(history=history)) == found


def test_every_python_sample_of_the_page_is_run_here() -> None:
    assert len(SAMPLES) == 3
