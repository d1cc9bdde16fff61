"""Every rule of the definitions and of the admission policies refuses some object of a test."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.scheduler.controllers.crds.conftest import CRDS
from tests.scheduler.controllers.crds.fields import cases
from tests.scheduler.controllers.crds.test_refusals import CASES, KEPT
from tests.scheduler.controllers.crds.test_updates import FIXED

SEEN = [
    *(text for case in CASES["refused"] for text in case["message"]),
    *(case.row["refused"] for case in cases() if "refused" in case.row),
    *(text.partition(": ")[2] or text for _, text in FIXED),
    KEPT,
]
"""The parts of refusals that tests expect from the API server."""


def rules(at: Any, where: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield the text of each rule in a document, without names and amounts, and its place."""
    if isinstance(at, list):
        for place, one in enumerate(at):
            yield from rules(one, f"{where}[{place}]")
    elif isinstance(at, dict):
        if ("rule" in at or "expression" in at) and ("message" in at or "messageExpression" in at):
            written = (
                re.findall(r"'([^']*)'", at["messageExpression"]) if "messageExpression" in at else [at["message"]]
            )
            yield where, [words.strip(" :;,") for words in written if len(words) > 12]
        for name, one in at.items():
            yield from rules(one, f"{where}.{name}")


RULES = [
    (f"{file.stem}{place}", words)
    for file in sorted(CRDS.glob("*.yaml"))
    for document in yaml.safe_load_all(file.read_text("utf-8"))
    for place, words in rules(document["spec"])
]


@pytest.mark.parametrize(("place", "words"), RULES)
def test_every_rule_refuses_an_object_of_a_test(place: str, words: list[str]) -> None:
    seen = [text for text in SEEN if len(text) > 8]
    assert any(text in part or part in text for text in seen for part in words), f"{place}: untested: {words[0]!r}"
