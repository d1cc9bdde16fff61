"""What is wrong with an object of the cluster, said so that its owner can mend it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class ObjectError(ValueError):
    """An object with a value that makes no sense. The scheduler goes on without it.

    ``kind`` and ``key`` (``namespace/name``) name the object, ``problem`` what is wrong and what would be right.
    """

    def __init__(self, kind: str, key: str, problem: str) -> None:
        super().__init__(f"{kind} {key}: {problem}")
        self.kind, self.key, self.problem = kind, key, problem


def names_the_object(set_object: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """Make a ValueError of ``set_object(cluster, item)`` tell which object it is about."""

    @functools.wraps(set_object)
    def named(cluster: Any, item: Any) -> None:
        try:
            set_object(cluster, item)
        except ValueError as error:
            raise ObjectError(type(item).__name__, item.metadata.key, str(error)) from error

    return named
