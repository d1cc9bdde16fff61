"""Errors about input: files, options and objects of the cluster. Their texts tell the user what to correct."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class BadInputError(ValueError):
    """An input that its user can correct. The text says what is wrong, where, and what to do next."""


class PlacedError(BadInputError):
    """An input that cannot be used. `place` is a file, a file with its line or item, or an option."""

    def __init__(self, place: str, problem: str, remedy: str) -> None:
        super().__init__(f"{place}: {problem}; {remedy}")
        self.place, self.problem, self.remedy = place, problem, remedy


class ObjectError(BadInputError):
    """An object with an invalid value. The scheduler continues without the object.

    Attributes:
        kind: Kind of the object.
        key: `namespace/name` of the object.
        problem: What is wrong and what would be right.
    """

    def __init__(self, kind: str, key: str, problem: str) -> None:
        super().__init__(f"{kind} {key}: {problem}")
        self.kind, self.key, self.problem = kind, key, problem


def names_the_object(set_object: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """Decorate `set_object(cluster, item)`: turn a ValueError into an ObjectError that names the object."""

    @functools.wraps(set_object)
    def named(cluster: Any, item: Any) -> None:
        try:
            set_object(cluster, item)
        except ValueError as error:
            raise ObjectError(type(item).__name__, item.metadata.key, str(error)) from error

    return named
