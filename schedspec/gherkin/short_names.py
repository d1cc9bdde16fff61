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
_OUR_MODULES = f"{__name__.partition('.')[0]}."
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


def problems(file: pytest.Module) -> list[str]:
    """Return one text for each fixture of the project that has the full name of one of ours: it would replace ours."""
    found = ((name, bdd.fixture_of(file, PREFIX + name)) for name in (*NAMES, *OF_OUR_STEPS))
    return [
        f"{_place(function, file.config.rootpath)}: the fixture {PREFIX + name!r} would replace schedspec's, "
        f"and every sentence would use it\n    do next: give it another name; it may request {PREFIX + name!r}"
        for name, function in found
        if function is not None and not function.__module__.startswith(_OUR_MODULES)
    ]


def _alias(name: str) -> Callable[..., Any]:
    ours = PREFIX + name

    def alias(request: pytest.FixtureRequest) -> Any:
        return request.getfixturevalue(ours)

    return alias


def _line(name: str, function: Callable[..., Any], root: Path) -> str:
    place = _place(function, root)
    return f"schedspec: {place} defines its own fixture {name!r}; schedspec's is {PREFIX}{name}"


def _place(function: Callable[..., Any], root: Path) -> str:
    code = inspect.unwrap(function).__code__
    path = Path(code.co_filename)
    shown = path.relative_to(root) if path.is_relative_to(root) else path
    return f"{shown}:{code.co_firstlineno}"
