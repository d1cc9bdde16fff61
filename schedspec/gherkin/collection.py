"""Collect feature files as test modules: a project needs no code that binds them.

Only the files and folders in `FOLDERS` are collected; a feature file elsewhere belongs to the pytest-bdd suite that
binds it.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from ..scheduler.model.input_files import NotAFileError
from . import bdd, documents, lost_lines, selection, short_names, step_check
from .things import RunFacts

HIDDEN: pytest.StashKey[set[str]] = pytest.StashKey()
"""Our sentences that the project replaces by sentences of its own."""
FOLDERS: pytest.StashKey[tuple[Path, ...]] = pytest.StashKey()
"""The files and folders whose feature files are ours."""
RUN_FACTS: pytest.StashKey[RunFacts] = pytest.StashKey()
"""Facts about the run that are known before any scenario; empty without a provider."""
UNSAVED: pytest.StashKey[Mapping[Path, str]] = pytest.StashKey()
"""Texts of an editor, by path. They are judged in place of the files, and give no items."""


def collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Return the collector of a feature file of ours; None for any other file."""
    folders = parent.config.stash.get(FOLDERS, ())
    if not documents.is_nearly_feature(file_path) or not any(file_path.is_relative_to(folder) for folder in folders):
        return None
    return FeatureFile.from_parent(parent, path=file_path)


def refuse_left_out(folder: Path, parent: pytest.Collector) -> None:
    """Refuse features that pytest would leave out, as links to nowhere, and a link to a folder above the link.

    Raises:
        CollectError: A feature is not a file, or is in a folder with such a name as `build`, or a link leads in a
            circle: pytest would run all features 40 times.
    """
    try:
        entries = sorted(folder.iterdir())
    except FileNotFoundError:  # pytest asks about each folder beside one that it collects; others may remove theirs
        return
    for entry in entries:
        is_named = any(entry.is_relative_to(ours) for ours in parent.config.stash.get(FOLDERS, ()))
        if is_named and documents.is_nearly_feature(entry) and not entry.exists():
            shown = selection.shown_path(entry, parent.config)
            raise parent.CollectError(f"{shown}:1: the link leads nowhere\n  do next: correct it, or remove it")
        if is_named and documents.is_nearly_feature(entry) and not entry.is_file() and not entry.is_dir():
            shown = selection.shown_path(entry, parent.config)
            problem = NotAFileError(entry, entry.stat().st_mode).strerror
            raise parent.CollectError(f"{shown}:1: {problem}\n  do next: remove it")
        if is_named and entry.is_symlink() and entry.is_dir() and folder.resolve().is_relative_to(entry.resolve()):
            shown = selection.shown_path(entry, parent.config)
            raise parent.CollectError(f"{shown}:1: the link leads to a folder above it\n  do next: remove it")
        is_of_features = folder.name == "features" or any(map(documents.is_nearly_feature, entries))
        if is_named and is_of_features and entry.is_dir() and _is_left_out(entry, parent.config):
            problem = "pytest leaves out folders of this name, and it has features"
            shown = selection.shown_path(entry, parent.config)
            raise parent.CollectError(f"{shown}: {problem}\n  do next: rename it, or set norecursedirs of pytest")


_LEFT_OUT = ["*.egg", ".*", "CVS", "_darcs", "build", "dist", "node_modules", "venv", "{arch}"]
"""The folders that pytest leaves out by default."""


def _is_left_out(folder: Path, config: pytest.Config) -> bool:
    """Whether pytest leaves out a folder with features by default, not by a setting. Hidden folders do not count."""
    patterns = config.getini("norecursedirs")
    is_named_so = any(fnmatch(folder.name, pattern) for pattern in patterns) and not folder.name.startswith(".")
    return (
        is_named_so and sorted(patterns) == _LEFT_OUT and next(folder.rglob(f"*{documents.SUFFIX}"), None) is not None
    )


def is_of_feature(node_id: str) -> bool:
    """Whether a node id is that of a scenario: workers of xdist send only ids."""
    return node_id.partition("::")[0].endswith(documents.SUFFIX)


def is_ours(item: pytest.Item) -> bool:
    """Whether the item is a scenario of a feature file that we collected."""
    return item.getparent(FeatureFile) is not None


class FeatureFile(pytest.Module):
    """One feature file. Its children are its Rules, and the scenarios outside of Rules."""

    problems: Sequence[step_check.Problem] = ()
    """The problems because of which the file could not be collected."""

    def _getobj(self) -> types.ModuleType:
        module = types.ModuleType(self.path.stem, doc=f"The scenarios of {self.path.name}.")
        module.__file__ = str(self.path)
        return module

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Collect the scenarios of the file; an error reports all of its problems at once, before any scenario runs."""
        shown = selection.shown_path(self.path, self.config)
        if self.path.suffix != documents.SUFFIX:
            raise self.CollectError(f"{shown}:1: {documents.WRONG_NAME}")
        unsaved = self.config.stash.get(UNSAVED, {}).get(self.path)
        try:
            text = documents.read_text(self.path) if unsaved is None else unsaved
        except documents.UnreadableFeatureError as problem:
            text, document, unreadable = "", None, list(problem.problems)
        else:
            document, unreadable = lost_lines.read(text)
        problems = [step_check.Problem(line, text) for line, text in unreadable]
        if document is not None:
            index = step_check.StepIndex(bdd.definitions_for(self))
            facts = replace(self.config.stash.get(RUN_FACTS, RunFacts()), folder=self.path.parent)
            problems += step_check.check_document(document, marker_names(self.config))
            problems += step_check.check_steps(document, text.splitlines(), index, facts)
        if problems or document is None:
            self.problems = sorted(problems, key=lambda problem: problem.line)
            raise self.CollectError(step_check.format_problems(shown, problems))
        if unsaved is not None:  # pytest-bdd would bind the scenarios of the saved file
            return
        documents.forget(self.path)
        if replaced := short_names.problems(self):
            raise self.CollectError("\n".join(replaced))
        short_names.register(self)
        functions = {node.name: bdd.bind(self.path, node) for node in documents.scenarios_of(document)}
        vars(self.obj).update(functions)
        self.config.stash.setdefault(HIDDEN, set()).update(index.hidden)
        for name, found in groupby(selection.entries(document), key=lambda entry: entry.rule):
            if name is None:
                yield from items_of(self, self, functions, list(found))
            else:
                yield Rule.from_parent(self, name=name, functions=functions, entries=list(found))


class Rule(pytest.Collector):
    """One Rule of a feature file: `path.feature::rule` selects its scenarios, and `-k` finds them by its name."""

    def __init__(
        self, *, functions: dict[str, types.FunctionType], entries: Sequence[selection.FeatureItem], **arguments: Any
    ) -> None:
        super().__init__(**arguments)
        self._functions, self._entries = functions, entries

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the scenarios of the Rule."""
        file = self.getparent(FeatureFile)
        assert file is not None
        return items_of(file, self, self._functions, self._entries)


def items_of(
    file: FeatureFile,
    parent: pytest.Collector,
    functions: dict[str, types.FunctionType],
    entries: Sequence[selection.FeatureItem],
) -> Iterator[pytest.Item]:
    """Yield the items of these entries: one for each scenario, or one for each row of its examples."""
    for name, rows in groupby(entries, key=lambda entry: entry.scenario.name):
        yield from bdd.items_of(file, parent, functions[name], [row.name for row in rows])


def marker_names(config: pytest.Config) -> set[str]:
    """Return the registered markers, which are the tags that a feature may use."""
    return {line.split(":")[0].split("(")[0].strip() for line in config.getini("markers")}
