"""How steps are written: a sentence with `{parameters}`, decorated with given, when or then.

A parameter in quotes ends at the closing quote, so `"{job}" runs` never matches `"a" and "b" runs`; `{n:d}` is a whole
number. The first line of the docstring is what the catalogue of steps says.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

import pytest_bdd
from pytest_bdd import parsers

Step = TypeVar("Step", bound=Callable[..., Any])

_QUOTED = re.compile(r'"\{(\w+)\}"')


class _NoQuote:
    """A type for the `parse` library: the pattern of a parameter in quotes."""

    pattern = r'[^"]*'

    def __call__(self, text: str) -> str:
        return text


def given(sentence: str) -> Callable[[Step], Step]:
    """What is there before anything happens."""
    return _step(pytest_bdd.given, sentence)


def when(sentence: str) -> Callable[[Step], Step]:
    """What somebody does."""
    return _step(pytest_bdd.when, sentence)


def then(sentence: str) -> Callable[[Step], Step]:
    """What must come of it."""
    return _step(pytest_bdd.then, sentence)


def _step(decorator: Callable[..., Any], sentence: str) -> Callable[[Step], Step]:
    parser = parsers.parse(_QUOTED.sub(r'"{\1:NoQuote}"', sentence), extra_types={"NoQuote": _NoQuote()})
    parser.name = sentence

    def decorate(function: Step) -> Step:
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"the step {sentence!r} is `async def`: it would never be awaited; write a plain function")
        result: Step = decorator(parser, stacklevel=2)(function)
        return result

    return decorate
