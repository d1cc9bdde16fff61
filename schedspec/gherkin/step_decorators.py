"""How steps are written: a sentence with `{parameters}`, decorated with given, when or then.

A parameter in quotes ends at the closing quote, so `"{job}" runs` never matches `"a" and "b" runs`; `{n:d}` is a whole
number. The first line of the docstring is what the catalogue of steps says.

`needs` says what a scheduler must have for the sentence to make sense: capabilities, or a function of the sentence.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pytest_bdd
from pytest_bdd import parsers

from ..api.capabilities import Capability
from .bdd import Sentence

Step = TypeVar("Step", bound=Callable[..., Any])

Needs = Collection[Capability] | Callable[[Sentence], Collection[Capability]]

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
_NO_QUOTE = Wording(r'[^"]*')
_FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""What each sentence calls."""


def one_of(*words: str) -> Wording:
    """One of these words and no other: `given("these {work:Work} run:", Work=one_of("jobs", "services"))`."""
    return Wording("|".join(map(re.escape, words)))


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

    setattr(said_otherwise, _MEANS, (sentence, columns))
    return said_otherwise


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
        result: Step = decorator(parser, stacklevel=2)(function)
        return result

    return decorate
