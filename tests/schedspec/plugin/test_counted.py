"""The page of a run and joined reports count the scenarios of this run, also skipped ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from schedspec.plugin.scenarios import folder_name
from schedspec.report import record

Run = Callable[..., pytest.RunResult]
FEATURE = "Feature: f\n  Scenario: a\n    Then all is well\n\n  Scenario: b\n    Then all is well\n"
SKIPS = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if item.name == "b":
            item.add_marker(pytest.mark.skip(reason="not today"))
"""


def counted(out: Path) -> dict[str, str]:
    return {found.scenario: found.verdict for found in record.read_all([out])}


def test_a_skipped_scenario_is_counted(specs: Run, pytester: pytest.Pytester) -> None:
    specs("--out", "out", steps=SKIPS, f=FEATURE).assert_outcomes(passed=1, skipped=1)
    assert counted(pytester.path / "out") == {"a": "passed", "b": "skipped"}
    assert "1 skipped" in (pytester.path / "out/report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("f", "s", "x y"), ("f", "s", "x-y")),
        (("f", "a-b", "c"), ("f", "a", "b-c")),
        (("f", "a-b", "c"), ("f", "a", "b c")),
        (("f", "a b", "c"), ("f", "a", "b c")),
        (("f", "a-b", "c?"), ("f", "a", "b-c?")),
    ],
)
def test_scenarios_with_similar_names_have_different_folders(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert folder_name(*one) != folder_name(*other)


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        (("gang", "all_or_none", "A gang waits"), "gang-all_or_none-A-gang-waits"),
        (("gang", "all_or_none", "A gang-job waits?"), "gang-all_or_none-A-gang-job-waits-bd2ea2"),
    ],
)
def test_the_folder_of_a_scenario_has_its_name(parts: tuple[str, ...], name: str) -> None:
    assert folder_name(*parts) == name


def test_a_record_of_an_earlier_run_is_not_counted(specs: Run, pytester: pytest.Pytester) -> None:
    specs("--out", "out", f=FEATURE).assert_outcomes(passed=2)
    assert counted(pytester.path / "out") == {"a": "passed", "b": "passed"}
    specs("--out", "out", "-k", "a and not b", f=FEATURE)
    assert len([*(pytester.path / "out").glob("scenarios/*/*.json")]) == 2
    assert counted(pytester.path / "out") == {"a": "passed"}
