"""List the sentences that scenarios can use: their meanings, the values of placeholders, the columns of tables."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from types import ModuleType

import msgspec

from . import bdd, step_decorators


class CatalogueEntry(msgspec.Struct, frozen=True):
    """One sentence.

    Attributes:
        words: The values that a placeholder may have.
        columns: The columns that its table may have, by the kind of work if they differ.
    """

    module: str
    type: str
    sentence: str
    meaning: str
    words: dict[str, list[str]]
    columns: dict[str, list[str]]
    language: str


def sentences(modules: Iterable[ModuleType]) -> list[CatalogueEntry]:
    """Return the sentences of our modules, ordered by module and place; those of other languages come last."""
    names = {module.__name__ for module in modules}
    found = [_entry(step) for step in bdd.all_definitions() if step.function.__module__ in names]
    return sorted(found, key=lambda entry: entry.language != "en")


def own_sentences() -> list[CatalogueEntry]:
    """Return every imported sentence of the project under test, ordered by file and line."""
    own = (step for step in bdd.all_definitions() if not bdd.is_ours(step.function))
    return [_entry(step) for step in own if step.function.__module__.partition(".")[0] != "pytest_bdd"]


def _entry(step: bdd.StepDefinition) -> CatalogueEntry:
    facts = step_decorators.facts_of(step.pattern)
    docs = (inspect.getdoc(step.function) or "(it has no docstring)").splitlines()[0]
    return CatalogueEntry(
        module=step.function.__module__.rpartition(".")[2],
        type=(step.type or "any").capitalize(),
        sentence=step.pattern,
        meaning=docs,
        words={name: list(words) for name, words in facts.words.items()},
        columns={work: list(columns) for work, columns in facts.columns.items()},
        language="en" if step.pattern.isascii() else "zh-CN",
    )


def text(found: Sequence[CatalogueEntry]) -> str:
    """Return the catalogue for a terminal."""
    return "\n".join(_lines(found))


def _lines(found: Sequence[CatalogueEntry]) -> Iterator[str]:
    tables: dict[str, str] = {}
    for module, entries in groupby(found, key=lambda entry: (entry.language, entry.module)):
        yield f"{module[1]}{'' if module[0] == 'en' else f' ({module[0]})'}"
        for entry in entries:
            yield f"  {entry.type:5} {entry.sentence}"
            yield f"        {entry.meaning}"
            yield from (f"        {{{name}}}: {', '.join(words)}" for name, words in entry.words.items())
            yield from (f"        {line}" for line in _once(entry, tables))
        yield ""


def _once(entry: CatalogueEntry, tables: dict[str, str], quote: str = "") -> list[str]:
    """Return the columns of a sentence's table, or the name of an earlier sentence that has the same columns.

    `tables` holds the tables printed so far: columns → sentence. Columns that all kinds of work share are printed once.
    """
    if not entry.columns:
        return []
    common = [
        name for name in next(iter(entry.columns.values())) if all(name in names for names in entry.columns.values())
    ]
    several = len(entry.columns) > 1
    lines = [_columns("", [f"{quote}{name}{quote}" for name in common])] if several else []
    for work, names in entry.columns.items():
        own = [f"{quote}{name}{quote}" for name in names if not several or name not in common]
        lines += [f"{'and ' if several else ''}{_columns(work, own)}"]
    first = tables.get(text := "\n".join(lines))
    tables.setdefault(text, entry.sentence)
    return lines if first is None else [f"columns as in `{first}`"]


def _columns(work: str, names: Sequence[str]) -> str:
    return f"columns{f' of {work}' if work else ''}: {', '.join(names)}"


def markdown(found: Sequence[CatalogueEntry]) -> str:
    """Return the catalogue for a page: one table for each module."""
    rows: list[str] = []
    tables: dict[str, str] = {}
    for (language, module), entries in groupby(found, key=lambda entry: (entry.language, entry.module)):
        rows += ["", f"## {module}" + ("" if language == "en" else f" ({language})"), ""]
        rows += ["| | sentence | what it means |", "| --- | --- | --- |"]
        for entry in entries:
            more = [f"`{{{name}}}`: {', '.join(words)}" for name, words in entry.words.items()]
            more += _once(entry, tables, "`")
            meaning = "<br>".join(part.replace("|", "\\|") for part in (entry.meaning, *more))
            rows.append(f"| {entry.type} | `{entry.sentence}` | {meaning} |")
    return "\n".join(rows[1:]) + "\n"
