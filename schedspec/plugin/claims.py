"""Collect which cluster-scoped objects the scenarios of a run will create, as their sentences declare.

This module is part of the pytest plugin. A sentence without a declaration claims nothing; its objects are checked when
the sentence runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from ..api.kinds import Kind, Ref
from ..gherkin import bdd, collection, documents, step_check, step_decorators, things
from ..scenario.preflight import Claim

_KINDS = {things.QUEUE: Kind.QUEUE, things.NODE: Kind.NODE, things.PRIORITY_CLASS: Kind.PRIORITYCLASS}


def of_items(items: Iterable[pytest.Item]) -> Iterator[Claim]:
    """Yield the claims of every scenario that is not skipped, in the order of the items."""
    indices: dict[pytest.Collector, step_check.StepIndex] = {}
    for item in items:
        scenario = bdd.scenario_of(item)
        if scenario is None or item.parent is None or not collection.is_ours(item) or item.get_closest_marker("skip"):
            continue
        if item.parent not in indices:
            indices[item.parent] = step_check.StepIndex(bdd.definitions_for(item.parent))
        for sentence in scenario[2]:
            for step in indices[item.parent].find(sentence):
                for ref, line in _made(sentence, step):
                    yield Claim(ref, f"{item.location[0]}:{line}")


def _made(sentence: documents.Sentence, step: bdd.StepDefinition) -> Iterator[tuple[Ref, int]]:
    """Yield the objects that a sentence creates, each with its line: that of its table row if there is one."""
    values = step.values(sentence.text) or {}
    shape = step_decorators.shape_of(step.function, values, sentence.columns)
    rows = shape.read(sentence.table)[0] if shape is not None and sentence.table else []
    for thing, name in step_decorators.made_by(step.function, values, rows) or ():
        if thing in _KINDS and "*" not in name:
            lines = zip(sentence.table, sentence.table_lines, strict=True)
            yield Ref(_KINDS[thing], name), next((line for row, line in lines if name in row), sentence.line)
