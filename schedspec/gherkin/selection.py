"""Which scenario is meant: what a failure prints (`path.feature:59`) and what a reviewer reads select, as node ids do.

A Rule is a node of its own, and each row of an outline is an item whose name has the row's values in it. Nobody has
to know that: `path.feature:59` is the scenario (or the row) in that line, `path.feature::59` the same,
`path.feature::name` a scenario wherever in the file it stands, and the outline's own name all of its rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import bdd

_ARGUMENT = re.compile(r"(?P<path>.+\.feature)(?P<colon>::?)(?P<what>.+)", re.DOTALL)


class NotSelectableError(Exception):
    """There is no such line or file. The text says what there is."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of a feature file, before pytest has made it."""

    rule: str | None
    scenario: bdd.ScenarioNode
    name: str
    """The item's: of a row of an outline with its values in it, and unique in the file."""
    lines: range
    """Of the scenario, its tags and examples included."""
    row: int | None
    """The line of the examples' row; None for what is no outline."""

    @property
    def node(self) -> str:
        """What follows the path in a node id."""
        return f"{self.rule}::{self.name}" if self.rule is not None else self.name


def entries(document: bdd.Document) -> list[Entry]:
    """The items of a feature file, in its order."""
    found = list(_rows(document))
    taken = Counter(name for _, _, name, _, _ in found)
    return [
        Entry(rule, node, name if taken[name] == 1 else f"{name}[{identity}]", _lines(document, node), row)
        for rule, node, name, identity, row in found
    ]


def _rows(document: bdd.Document) -> Iterator[tuple[str | None, bdd.ScenarioNode, str, str, int | None]]:
    for rule, node in bdd.placed_scenarios(document):
        rows = [
            (dict(zip((cell.value for cell in table.table_header.cells), values, strict=True)), values, row)
            for table in node.examples
            if table.table_header is not None
            for row in table.table_body or ()
            if (values := [cell.value for cell in row.cells])
        ]
        for filled, values, row in rows:
            yield rule, node, bdd.filled(node.name, filled), "-".join(values), row.location.line
        if not rows:
            yield rule, node, node.name, "", None


def _lines(document: bdd.Document, node: bdd.ScenarioNode) -> range:
    """From its first tag to the line before what follows."""
    starts = sorted(_first(it) for it in bdd.parts_of(document))
    first = _first(node)
    return range(first, next((start for start in starts if start > first), 1 << 31))


def _first(part: bdd.Part) -> int:
    tags: Sequence[bdd.Tag] = getattr(part, "tags", ())
    return min([int(part.location.line), *(int(tag.location.line) for tag in tags)])


def node_ids(arguments: Sequence[str], folder: Path) -> list[str]:
    """pytest's arguments, with each that means a line or a scenario by its plain name as node ids.

    Paths are relative to `folder`. What is no feature file, or already a node id, stays as it is; so does a file that
    cannot be read, which its collection tells. Raises NotSelectableError: no scenario stands in that line.
    """
    return [chosen for argument in arguments for chosen in _chosen(argument, folder)]


def _chosen(argument: str, folder: Path) -> list[str]:
    asked = _ARGUMENT.fullmatch(argument)
    if asked is None or (folder / argument).exists():
        return [argument]
    path, what = asked["path"], asked["what"]
    if asked["colon"] == ":" and not what.split(":")[0].isdigit():
        return [argument]
    if not (folder / path).is_file():
        raise NotSelectableError(f"there is no file {path} (looked for in {folder})")
    try:
        document = bdd.read_document(folder / path)
    except bdd.UnreadableFeatureError:
        return [path]
    known = entries(document)
    if what.split(":")[0].isdigit() and not any(it.node == what for it in known):
        return _by_line(path, int(what.split(":")[0]), document, known)
    return [f"{path}::{node}" for node in _by_name(what, known)]


def _by_line(path: str, line: int, document: bdd.Document, known: Sequence[Entry]) -> list[str]:
    there = [it for it in known if line in it.lines]
    row = [it for it in there if it.row == line]
    if there:
        return [f"{path}::{it.node}" for it in row or there]
    rule = next((it for it in reversed(list(bdd.rules_of(document))) if _first(it) <= line), None)
    if rule is not None:  # its own line, its description, its background
        return [f"{path}::{rule.name}"]
    if known and line < known[0].lines.start and line > 0:
        return [path]
    raise NotSelectableError(f"{path}:{line}: the file has no such line of a scenario")


def _by_name(what: str, known: Sequence[Entry]) -> list[str]:
    if any(what in (it.node, it.rule) for it in known):
        return [what]
    plain = what.rpartition("::")[2]
    found = [it.node for it in known if plain in (it.name, it.scenario.name)]
    return found or [what]
