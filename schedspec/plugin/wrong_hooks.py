"""Name a hook of the project that pytest refuses: its file, its line, and the nearest correct name.

pytest itself ends with a traceback of its own frames if a function of a conftest or of another plugin has the name of
no hook, or an argument that its hook does not have.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import re
import traceback
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from pluggy import PluginValidationError

from .. import distribution
from ..gherkin.tables import nearest
from ..terminal import short_path

_HOOK = re.compile(r"\bhook '(\w+)'")
_CONFLICT = re.compile(r"conflicting option string|already added")
_ARGUMENTS = re.compile(r"Argument\(s\) \{(.*)\} are declared")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, None, None]:
    """Name a wrong hook of a conftest of the command line's paths, and an option that it declares although we do."""
    try:
        with refused(early_config.pluginmanager):
            yield
    except (argparse.ArgumentError, ValueError) as problem:
        frames = traceback.extract_tb(problem.__traceback__)
        own = [frame for frame in frames if distribution.is_of_project(Path(frame.filename))]
        if not own or not _CONFLICT.search(str(problem)):
            raise
        do_next = "rename the option of the conftest; schedspec or a plugin has one of this name"
        place = f"{short_path(own[-1].filename)}:{own[-1].lineno}"
        raise pytest.UsageError(f"{place}: {problem}\n  do next: {do_next}") from None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Name a wrong hook of any plugin that is loaded by now, with xdist before the workers start."""
    with refused(session.config.pluginmanager):
        session.config.pluginmanager.check_pending()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Name a wrong hook of a conftest that pytest finds while it collects."""
    report = yield
    _explain(report, collector)
    return report


@contextlib.contextmanager
def refused(manager: pytest.PytestPluginManager) -> Iterator[None]:
    """Turn pytest's error about a wrong hook into a usage error.

    Raises:
        pytest.UsageError: A plugin has a wrong hook.
    """
    try:
        yield
    except PluginValidationError as problem:
        raise pytest.UsageError(_text_of(problem, manager)) from None


def _explain(report: pytest.CollectReport, collector: pytest.Collector) -> None:
    """Let the report of a folder fail by a wrong hook of its conftest; pytest itself ends a worker of xdist by it."""
    manager, call = collector.config.pluginmanager, vars(report).get("call")
    problem = None if call is None or call.excinfo is None else call.excinfo.value
    if problem is None:
        try:
            manager.check_pending()
        except PluginValidationError as found:
            problem = found
            for hook in getattr(manager.hook, _name_in(found)).get_hookimpls():
                hook.optionalhook = True  # the report names it
    if isinstance(problem, PluginValidationError):
        report.outcome, report.longrepr, report.result = "failed", _text_of(problem, manager), []


def _text_of(problem: PluginValidationError, manager: pytest.PytestPluginManager) -> str:
    """Return what is wrong with a hook, where, and what to do next."""
    name = _name_in(problem)
    what, do_next = _what(problem, name, manager)
    return f"{_place(problem.plugin, name)}: {what}\n  do next: {do_next}"


def _name_in(problem: PluginValidationError) -> str:
    named = _HOOK.search(str(problem))
    return named[1] if named is not None else ""


def _what(problem: PluginValidationError, name: str, manager: pytest.PytestPluginManager) -> tuple[str, str]:
    hooks: dict[str, Any] = {hook: caller for hook, caller in vars(manager.hook).items() if hook.startswith("pytest_")}
    known = {hook: caller.spec for hook, caller in hooks.items() if caller.spec is not None}
    if name not in known:
        do_next = "correct the name of the function; pytest takes every function pytest_… for a hook"
        return f"there is no hook {name!r}{nearest(name, known)}", do_next
    wrong = _ARGUMENTS.search(str(problem))
    if wrong is not None:
        arguments = known[name].argnames
        words = ", ".join(f"{word!r}{nearest(word, arguments)}" for word in sorted(re.findall(r"\w+", wrong[1])))
        return f"the hook {name!r} has no argument {words}", f"use some of its arguments: {', '.join(arguments)}"
    return f"the hook {name!r} is refused: {str(problem).splitlines()[-1]}", "correct the function"


def _place(plugin: object, name: str) -> str:
    """Return `file:line` of a hook; the name of a plugin that has no source."""
    function = inspect.unwrap(getattr(plugin, name, plugin))  # type: ignore[arg-type]
    code = getattr(function, "__code__", None)
    return f"{short_path(code.co_filename)}:{code.co_firstlineno}" if code is not None else str(plugin)
