"""Each row of the table of gangs in docs/conformance.md names a scenario and a fault that it may detect."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from schedspec.gherkin import documents
from tests.test_the_tests.faults import FAULTS

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.split("|")[2:4]]
    for line in (ROOT / "docs" / "conformance.md").read_text("utf-8").splitlines()
    if re.search(r"\| `[a-z-]+` \|$", line)
]


def test_the_table_has_rows() -> None:
    assert len(ROWS) >= 7


@pytest.mark.parametrize(("scenario", "fault"), ROWS)
def test_the_scenario_may_detect_the_fault(scenario: str, fault: str) -> None:
    place, _, title = scenario.partition(": ")
    document = documents.read_document(ROOT / "features" / f"{place}.feature")
    found = [node for node in documents.scenarios_of(document) if node.name == title]
    assert found, f"features/{place}.feature has no scenario {title!r}"
    lines = (scenario, *(step.text for step in found[0].steps))
    assert any(part in line for part in FAULTS[fault.strip("`")].where for line in lines)
