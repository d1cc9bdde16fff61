"""How steps are written: a sentence with `{parameters}`, decorated with given, when or then.

A parameter in quotes ends at the closing quote, so `"{job}" runs` never matches `"a" and "b" runs`; `{n:d}` is a whole
number. The first line of the docstring is what the catalogue of steps says.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest_bdd
from pytest_bdd import parsers

Step = TypeVar("Step", bound=Callable[..., Any])

_QUOTED = re.compile(r'"\{(\w+)\}"')


@dataclass(frozen=True)
class Wording:
    """What a parameter may be, as a type for the `parse` library: a regular expression without groups."""

    pattern: str

    def __call__(self, text: str) -> str:
        return text


_NO_QUOTE = Wording(r'[^"]*')


def one_of(*words: str) -> Wording:
    """One of these words and no other: `given("these {work:Work} run:", Work=one_of("jobs", "services"))`."""
    return Wording("|".join(map(re.escape, words)))


def given(sentence: str, **types: Wording) -> Callable[[Step], Step]:
    """What is there before anything happens."""
    return _step(pytest_bdd.given, sentence, types)


def when(sentence: str, **types: Wording) -> Callable[[Step], Step]:
    """What somebody does."""
    return _step(pytest_bdd.when, sentence, types)


def then(sentence: str, **types: Wording) -> Callable[[Step], Step]:
    """What must come of it."""
    return _step(pytest_bdd.then, sentence, types)


def _step(decorator: Callable[..., Any], sentence: str, types: Mapping[str, Wording]) -> Callable[[Step], Step]:
    exact = {"extra_types": {"NoQuote": _NO_QUOTE, **types}, "case_sensitive": True}
    parser = parsers.parse(_QUOTED.sub(r'"{\1:NoQuote}"', sentence), **exact)
    parser.name = sentence

    def decorate(function: Step) -> Step:
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"the step {sentence!r} is `async def`: it would never be awaited; write a plain function")
        result: Step = decorator(parser, stacklevel=2)(function)
        return result

    return decorate
