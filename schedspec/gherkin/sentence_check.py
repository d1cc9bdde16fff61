"""Check one sentence whose step is known: its table, its text block, and the names that it uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

from . import bdd, step_decorators, tables
from .documents import Sentence
from .things import FILES, RESOURCE, KnownThings

Found = tuple[int, str]
"""A line and its problem."""


def check_sentence(sentence: Sentence, step: bdd.StepDefinition, known: KnownThings) -> Iterator[Found]:
    """Yield every problem of the sentence.

    Args:
        sentence: The sentence to check.
        step: Its step definition.
        known: The things that exist before the sentence; updated with those that the sentence makes.
    """
    values = step.values(sentence.text) or {}
    shape = step_decorators.shape_of(step.function, values, sentence.columns)
    yield from _arguments(sentence, step, shape)
    yield from ((sentence.line, text) for text in step_decorators.unreadable_in(step.function, values))
    yield from _references(sentence, step, values, known)
    if (refused := step_decorators.refusal_in(step.function, values)) is not None:
        known.expect_refusal(refused)
    rows: list[tables.Row] = []
    is_read = shape is None
    if shape is not None and sentence.table:
        rows, is_read = yield from _table(sentence, shape, known)
    if is_read and (why := step_decorators.vacuous_in(step.function, values, rows)):
        yield sentence.line, f"this sentence says nothing: {why}"
    judged, queue = step_decorators.judged_by(step.function, values)
    if judged and not known.has(judged):
        yield sentence.line, f"this sentence says nothing: no earlier sentence creates a {judged}"
    elif queue and not known.has_work_in(queue):
        yield sentence.line, f"this sentence says nothing: no earlier sentence creates work in queue {queue!r}"
    made = step_decorators.made_by(step.function, values, rows)
    if shape is not None and not rows:  # already reported; the table's names are unknown
        known.add_anything()
    elif made is not None:
        if step.type == "given":
            yield from ((sentence.line, text) for text in known.replace_policies(made))
        yield from ((sentence.line, text) for text in known.repeated(made))
        known.add(made)
    elif step.type != "then" and not bdd.is_ours(step.function):
        known.add_anything()


def _references(
    sentence: Sentence, step: bdd.StepDefinition, values: Mapping[str, Any], known: KnownThings
) -> Iterator[Found]:
    """Yield the names in placeholders that cannot exist, and record which of the named things are gone afterwards."""
    for placeholder, kinds in step_decorators.references_of(step.function).items():
        value = str(values.get(placeholder, ""))
        try:
            named = _names_in(value, placeholder, kinds)
        except ValueError as problem:
            yield sentence.line, f"{value!r}: {problem}"
            continue
        for name in named:
            if unknown := known.problem(kinds, name):
                yield sentence.line, unknown
            elif kinds in FILES:
                yield from (
                    (sentence.line, text)
                    for text in known.add_file(sentence.line, kinds, name, changed=bool(sentence.table))
                )
            if placeholder == step_decorators.removed_by(step.function):
                known.remove(kinds, name)


def _names_in(value: str, placeholder: str, kinds: str) -> list[str]:
    """Return the names in a placeholder's value: several in the plural, the resource of an amount (`8 gpus`).

    Raises:
        ValueError: A name of several is empty, or is written twice.
    """
    if kinds == RESOURCE:
        return [tables.resource(value.rpartition(" ")[2])]
    found = tables.names(value) if placeholder.endswith("s") else [value]
    if repeated := [name for name, number in Counter(found).items() if number > 1]:
        raise ValueError(f"{repeated[0]} appears twice")
    return found


def _arguments(sentence: Sentence, step: bdd.StepDefinition, shape: tables.Shape | None) -> Iterator[Found]:
    columns = f"; its columns: {', '.join(shape.columns)}" if shape is not None else ""
    for argument, what, line in (
        ("datatable", "table", sentence.table_lines[0] if sentence.table_lines else 0),
        ("docstring", "text block", sentence.docstring_line),
    ):
        accepts = step.accepts(argument)
        if line and accepts is False:
            yield line, f"this sentence takes no {what}, and would ignore it: {sentence}"
        if not line and accepts:
            more = columns if what == "table" else ""
            yield sentence.line, f"this sentence needs a {what} below it: {sentence}{more}"


def _table(
    sentence: Sentence, shape: tables.Shape, known: KnownThings
) -> Generator[Found, None, tuple[list[tables.Row], bool]]:
    """Yield the problems of the table by line; return the rows that can be read, and whether these are all cells."""
    table, lines = sentence.table, sentence.table_lines
    rows, flaws = shape.read(table)
    for number, text in flaws:
        yield lines[number], text
    if len(table) == 1:
        yield lines[0], f"the table has a header and no row: {sentence}"
    for number, row in enumerate(rows, 1):
        first = 1 + table[1:].index(table[number])
        if first < number:
            yield lines[number], f"line {lines[first]} has the same row"
        wrong = [text for kind, text in shape.judge(row) if not (kind and known.has(kind))]
        yield from ((lines[number], text) for text in wrong)
        if not wrong:
            known.need(lines[number], shape.needs(row), str(row.get("name", "")))
    together = list(zip(lines[1:], rows, strict=True))
    if shape.parent:
        together = known.tree(together)
    yield from (
        (together[number - 1][0] if number else lines[0], text)
        for number, text in shape.judge_all([row for _, row in together])
    )
    for number, before, name in shape.repeated(table):
        if table[number] != table[before]:
            yield lines[number], f"the {shape.unique} {name!r} has a row already, in line {lines[before]}"
    for number, column, name in shape.filled(table, shape.refers):
        if problem := known.problem(shape.refers[column], name):
            yield lines[number], problem
    for number, column, parameter in _settings(shape, table, rows):
        known.need_setting(lines[number], column, parameter)
    for number, _, parent in shape.filled(table, {shape.parent}):
        known.link(lines[number], str(rows[number - 1].get("name", "")), parent)
    known.provide(map(shape.provides, rows))
    known.reserve(
        {str(row.get("name", "")): (line, shape.reserves(row)) for line, row in zip(lines[1:], rows, strict=True)}
    )
    return rows, bool(rows) and not flaws


def _settings(shape: tables.Shape, table: tables.Table, rows: Sequence[tables.Row]) -> Iterator[tuple[int, str, str]]:
    """Yield row, column and parameter of each setting that a policy has to read; pods among amounts are one more."""
    for number, column, _ in shape.filled(table, shape.settings):
        parameter = shape.columns[column][0]
        yield number, column, parameter
        amounts = rows[number - 1].get(parameter)
        if isinstance(amounts, Mapping) and "pods" in amounts:
            yield number, f"pods of {column}", f"pods_of_{parameter}"
