"""How steps are written: a sentence with `{parameters}`, decorated with given, when or then.

A parameter in quotes ends at the closing quote, so `"{job}" runs` never matches `"a" and "b" runs`; `{n:d}` is a whole
number. The first line of the docstring is what the catalogue of steps says.

`needs` says what a scheduler must have for the sentence to make sense: capabilities, or a function of the sentence.
`table`, `refers` and `makes` say what the collection can check without a cluster: what the sentence's table looks like,
which of its values name something, and what is there once it has been said. A sentence that says none of this is never
refused for a name, and neither is what follows it.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pytest_bdd
from pytest_bdd import parsers

from ..api.capabilities import Capability
from .bdd import Sentence
from .tables import Row, Shape

Step = TypeVar("Step", bound=Callable[..., Any])

Needs = Collection[Capability] | Callable[[Sentence], Collection[Capability]]

_TYPED = re.compile(r"\{(\w+):(\w+)\}")
_QUOTED = re.compile(r'"\{(\w+)\}"')


@dataclass(frozen=True)
class Wording:
    """What a parameter may be, as a type for the `parse` library: a regular expression without groups."""

    pattern: str
    meaning: Mapping[str, str] = field(default_factory=dict)
    """What a step gets for a word, where that is another one."""

    def __call__(self, text: str) -> str:
        return self.meaning.get(text, text)


_NEEDS = "__schedspec_needs__"
_MEANS = "__schedspec_means__"
_SHAPES = "__schedspec_shapes__"
_CALLED = "__schedspec_called__"
_REFERS = "__schedspec_refers__"
_MAKES = "__schedspec_makes__"
_NO_QUOTE = Wording(r'[^"]*')
_FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""What each sentence calls."""
_FACTS: dict[str, StepFacts] = {}


@dataclass(frozen=True)
class StepFacts:
    """What the catalogue says of a sentence beside its meaning: words and columns, in the order of the code."""

    words: Mapping[str, Sequence[str]]
    """What a placeholder may be."""
    columns: Mapping[str, Sequence[str]]
    """The columns of its table; by the kind of work where each has its own, else under the empty text."""


Thing = tuple[str, str]
"""A kind of thing and its name, in which `*` stands for anything."""
Makes = Callable[[Mapping[str, Any], Sequence[Row]], Iterable[Thing]]
"""What there is after a sentence, by the values of its placeholders and the rows of its table."""


def table(shape: Shape | Mapping[str, Shape]) -> Callable[[Step], Step]:
    """Say what a step's table may look like, or that for each word of a placeholder that decides it."""

    def decorate(function: Step) -> Step:
        setattr(function, _SHAPES, {"": shape} if isinstance(shape, Shape) else dict(shape))
        return function

    return decorate


def refers(**kinds: str) -> Callable[[Step], Step]:
    """Say which placeholders name things, and what kinds of things, with `|` for or.

    One in the plural, such as `names`, names several with commas between them.
    """

    def decorate(function: Step) -> Step:
        setattr(function, _REFERS, kinds)
        return function

    return decorate


def makes(made: Makes) -> Callable[[Step], Step]:
    """Say what is there once the sentence has been said, for the sentences that refer to it."""

    def decorate(function: Step) -> Step:
        setattr(function, _MAKES, made)
        return function

    return decorate


def shape_of(function: Callable[..., object], values: Mapping[str, Any], header: Sequence[str]) -> Shape | None:
    """What the table of a sentence with these values may look like, as it is called there; None where none says it."""
    shapes: Mapping[str, Shape] = getattr(function, _SHAPES, {})
    found = next((shapes[it] for it in ("", *map(str, values.values())) if it in shapes), None)
    called: Mapping[str, str] = getattr(function, _CALLED, {})
    return found.called(called, header) if found is not None and called else found


def references_of(function: Callable[..., object]) -> Mapping[str, str]:
    """Placeholder → kinds of things that it may name, as `refers` was told."""
    found: Mapping[str, str] = getattr(function, _REFERS, {})
    return found


def made_by(function: Callable[..., object], values: Mapping[str, Any], rows: Sequence[Row]) -> list[Thing] | None:
    """What there is after a sentence; None where its step does not say."""
    made: Makes | None = getattr(function, _MAKES, None)
    return list(made(values, rows)) if made is not None else None


def facts_of(sentence: str) -> StepFacts:
    """What is known of a sentence that these decorators have made; nothing of any other."""
    return _FACTS.get(sentence, StepFacts({}, {}))


def one_of(*words: str) -> Wording:
    """One of these words and no other: `given("these {work:Work} run:", Work=one_of("jobs", "services"))`."""
    return Wording("|".join(map(re.escape, words)), {word: word for word in words})


def several_of(*words: str) -> Wording:
    """One or more of these words, with commas."""
    one = "|".join(map(re.escape, words))
    return Wording(f"(?:{one})(?:, *(?:{one}))*", {word: word for word in words})


def word_for(meaning: Mapping[str, str]) -> Wording:
    """One of these words, and what a step gets for it: `word_for({"作业": "jobs", "服务": "services"})`."""
    return Wording("|".join(map(re.escape, meaning)), meaning)


def in_other_words(sentence: str, columns: Mapping[str, str]) -> Callable[..., Any]:
    """The function of a sentence that there is, for another wording of it, in another language, say.

    `columns` says what the columns of its table mean: a wording of its own has a table of its own. A column that it
    does not name keeps its name. Raises KeyError: there is no such sentence.
    """
    function = _FUNCTIONS[sentence]

    @functools.wraps(function)
    def said_otherwise(**arguments: Any) -> Any:
        table = arguments.get("datatable")
        if table:
            arguments["datatable"] = [[columns.get(name, name) for name in table[0]], *table[1:]]
        return function(**arguments)

    setattr(said_otherwise, _CALLED, {mean: name for name, mean in columns.items()})
    setattr(said_otherwise, _MEANS, (sentence, columns))
    return said_otherwise


def _columns(function: Callable[..., object], used: Mapping[str, Wording]) -> Mapping[str, Sequence[str]]:
    """The columns by the words that this wording has for the kinds of work."""
    shapes: Mapping[str, Shape] = getattr(function, _SHAPES, {})
    called = {mean: word for wording in used.values() for word, mean in wording.meaning.items()}
    names: Mapping[str, str] = getattr(function, _CALLED, {})
    return {called.get(work, work): tuple(it.called(names, ()).columns) for work, it in shapes.items()}


def _translated(needs: Any, parser: Any, sentence: str, columns: Mapping[str, str]) -> Any:
    """What the other wording of a sentence needs: what the sentence itself does, said with the same values."""

    def translated(said: Sentence) -> Any:
        values = parser.parse_arguments(said.text) or {}
        text = re.sub(r"\{(\w+)[^}]*\}", lambda part: str(values.get(part[1], part[0])), sentence)
        header = tuple(columns.get(name, name) for name in said.columns)
        return needs(replace(said, text=text, table=(header, *said.table[1:])))

    return translated


def given(sentence: str, needs: Needs = (), **types: Wording) -> Callable[[Step], Step]:
    """What is there before anything happens."""
    return _step(pytest_bdd.given, sentence, needs, types)


def when(sentence: str, needs: Needs = (), **types: Wording) -> Callable[[Step], Step]:
    """What somebody does."""
    return _step(pytest_bdd.when, sentence, needs, types)


def then(sentence: str, needs: Needs = (), **types: Wording) -> Callable[[Step], Step]:
    """What must come of it."""
    return _step(pytest_bdd.then, sentence, needs, types)


def needs_of(function: Callable[..., object], sentence: Sentence) -> frozenset[Capability]:
    """What a sentence needs of a scheduler, by the step that it means."""
    needs: Needs = getattr(function, _NEEDS, ())
    return frozenset(needs(sentence) if callable(needs) else needs)


def _step(
    decorator: Callable[..., Any], sentence: str, needs: Needs, types: Mapping[str, Wording]
) -> Callable[[Step], Step]:
    exact = {"extra_types": {"NoQuote": _NO_QUOTE, **types}, "case_sensitive": True}
    parser = parsers.parse(_QUOTED.sub(r'"{\1:NoQuote}"', sentence), **exact)
    parser.name = sentence

    def decorate(function: Step) -> Step:
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"the step {sentence!r} is `async def`: it would never be awaited; write a plain function")
        own = needs or getattr(function, _NEEDS, ())
        if own:
            means = getattr(function, _MEANS, None)
            setattr(function, _NEEDS, _translated(own, parser, *means) if means and callable(own) else own)
        _FUNCTIONS.setdefault(sentence, function)
        used = {name: types[kind] for name, kind in _TYPED.findall(sentence) if kind in types}
        words = {name: tuple(wording.meaning) for name, wording in used.items()}
        _FACTS[sentence] = StepFacts(words, _columns(function, used))
        result: Step = decorator(parser, stacklevel=2)(function)
        return result

    return decorate
