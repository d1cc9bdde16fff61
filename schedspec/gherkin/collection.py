"""A feature file is a test module: pytest collects it as it is, and nobody writes a binding."""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from . import bdd, lost_lines, selection, step_check
from .things import RunFacts

HIDDEN: pytest.StashKey[set[str]] = pytest.StashKey()
"""Our sentences that the project has its own in the place of."""
RUN_FACTS: pytest.StashKey[RunFacts] = pytest.StashKey()
"""What is known of the run before any scenario; nothing where nobody says it."""


def collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """What `pytest_collect_file` returns for `file_path`."""
    if file_path.suffix != ".feature":
        return None
    return FeatureFile.from_parent(parent, path=file_path)


class FeatureFile(pytest.Module):
    """One feature file: its Rules, and the scenarios outside of them, by their plain names."""

    def _getobj(self) -> types.ModuleType:
        module = types.ModuleType(self.path.stem, doc=f"The scenarios of {self.path.name}.")
        module.__file__ = str(self.path)
        return module

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Everything that is wrong with the file is told at once, before any of it runs."""
        text = self.path.read_text("utf-8")
        document, unreadable = lost_lines.read(text)
        problems = [step_check.Problem(line, told) for line, told in unreadable]
        if document is not None:
            index = step_check.StepIndex(bdd.definitions_for(self))
            facts = self.config.stash.get(RUN_FACTS, RunFacts())
            problems += step_check.check_document(document, marker_names(self.config))
            problems += step_check.check_steps(document, text.splitlines(), index, facts)
        if problems or document is None:
            raise self.CollectError(step_check.tell(self.path, self.config.rootpath, problems))
        bdd.forget(self.path)
        functions = {node.name: bdd.bind(self.path, node) for node in bdd.scenarios_of(document)}
        vars(self.obj).update(functions)
        self.config.stash.setdefault(HIDDEN, set()).update(index.hidden)
        for name, found in groupby(selection.entries(document), key=lambda it: it.rule):
            if name is None:
                yield from items_of(self, self, functions, list(found))
            else:
                yield Rule.from_parent(self, name=name, functions=functions, entries=list(found))


class Rule(pytest.Collector):
    """One Rule of a feature file: `path.feature::rule` selects its scenarios, and `-k` finds them by its name."""

    def __init__(
        self, *, functions: dict[str, types.FunctionType], entries: Sequence[selection.Entry], **arguments: Any
    ) -> None:
        super().__init__(**arguments)
        self._functions, self._entries = functions, entries

    def collect(self) -> Iterator[pytest.Item]:
        """The scenarios of the Rule."""
        file = self.getparent(FeatureFile)
        assert file is not None
        return items_of(file, self, self._functions, self._entries)


def items_of(
    file: FeatureFile,
    parent: pytest.Collector,
    functions: dict[str, types.FunctionType],
    entries: Sequence[selection.Entry],
) -> Iterator[pytest.Item]:
    """The items of these entries: one a scenario, or one a row of its examples."""
    for name, rows in groupby(entries, key=lambda it: it.scenario.name):
        yield from bdd.items_of(file, parent, functions[name], [row.name for row in rows])


def marker_names(config: pytest.Config) -> set[str]:
    """The markers that are registered: the tags that may be used."""
    return {line.split(":")[0].split("(")[0].strip() for line in config.getini("markers")}
