"""Decorators for steps: a sentence with `{parameters}`, decorated with given, when or then.

A parameter in quotes ends at the closing quote, so `"{job}" runs` never matches `"a" and "b" runs`; `{n:d}` is a whole
number. The first line of the docstring is the meaning in the catalogue of steps.

`needs` declares the capabilities that a scheduler needs for the sentence, or a function that returns them.
`table`, `refers` and `makes` declare what the collection can check without a cluster: the form of the sentence's table,
which of its values name something, and which things exist after it. A sentence without these declarations is never
rejected for a name, and neither are the sentences after it.

The parameters `world`, `history`, `expect` and `live` of a decorated function always mean our fixtures, which are
called `schedspec_…`: a fixture of the project that has one of these names does not change a step.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

import pytest_bdd
from pytest_bdd import parsers

from ..api.capabilities import Capability
from ..api.errors import HarnessError
from . import bdd
from .documents import Sentence
from .short_names import NAMES, OF_OUR_STEPS, PREFIX
from .tables import Row, Shape

Step = TypeVar("Step", bound=Callable[..., Any])

Needs = Collection[Capability] | Callable[[Sentence], Collection[Capability]]

_TYPED = re.compile(r"\{(\w+):(\w+)\}")
_QUOTED = re.compile(r'"\{(\w+)\}"')


@dataclass(frozen=True)
class Wording:
    """A parameter type for the `parse` library: a regular expression without groups."""

    pattern: str
    meaning: Mapping[str, str] = field(default_factory=dict)
    """The value that a step gets for a word, if the value differs from the word."""
    translate: Callable[[str], str] = str
    """Return the value that a step gets for any other text."""

    def __call__(self, text: str) -> str:
        return self.meaning.get(text) or self.translate(text)


_NEEDS = "__schedspec_needs__"
_REWORDS = "__schedspec_rewords__"
_SHAPES = "__schedspec_shapes__"
_COLUMN_NAMES = "__schedspec_column_names__"
_REFERS = "__schedspec_refers__"
_MAKES = "__schedspec_makes__"
_REMOVES = "__schedspec_removes__"
_REFUSES = "__schedspec_refuses__"
_VACUOUS = "__schedspec_vacuous__"
_JUDGES = "__schedspec_judges__"
_OF_LATER = "__schedspec_of_later__"
_READS = "__schedspec_reads__"
_NO_QUOTE = Wording(r'[^"]*')


def _number(text: str) -> int:
    """Return a whole number in plain digits: the type `d` of the `parse` library also reads `-1`, `0x2` and `0b1`."""
    return int(text)


setattr(_number, "pattern", "[0-9]{1,6}")  # noqa: B010 - the `parse` library reads it
_FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""The function of each sentence."""
_FACTS: dict[str, StepFacts] = {}


@dataclass(frozen=True)
class StepFacts:
    """The additional facts in the catalogue: words and columns of a sentence, in the order of the code."""

    words: Mapping[str, Sequence[str]]
    """The values that a placeholder accepts."""
    columns: Mapping[str, Sequence[str]]
    """The columns of the sentence's table by kind of work; under the empty text if all kinds share them."""


Thing = tuple[str, str]
"""A kind of thing and its name, in which `*` stands for anything."""
Makes = Callable[[Mapping[str, Any], Sequence[Row]], Iterable[Thing]]
"""Return the things that exist after a sentence, by the values of its placeholders and the rows of its table."""


Vacuous = Callable[[Mapping[str, Any], Sequence[Row]], str]
"""Return why a sentence with these values and rows has the same verdict whatever happens; empty if it has not."""


def table(shape: Shape | Mapping[str, Shape]) -> Callable[[Step], Step]:
    """Declare the form of a step's table, or one form for each word of the placeholder that decides it."""

    def decorate(function: Step) -> Step:
        setattr(function, _SHAPES, {"": shape} if isinstance(shape, Shape) else dict(shape))
        return function

    return decorate


def refers(**kinds: str) -> Callable[[Step], Step]:
    """Declare which placeholders name things, and the kinds of these things, separated by `|`.

    A placeholder in the plural, such as `names`, names several things, separated by commas.
    """

    def decorate(function: Step) -> Step:
        setattr(function, _REFERS, kinds)
        return function

    return decorate


def makes(made: Makes) -> Callable[[Step], Step]:
    """Declare which things exist after the sentence, for the sentences that refer to them."""

    def decorate(function: Step) -> Step:
        setattr(function, _MAKES, made)
        return function

    return decorate


def reads(**readers: Callable[[Any], object]) -> Callable[[Step], Step]:
    """Declare how placeholders are read. A function raises ValueError for a value that the cluster would refuse."""

    def decorate(function: Step) -> Step:
        setattr(function, _READS, readers)
        return function

    return decorate


def unreadable_in(function: Callable[..., object], values: Mapping[str, Any]) -> Iterator[str]:
    """Yield why the cluster would refuse values of the sentence's placeholders."""
    readers: Mapping[str, Callable[[Any], object]] = getattr(function, _READS, {})
    for placeholder, read in readers.items():
        try:
            read(values[placeholder])
        except ValueError as problem:
            yield f"{placeholder} {values[placeholder]!r}: {problem}"


def removes(placeholder: str) -> Callable[[Step], Step]:
    """Declare that the thing that the placeholder names is gone after the sentence, so that its name is free again."""

    def decorate(function: Step) -> Step:
        setattr(function, _REMOVES, placeholder)
        return function

    return decorate


def removed_by(function: Callable[..., object]) -> str:
    """Return the placeholder that names what the sentence removes; empty if it removes nothing."""
    return str(getattr(function, _REMOVES, ""))


def vacuous(why: Vacuous) -> Callable[[Step], Step]:
    """Declare with which values a sentence says nothing: it then holds, or fails, whatever the scheduler does."""

    def decorate(function: Step) -> Step:
        setattr(function, _VACUOUS, why)
        return function

    return decorate


def of_later(function: Step) -> Step:
    """Declare that a sentence says something only about the outcomes that later sentences state."""
    setattr(function, _OF_LATER, True)
    return function


def is_of_later(function: Callable[..., object]) -> bool:
    """Whether the sentence says something only about outcomes of later sentences."""
    return bool(getattr(function, _OF_LATER, False))


def judges(kind: str, queue: str = "") -> Callable[[Step], Step]:
    """Declare a kind of things without which a sentence says nothing, for instance work that could be evicted.

    Args:
        kind: The kind of things.
        queue: The placeholder of the queue in which there has to be work; empty if any work suffices.
    """

    def decorate(function: Step) -> Step:
        setattr(function, _JUDGES, (kind, queue))
        return function

    return decorate


def judged_by(function: Callable[..., object], values: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind of things that the sentence judges and the queue that they are in; empty texts for none."""
    kind, queue = getattr(function, _JUDGES, ("", ""))
    return kind, str(values.get(queue, ""))


def not_more_than_rows(values: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """Return why `exactly N of these` says nothing: the table has fewer rows."""
    return f"{values['number']} of {len(rows)} rows can never be" if values["number"] > len(rows) else ""


def only_names(_: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """Return why a table says nothing: a row fills in no column beside the name."""
    bare = next((str(row["name"]) for row in rows if len(row) == 1 and "name" in row), "")
    return f"the row of {bare} has only its name; fill in another column" if bare else ""


def vacuous_in(function: Callable[..., object], values: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """Return why the sentence says nothing with these values; empty if it says something, or has unreadable values."""
    why: Vacuous | None = getattr(function, _VACUOUS, None)
    with contextlib.suppress(ValueError):
        return why(values, rows) if why is not None else ""
    return ""


def expects_refusal(of: str = "") -> Callable[[Step], Step]:
    """Declare that a step asserts a refusal: of the thing that the placeholder `of` names, else of the last submission.

    A scenario may then use things that do not exist.
    """

    def decorate(function: Step) -> Step:
        setattr(function, _REFUSES, of)
        return function

    return decorate


def refusal_in(function: Callable[..., object], values: Mapping[str, Any]) -> str | None:
    """Return the name of the thing that must be refused; empty for the last submission, None for no refusal."""
    of: str | None = getattr(function, _REFUSES, None)
    return of if not of else str(values.get(of, ""))


def shape_of(function: Callable[..., object], values: Mapping[str, Any], header: Sequence[str]) -> Shape | None:
    """Return the form of a sentence's table with the sentence's own column names; None if undeclared."""
    shapes: Mapping[str, Shape] = getattr(function, _SHAPES, {})
    found = next((shapes[work] for work in ("", *map(str, values.values())) if work in shapes), None)
    names: Mapping[str, str] = getattr(function, _COLUMN_NAMES, {})
    return found.with_names(names, header) if found is not None and names else found


def references_of(function: Callable[..., object]) -> Mapping[str, str]:
    """Return the declaration of `refers`: placeholder → kinds of things that it may name."""
    found: Mapping[str, str] = getattr(function, _REFERS, {})
    return found


def made_by(function: Callable[..., object], values: Mapping[str, Any], rows: Sequence[Row]) -> list[Thing] | None:
    """Return the things that a sentence creates; None if its step does not declare them."""
    made: Makes | None = getattr(function, _MAKES, None)
    return list(made(values, rows)) if made is not None else None


def facts_of(sentence: str) -> StepFacts:
    """Return the facts of a sentence that these decorators define; empty facts for any other sentence."""
    return _FACTS.get(sentence, StepFacts({}, {}))


def one_of(*words: str) -> Wording:
    """Accept exactly one of these words: `given("these {work:Work} run:", Work=one_of("jobs", "services"))`."""
    return Wording("|".join(map(re.escape, words)), {word: word for word in words})


def several_of(*words: str) -> Wording:
    """Accept one or more of these words, separated by commas."""
    one = "|".join(map(re.escape, words))
    return Wording(f"(?:{one})(?:, *(?:{one}))*", {word: word for word in words})


def word_for(meaning: Mapping[str, str]) -> Wording:
    """Accept one of these words, and pass its value to the step: `word_for({"作业": "jobs", "服务": "services"})`."""
    return Wording("|".join(map(re.escape, meaning)), meaning)


def in_other_words(sentence: str, columns: Mapping[str, str]) -> Callable[..., Any]:
    """Return the function of an existing sentence for another wording, for instance in another language.

    `columns` maps the columns of the new wording's table to those of the sentence. A column that it does not name keeps
    its name.

    Raises:
        KeyError: The sentence does not exist.
    """
    function = _FUNCTIONS[sentence]

    @functools.wraps(function)
    def reworded(**arguments: Any) -> Any:
        table = arguments.get("datatable")
        if table:
            arguments["datatable"] = [[columns.get(name, name) for name in table[0]], *table[1:]]
        return function(**arguments)

    setattr(reworded, _COLUMN_NAMES, {mean: name for name, mean in columns.items()})
    setattr(reworded, _REWORDS, (sentence, columns))
    return reworded


def _columns(function: Callable[..., object], used: Mapping[str, Wording]) -> Mapping[str, Sequence[str]]:
    """Return the columns for each kind of work, by the word that this wording has for the kind."""
    shapes: Mapping[str, Shape] = getattr(function, _SHAPES, {})
    word_of = {mean: word for wording in used.values() for word, mean in wording.meaning.items()}
    names: Mapping[str, str] = getattr(function, _COLUMN_NAMES, {})
    return {word_of.get(work, work): tuple(shape.with_names(names, ()).columns) for work, shape in shapes.items()}


def _translated(needs: Any, parser: Any, sentence: str, columns: Mapping[str, str]) -> Any:
    """Return the `needs` of another wording: those of the sentence itself with the same values."""

    def translated(wording: Sentence) -> Any:
        values = parser.parse_arguments(wording.text) or {}
        text = re.sub(r"\{(\w+)[^}]*\}", lambda part: str(values.get(part[1], part[0])), sentence)
        header = tuple(columns.get(name, name) for name in wording.columns)
        return needs(replace(wording, text=text, table=(header, *wording.table[1:])))

    return translated


def given(sentence: str, needs: Needs = (), **types: Wording) -> Callable[[Step], Step]:
    """Declare a step that sets up the state before anything happens."""
    return _step(pytest_bdd.given, sentence, needs, types)


def when(sentence: str, needs: Needs = (), **types: Wording) -> Callable[[Step], Step]:
    """Declare a step that acts."""
    return _step(pytest_bdd.when, sentence, needs, types)


def then(sentence: str, needs: Needs = (), **types: Wording) -> Callable[[Step], Step]:
    """Declare a step that states the expected outcome."""
    return _step(pytest_bdd.then, sentence, needs, types)


def needs_of(function: Callable[..., object], sentence: Sentence) -> frozenset[Capability]:
    """Return the capabilities that a sentence needs of a scheduler, according to its step."""
    needs: Needs = getattr(function, _NEEDS, ())
    return frozenset(needs(sentence) if callable(needs) else needs)


def _step(
    decorator: Callable[..., Any], sentence: str, needs: Needs, types: Mapping[str, Wording]
) -> Callable[[Step], Step]:
    exact = {"extra_types": {"NoQuote": _NO_QUOTE, "Number": _number, **types}, "case_sensitive": True}
    parser = parsers.parse(_QUOTED.sub(r'"{\1:NoQuote}"', sentence).replace(":d}", ":Number}"), **exact)
    parser.name = sentence

    def decorate(function: Step) -> Step:
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"the step {sentence!r} is `async def`: it would never be awaited; write a plain function")
        own = needs or getattr(function, _NEEDS, ())
        if own:
            reworded = getattr(function, _REWORDS, None)
            setattr(function, _NEEDS, _translated(own, parser, *reworded) if reworded and callable(own) else own)
        _FUNCTIONS.setdefault(sentence, function)
        used = {name: types[kind] for name, kind in _TYPED.findall(sentence) if kind in types}
        words = {name: tuple(wording.meaning) for name, wording in used.items()}
        _FACTS[sentence] = StepFacts(words, _columns(function, used))
        decorator(parser, stacklevel=2)(_with_full_names(function))
        return function

    return decorate


def _with_full_names(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with the full names of our fixtures instead of the short ones. It returns nothing."""
    signature = inspect.signature(function)
    names = (*NAMES, *(OF_OUR_STEPS if bdd.is_ours(function) else ()))
    short = {PREFIX + name: name for name in names if name in signature.parameters}
    full = {name: called for called, name in short.items()}

    def with_short_names(arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {short.get(name, name): value for name, value in arguments.items()}

    @functools.wraps(function)
    def step(**arguments: Any) -> None:
        if (verdict := function(**with_short_names(arguments))) is not None:
            code = inspect.unwrap(function).__code__
            where = f"{code.co_filename}:{code.co_firstlineno}"
            raise HarnessError(
                f"the step returns {verdict!r}, which nothing reads\n  where: {where}\n"
                "  do next: let the step wait with `expect`, or raise an error"
            )

    @functools.wraps(function)
    def generator(**arguments: Any) -> Any:
        return (yield from function(**with_short_names(arguments)))

    chosen: Any = generator if inspect.isgeneratorfunction(function) else step
    parameters = [parameter.replace(name=full.get(name, name)) for name, parameter in signature.parameters.items()]
    chosen.__signature__ = signature.replace(parameters=parameters)
    return cast("Callable[..., Any]", chosen)
