"""How steps are written: a sentence with `{parameters}`, decorated with given, when or then.

A parameter in quotes ends at the closing quote, so `"{job}" runs` never matches `"a" and "b" runs`; `{n:d}` is a whole
number. The first line of the docstring is what the catalogue of steps says.

`needs` says what a scheduler must have for the sentence to make sense: capabilities, or a function of the sentence.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
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

    def __call__(self, text: str) -> str:
        return text


_NEEDS = "__schedspec_needs__"
_NO_QUOTE = Wording(r'[^"]*')


def one_of(*words: str) -> Wording:
    """One of these words and no other: `given("these {work:Work} run:", Work=one_of("jobs", "services"))`."""
    return Wording("|".join(map(re.escape, words)))


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
        if needs:
            setattr(function, _NEEDS, needs)
        result: Step = decorator(parser, stacklevel=2)(function)
        return result

    return decorate
