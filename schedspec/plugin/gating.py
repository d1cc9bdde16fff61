"""Decide which scenarios a run judges, and how often it runs each of them.

A scenario's sentences and its tags `@needs-NAME` declare what it needs; a scenario whose needs the scheduler lacks is
skipped with the reason. A scheduler without a deterministic order runs each scenario several times. Known differences
are stored on the item and compared at the end of the scenario.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..api.capabilities import MEANING, TAG, Capability
from ..conformance import levels
from ..gherkin import bdd, documents, step_check, step_decorators
from ..gherkin.collection import is_ours
from ..schedulers import Adapter, known
from . import known_differences
from .scenarios import RUN

LACKS = " lacks "
"""Part of the reason of a scenario that is skipped because the scheduler lacks a capability."""


def declare_markers(config: pytest.Config) -> None:
    """Declare one marker, and so one tag, for each conformance level, each issue of the gallery and each capability."""
    for tag, issue in levels.ISSUES.items():
        config.addinivalue_line("markers", f"{tag}: the scenario reproduces {issue.url} ({issue.affected})")
    for level, meaning in levels.MEANING.items():
        config.addinivalue_line("markers", f"{level}: conformance level: {meaning}")
    for capability, meaning in MEANING.items():
        config.addinivalue_line("markers", f"{TAG}{capability}: skip the scenario if the scheduler lacks: {meaning}")


def repeat(metafunc: pytest.Metafunc, times: int) -> None:
    """Parametrize each scenario with the number of its run."""
    if times > 1 and is_ours(metafunc.definition):
        metafunc.fixturenames.append(RUN)
        metafunc.parametrize(RUN, range(1, times + 1), ids=lambda number: f"run {number}")


def gate(items: list[pytest.Item], adapter: Adapter, kubernetes_version: str) -> None:
    """Mark the scenarios to skip, and store the known differences of the others.

    Raises:
        HarnessError: A file that a sentence names cannot be read.
    """
    differences = known.read(adapter.known_file) if adapter.known_file is not None else []
    indices: dict[pytest.Collector, step_check.StepIndex] = {}
    for item in items:
        scenario = bdd.scenario_of(item)
        if scenario is None or item.parent is None or not is_ours(item):
            continue
        name, row, sentences = scenario
        if item.parent not in indices:
            indices[item.parent] = step_check.StepIndex(bdd.definitions_for(item.parent))
        needs = {*_tagged(item), *_needed(sentences, indices[item.parent])}
        lacking = {
            capability: why
            for capability in Capability
            if capability in needs and (why := adapter.missing(capability)) is not None
        }
        if lacking:
            why = "; ".join(f"{capability} ({why})" for capability, why in lacking.items())
            item.add_marker(pytest.mark.skip(reason=f"{adapter.name}{LACKS}{why}"))
            continue
        for difference in differences:
            if difference.covers(item.path, name, row, kubernetes_version, adapter.configuration):
                found = item.stash.setdefault(known_differences.DIFFERENCES, [])
                found.append((difference, difference.is_strict(kubernetes_version)))


def _tagged(item: pytest.Item) -> Iterator[Capability]:
    for marker in item.iter_markers():
        if marker.name.startswith(TAG):
            yield Capability(marker.name.removeprefix(TAG))


def _needed(sentences: list[documents.Sentence], index: step_check.StepIndex) -> Iterator[Capability]:
    for sentence in sentences:
        for definition in index.find(sentence):
            yield from step_decorators.needs_of(definition.function, sentence)
