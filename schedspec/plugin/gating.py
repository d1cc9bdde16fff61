"""Which scenarios a run judges: those that its scheduler can be asked for, each as often as its order demands.

Part of the pytest plugin. What a scenario needs is told by its sentences and by its tags `@needs-NAME`; what the
scheduler lacks is skipped with the reason, and a known difference of it is an expected failure, strictly.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..api.capabilities import MEANING, TAG, Capability
from ..api.errors import Unmet
from ..gherkin import bdd, step_check, step_decorators
from ..gherkin.collection import FeatureFile
from ..schedulers import Adapter, known
from .scenarios import RUN, JudgedError

LACKS = " lacks "
"""In the reason of what is skipped because the scheduler has not what it needs."""


def declare_markers(config: pytest.Config) -> None:
    """One marker, and so one tag, for each capability."""
    for capability, meaning in MEANING.items():
        config.addinivalue_line("markers", f"{TAG}{capability}: the scheduler must have {meaning}")


def repeat(metafunc: pytest.Metafunc, times: int) -> None:
    """Make each scenario run so often."""
    if times > 1 and isinstance(metafunc.definition.parent, FeatureFile):
        metafunc.fixturenames.append(RUN)
        metafunc.parametrize(RUN, range(1, times + 1), ids=lambda number: f"run {number}")


def gate(items: list[pytest.Item], adapter: Adapter, kubernetes_version: str) -> None:
    """Mark what is skipped and what is expected to fail. Raises HarnessError for a file that cannot be read."""
    differences = known.read(adapter.known_file) if adapter.known_file is not None else []
    indices: dict[pytest.Collector, step_check.StepIndex] = {}
    for item in items:
        scenario = bdd.scenario_of(item)
        if scenario is None or item.parent is None:
            continue
        name, row, said = scenario
        if item.parent not in indices:
            indices[item.parent] = step_check.StepIndex(bdd.definitions_for(item.parent))
        needs = {*_tagged(item), *_needed(said, indices[item.parent])}
        lacking = {it: why for it in Capability if it in needs and (why := adapter.missing(it)) is not None}
        if lacking:
            why = "; ".join(f"{it} ({why})" for it, why in lacking.items())
            item.add_marker(pytest.mark.skip(reason=f"{adapter.name}{LACKS}{why}"))
            continue
        for difference in differences:
            if difference.covers(item.path, name, row, kubernetes_version):
                strict = difference.is_strict(kubernetes_version)
                mark = pytest.mark.xfail(reason=difference.reason, raises=(Unmet, JudgedError), strict=strict)
                item.add_marker(mark)


def _tagged(item: pytest.Item) -> Iterator[Capability]:
    for marker in item.iter_markers():
        if marker.name.startswith(TAG):
            yield Capability(marker.name.removeprefix(TAG))


def _needed(said: list[bdd.Sentence], index: step_check.StepIndex) -> Iterator[Capability]:
    for sentence in said:
        for definition in index.find(sentence):
            yield from step_decorators.needs_of(definition.function, sentence)
