"""How steps are written: a sentence with `{parameters}`, decorated with given, when or then.

A parameter in quotes ends at the closing quote, so `"{job}" runs` never matches `"a" and "b" runs`; `{n:d}` is a whole
number. The first line of the docstring is what the catalogue of steps says.

`needs` says what a scheduler must have for the sentence to make sense: capabilities, or a function of the sentence.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pytest_bdd
from pytest_bdd import parsers

from ..api.capabilities import Capability
from .bdd import Sentence

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
_COLUMNS = "__schedspec_columns__"
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


def table(columns: Mapping[str, Any]) -> Callable[[Step], Step]:
    """Say what columns a step's table may have: the dict that it reads its rows by, or one such dict a word."""

    def decorate(function: Step) -> Step:
        by_word = {word: it for word, it in columns.items() if isinstance(it, Mapping)}
        setattr(function, _COLUMNS, {word: tuple(it) for word, it in by_word.items()} or {"": tuple(columns)})
        return function

    return decorate


def facts_of(sentence: str) -> StepFacts:
    """What is known of a sentence that these decorators have made; nothing of any other."""
    return _FACTS.get(sentence, StepFacts({}, {}))


def one_of(*words: str) -> Wording:
    """One of these words and no other: `given("these {work:Work} run:", Work=one_of("jobs", "services"))`."""
    return Wording("|".join(map(re.escape, words)), {word: word for word in words})


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

    called = {mean: name for name, mean in columns.items()}
    known: Mapping[str, Sequence[str]] = getattr(function, _COLUMNS, {})
    setattr(said_otherwise, _COLUMNS, {word: [called.get(it, it) for it in names] for word, names in known.items()})
    setattr(said_otherwise, _MEANS, (sentence, columns))
    return said_otherwise


def _named(columns: Mapping[str, Sequence[str]], used: Mapping[str, Wording]) -> Mapping[str, Sequence[str]]:
    """The columns by the words that this wording has for the kinds of work."""
    called = {mean: word for wording in used.values() for word, mean in wording.meaning.items()}
    return {called.get(work, work): names for work, names in columns.items()}


def _translated(needs: Any, parser: Any, sentence: str, columns: Mapping[str, str]) -> Any:
    """What the other wording of a sentence needs: what the sentence itself does, said with the same values."""

    def translated(said: Sentence) -> Any:
        values = parser.parse_arguments(said.text) or {}
        text = re.sub(r"\{(\w+)[^}]*\}", lambda part: str(values.get(part[1], part[0])), sentence)
        return needs(replace(said, text=text, columns=tuple(columns.get(name, name) for name in said.columns)))

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
        _FACTS[sentence] = StepFacts(words, _named(getattr(function, _COLUMNS, {}), used))
        result: Step = decorator(parser, stacklevel=2)(function)
        return result

    return decorate
