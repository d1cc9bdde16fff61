"""The sentences that scenarios can use: what each means, the words that it takes, and the columns of its table."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from . import bdd, own_steps, step_decorators


class CatalogueEntry(msgspec.Struct, frozen=True):
    """One sentence. `words` are what a placeholder may be; `columns` what its table may have, by the work if it
    differs.
    """

    module: str
    type: str
    sentence: str
    meaning: str
    words: dict[str, list[str]]
    columns: dict[str, list[str]]
    language: str


def sentences() -> list[CatalogueEntry]:
    """Every sentence of ours, by module and place; those of a language of its own come last."""
    modules = {module.__name__ for module in own_steps.ours()}
    found = [_entry(it) for it in bdd.all_definitions() if own_steps.is_ours(it) and it.function.__module__ in modules]
    return sorted(found, key=lambda it: it.language != "en")


def _entry(it: bdd.StepDefinition) -> CatalogueEntry:
    facts = step_decorators.facts_of(it.pattern)
    docs = (inspect.getdoc(it.function) or "(it has no docstring)").splitlines()[0]
    return CatalogueEntry(
        module=it.function.__module__.rpartition(".")[2],
        type=(it.type or "any").capitalize(),
        sentence=it.pattern,
        meaning=docs,
        words={name: list(words) for name, words in facts.words.items()},
        columns={work: list(columns) for work, columns in facts.columns.items()},
        language="en" if it.pattern.isascii() else "zh-CN",
    )


def text(found: Sequence[CatalogueEntry]) -> str:
    """For a terminal."""
    return "\n".join(_lines(found))


def _lines(found: Sequence[CatalogueEntry]) -> Iterator[str]:
    for module, entries in groupby(found, key=lambda it: (it.language, it.module)):
        yield f"{module[1]}{'' if module[0] == 'en' else f' ({module[0]})'}"
        for it in entries:
            yield f"  {it.type:5} {it.sentence}"
            yield f"        {it.meaning}"
            yield from (f"        {{{name}}}: {', '.join(words)}" for name, words in it.words.items())
            yield from (f"        {_columns(work, names)}" for work, names in it.columns.items())
        yield ""


def _columns(work: str, names: Sequence[str]) -> str:
    return f"columns{f' of {work}' if work else ''}: {', '.join(names)}"


def markdown(found: Sequence[CatalogueEntry]) -> str:
    """For a page: one table a module."""
    rows: list[str] = []
    for (language, module), entries in groupby(found, key=lambda it: (it.language, it.module)):
        rows += ["", f"## {module}" + ("" if language == "en" else f" ({language})"), ""]
        rows += ["| | sentence | what it means |", "| --- | --- | --- |"]
        for it in entries:
            more = [f"`{{{name}}}`: {', '.join(words)}" for name, words in it.words.items()]
            more += [_columns(work, [f"`{name}`" for name in names]) for work, names in it.columns.items()]
            meaning = "<br>".join(part.replace("|", "\\|") for part in (it.meaning, *more))
            rows.append(f"| {it.type} | `{it.sentence}` | {meaning} |")
    return "\n".join(rows[1:]) + "\n"
