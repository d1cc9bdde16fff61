"""How commands answer: plain words for a person, JSON for a program, errors as the library has them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click
import msgspec

from ..api.errors import HarnessError
from ..clusters.protocol import ClusterError

Function = TypeVar("Function", bound=Callable[..., Any])


def output_option(function: Function) -> Function:
    """`-o json`, where a program may read the answer."""
    choice = click.Choice(["text", "json"])
    return click.option("-o", "--output", type=choice, default="text", help="For people, or for programs.")(function)


def count(number: int, one: str, many: str) -> str:
    """`no scenarios`, `1 scenario`, `2 scenarios`."""
    return f"{number or 'no'} {one if number == 1 else many}"


def say_json(answer: object) -> None:
    """One JSON document on standard output."""
    click.echo(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode())


def explains_errors(function: Callable[..., int]) -> Callable[..., int]:
    """A command whose errors say what went wrong, where, and what to do: without a traceback."""

    @wraps(function)
    def run(*arguments: Any, **options: Any) -> int:
        try:
            return function(*arguments, **options)
        except (ClusterError, HarnessError) as problem:
            click.echo(str(problem), err=True)
            return 1
        except KeyboardInterrupt:
            click.echo("interrupted; what was started is gone", err=True)
            return 130

    return run
