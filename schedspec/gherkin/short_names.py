"""Let steps and their fixtures use short names of our fixtures: `world`, `history`, `expect` and `live`.

The fixtures themselves are called `schedspec_…`, so that a project may use the short names for its own fixtures. The
short names resolve only below a feature file of ours. A project's fixture with such a name stays unchanged, and the run
names it in one line; steps decorated by `schedspec.gherkin.step_decorators` still get ours.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from . import bdd

PREFIX = "schedspec_"
NAMES = ("world", "history", "expect", "live")
OF_OUR_STEPS = ("cards", "submit", "refusals", "beside")
"""Fixtures of our own steps. Other steps cannot use their short names."""
SHADOWED: pytest.StashKey[set[str]] = pytest.StashKey()
"""One line for each fixture of the project that has the short name of one of our fixtures."""


def register(file: pytest.Module) -> None:
    """Make the short names resolve for the scenarios of this file, except those that the project defines."""
    for name in NAMES:
        function = bdd.fixture_of(file, name)
        if function is None:
            scope: Literal["session", "function"] = "session" if name == "live" else "function"
            pytest.register_fixture(name=name, func=_alias(name), node=file, scope=scope)
        elif function.__module__ != __name__:
            file.config.stash.setdefault(SHADOWED, set()).add(_line(name, function, file.config.rootpath))


def _alias(name: str) -> Callable[..., Any]:
    ours = PREFIX + name

    def alias(request: pytest.FixtureRequest) -> Any:
        return request.getfixturevalue(ours)

    return alias


def _line(name: str, function: Callable[..., Any], root: Path) -> str:
    code = inspect.unwrap(function).__code__
    path = Path(code.co_filename)
    shown = path.relative_to(root) if path.is_relative_to(root) else path
    place = f"{shown}:{code.co_firstlineno}"
    return f"schedspec: {place} defines its own fixture {name!r}; schedspec's is {PREFIX}{name}"
