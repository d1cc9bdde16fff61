"""Select scenarios by what failures and reviewers write (`path.feature:59`), as well as by node ids.

A Rule is a node of its own, and each row of an outline is an item of its own. Users need not know that:
`path.feature:59` and `path.feature::59` select the scenario (or the row) in that line, `path.feature::name` selects a
scenario anywhere in the file, and the name of an outline selects all of its rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from . import documents

_ARGUMENT = re.compile(r"(?P<path>.+\.feature)(?P<colon>::?)(?P<what>.+)", re.DOTALL)


class NotSelectableError(Exception):
    """The file does not exist, or no scenario is in the line."""


@dataclass(frozen=True, slots=True)
class FeatureItem:
    """One item of a feature file, before pytest creates it."""

    rule: str | None
    scenario: documents.ScenarioNode
    name: str
    """The name of the item, unique in the file: rows that share a name have their values in brackets."""
    lines: range
    """The lines of the scenario, including its tags and examples."""
    row: int | None
    """The line of the row of examples; None outside of outlines."""

    @property
    def node(self) -> str:
        """The part of a node id after the path."""
        return f"{self.rule}::{self.name}" if self.rule is not None else self.name


def shown_path(path: Path, config: pytest.Config) -> str:
    """Return the path of a feature file, relative to the folder in which the run was started."""
    here = config.invocation_params.dir
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else path.as_posix()


def entries(document: documents.Document) -> list[FeatureItem]:
    """Return the items of a feature file, in the order of the file."""
    found = list(_rows(document))
    counts = Counter(name for _, _, name, _, _ in found)
    return [
        FeatureItem(rule, node, name if counts[name] == 1 else f"{name}[{identity}]", _lines(document, node), row)
        for rule, node, name, identity, row in found
    ]


def _rows(document: documents.Document) -> Iterator[tuple[str | None, documents.ScenarioNode, str, str, int | None]]:
    for rule, node in documents.placed_scenarios(document):
        rows = [
            (dict(zip((cell.value for cell in table.table_header.cells), values, strict=True)), values, row)
            for table in node.examples
            if table.table_header is not None
            for row in table.table_body or ()
            if (values := [cell.value for cell in row.cells])
        ]
        for filled, values, row in rows:
            yield rule, node, documents.filled(node.name, filled), "-".join(values), row.location.line
        if not rows:
            yield rule, node, node.name, "", None


def _lines(document: documents.Document, node: documents.ScenarioNode) -> range:
    """Return the lines of a part: from its first tag to the line before the next part."""
    starts = sorted(_first(part) for part in documents.parts_of(document))
    first = _first(node)
    return range(first, next((start for start in starts if start > first), 1 << 31))


def _first(part: documents.Part) -> int:
    tags: Sequence[documents.Tag] = getattr(part, "tags", ())
    return min([int(part.location.line), *(int(tag.location.line) for tag in tags)])


def node_ids(arguments: Sequence[str], folder: Path) -> list[str]:
    """Return pytest's arguments, with lines and plain names of scenarios replaced by node ids.

    Paths are relative to `folder`. An argument that is already a node id, or is not a feature file, stays unchanged. So
    does a file that cannot be parsed: its collection reports the error.

    Raises:
        NotSelectableError: The file does not exist, or no scenario is in the line.
    """
    return [chosen for argument in arguments for chosen in _chosen(argument, folder)]


def _chosen(argument: str, folder: Path) -> list[str]:
    match = _ARGUMENT.fullmatch(argument)
    if match is None or (folder / argument).exists():
        return [argument]
    path, what = match["path"], match["what"]
    if match["colon"] == ":" and not what.split(":")[0].isdigit():
        return [argument]
    if not (folder / path).is_file():
        raise NotSelectableError(f"there is no file {path} (looked for in {folder})")
    try:
        document = documents.read_document(folder / path)
    except documents.UnreadableFeatureError:
        return [path]
    known = entries(document)
    if what.split(":")[0].isdigit() and not any(entry.node == what for entry in known):
        line, last = int(what.split(":")[0]), documents.read_text(folder / path).count("\n") + 1
        if line > last:
            raise NotSelectableError(f"{path}:{line}: the file has {last} lines")
        return _by_line(path, line, document, known)
    return [f"{path}::{node}" for node in _by_name(what, known)]


def _by_line(path: str, line: int, document: documents.Document, known: Sequence[FeatureItem]) -> list[str]:
    at_line = [entry for entry in known if line in entry.lines]
    row = [entry for entry in at_line if entry.row == line]
    if at_line:
        return [f"{path}::{entry.node}" for entry in row or at_line]
    rule = next((part for part in reversed(list(documents.rules_of(document))) if _first(part) <= line), None)
    if rule is not None:  # the line of the Rule, of its description or of its background
        return [f"{path}::{rule.name}"]
    if known and line < known[0].lines.start and line > 0:
        return [path]
    raise NotSelectableError(f"{path}:{line}: the file has no scenario in this line")


def _by_name(what: str, known: Sequence[FeatureItem]) -> list[str]:
    if any(what in (entry.node, entry.rule) for entry in known):
        return [what]
    plain = what.rpartition("::")[2]
    found = [entry.node for entry in known if plain in (entry.name, entry.scenario.name)]
    return found or [what]
