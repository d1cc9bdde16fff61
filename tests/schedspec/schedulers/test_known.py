"""Every known difference names an existing scenario and links to an explanation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from schedspec.gherkin import documents
from schedspec.schedulers import ADAPTERS, known

FEATURES = Path(__file__).parents[3] / "features"
ENTRIES = [
    (name, entry)
    for name, adapter in ADAPTERS.items()
    if adapter.known_file is not None
    for entry in known.read(adapter.known_file)
]


IDS = [" ".join([f"{name}: {it.scenario}", *it.example.values(), *it.versions]) for name, it in ENTRIES]


@pytest.mark.parametrize(("name", "entry"), ENTRIES, ids=IDS)
def test_a_known_difference_names_an_existing_scenario(name: str, entry: known.KnownDifference) -> None:
    nodes = {node.name: node for node in documents.scenarios_of(documents.read_document(FEATURES / entry.feature))}
    assert entry.scenario in nodes
    rows = [
        dict(zip((cell.value for cell in it.table_header.cells), (cell.value for cell in row.cells), strict=True))
        for it in nodes[entry.scenario].examples
        for row in it.table_body
    ]
    assert not entry.example or any(entry.example.items() <= row.items() for row in rows)
    assert entry.instead
    assert (entry.upstream or entry.design).startswith("https://")
    assert not entry.design or "/issues/" not in entry.design  # an issue is not a design


@pytest.mark.parametrize("entry", [entry for _, entry in ENTRIES], ids=IDS)
def test_a_known_difference_speaks_of_work_of_its_feature(entry: known.KnownDifference) -> None:
    text = (FEATURES / entry.feature).read_text("utf-8")
    for signature in entry.signatures:
        for amounts in (signature.expected, signature.seen):
            for key in amounts:
                what, _, work = key.partition(" ")
                assert what not in ("running", "evicted") or re.search(rf"\b{re.escape(work)}\b", text), key
