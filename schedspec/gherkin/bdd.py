"""Bind scenarios and step definitions to pytest items, through internals of pytest-bdd and pytest.

pytest-bdd 9 collects no feature files, picks one of several matching steps silently and lets an `async def` step pass.
Its public API cannot fix that. Its version is therefore pinned, and each function here has a test of its own.
Internals are used only here, in `documents` (the parser) and in `plain_failure` (pytest's reports).
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from _pytest.compat import ascii_escaped
from _pytest.pathlib import import_path
from pytest_bdd.compat import get_fixture_names, getfixturedefs
from pytest_bdd.gherkin_parser import Scenario as ScenarioNode
from pytest_bdd.scenario import scenario as bind_scenario
from pytest_bdd.scenario import scenario_wrapper_template_registry
from pytest_bdd.steps import step_function_context_registry

from .. import distribution
from ..terminal import short_path
from .documents import Sentence

__all__ = [
    "StepDefinition",
    "all_definitions",
    "bind",
    "definitions_for",
    "fixture_of",
    "import_beside",
    "is_ours",
    "items_of",
    "nodes_of",
    "scenario_of",
]

_EXAMPLE = "_pytest_bdd_example"
_OUR_STEPS = f"{__name__.partition('.')[0]}.steps."


def is_ours(function: Callable[..., object]) -> bool:
    """Whether a step belongs to this distribution."""
    return function.__module__.startswith(_OUR_STEPS)


@dataclass(frozen=True, slots=True)
class StepDefinition:
    """One decorated step function, as the collection uses it."""

    type: str | None
    """`given`, `when` or `then`; None for a step of any kind."""
    pattern: str
    function: Callable[..., object]
    matches: Callable[[str], bool]
    values: Callable[[str], Mapping[str, Any] | None]
    """Return the values of the placeholders in a text that the step matches."""
    level: str = ""
    """The node id of the folder whose conftest defines the step; empty for plugins and the root's conftest."""

    @property
    def path(self) -> str:
        """The full path of the function's file. Ours stands in `steps/`, also where a link led to it."""
        path = str(inspect.unwrap(self.function).__code__.co_filename)
        return str(distribution.folder("steps") / Path(path).name) if is_ours(self.function) else path

    @property
    def file(self) -> str:
        """The path of the function's file, shortened for messages."""
        return short_path(self.path)

    @property
    def line(self) -> int:
        """The line of the function's first decorator."""
        return int(inspect.unwrap(self.function).__code__.co_firstlineno)

    @property
    def where(self) -> str:
        """`path:line` of the function."""
        return f"{self.file}:{self.line}"

    def accepts(self, argument: str) -> bool | None:
        """Whether the function has a parameter `datatable` or `docstring`; None if the parameter is optional."""
        found = inspect.signature(self.function).parameters.get(argument)
        return None if found is not None and found.default is not inspect.Parameter.empty else found is not None

    @property
    def is_async(self) -> bool:
        """True for a function that pytest-bdd would call but never await."""
        return inspect.iscoroutinefunction(self.function) or inspect.isasyncgenfunction(self.function)


def bind(path: Path, node: ScenarioNode) -> types.FunctionType:
    """Return the test function of one scenario. Its code object has the file and line that pytest reports."""

    def body() -> None:
        """Do nothing: pytest-bdd runs the sentences."""

    function = bind_scenario(path.name, node.name, features_base_dir=str(path.parent))(body)
    assert isinstance(function, types.FunctionType)
    function.__code__ = function.__code__.replace(
        co_filename=str(path), co_firstlineno=node.location.line, co_name=node.name
    )
    function.__name__ = node.name
    return function


def items_of(
    file: pytest.Module, parent: pytest.Collector, function: types.FunctionType, names: Sequence[str]
) -> Iterator[pytest.Function]:
    """Yield the items of a bound scenario below `parent`: one, or one for each row of its examples, named by `names`.

    Other parameters (`--runs`, or `--count` of pytest-repeat) follow the name in brackets.
    """
    rows: dict[int, int] = {}
    for item in file._genfunctions(function.__name__, function):
        spec = getattr(item, "callspec", None)
        name, extra = names[0], {}
        if spec is not None:
            ids, row = list(spec._idlist), spec.params.get(_EXAMPLE)
            if isinstance(row, Mapping):
                name = names[rows.setdefault(id(row), len(rows))]
                row_name = "-".join(row.values())  # pytest escapes letters beyond ASCII, unless configured otherwise
                ids.remove(next(part for part in ids if part in (row_name, ascii_escaped(row_name))))
            name += f"[{'-'.join(ids)}]" if ids else ""
            # without these, pytest puts all parameters into the id
            extra = {"callspec": replace(spec, _idlist=()), "keywords": {spec.id: True}}
        yield pytest.Function.from_parent(parent, name=name, callobj=function, fixtureinfo=item._fixtureinfo, **extra)


def scenario_of(item: pytest.Item) -> tuple[str, dict[str, str], list[Sentence]] | None:
    """Return the name, the row of examples and the sentences of an item; None if the item is not a scenario."""
    function = getattr(item, "obj", None)
    template = scenario_wrapper_template_registry.get(function) if callable(function) else None
    if template is None:
        return None
    callspec = getattr(item, "callspec", None)
    row = dict(callspec.params.get(_EXAMPLE, {})) if callspec is not None else {}
    return template.name, {key: str(value) for key, value in row.items()}, _rendered(template, row)


def nodes_of(item: pytest.Item) -> tuple[Any, Any]:
    """Return the feature and the scenario of an item, as the hooks of pytest-bdd receive them."""
    template: Any = scenario_wrapper_template_registry[item.obj]  # type: ignore[attr-defined]
    callspec = getattr(item, "callspec", None)
    return template.feature, template.render(dict(callspec.params.get(_EXAMPLE, {})) if callspec is not None else {})


def _rendered(template: Any, example: Any) -> list[Sentence]:
    return [
        Sentence(
            step.type, step.keyword, step.name, step.line_number, _cells(rows), tuple(row.location.line for row in rows)
        )
        for step in template.render(example).steps
        for rows in [step.datatable.rows if step.datatable is not None else ()]
    ]


def _cells(rows: Any) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(str(cell.value) for cell in row.cells) for row in rows)


def definitions_for(node: pytest.Collector) -> list[StepDefinition]:
    """Return every step definition that scenarios under `node` can use."""
    manager = node.session._fixturemanager
    found = []
    for name in get_fixture_names(fixturemanager=manager):
        for fixture in getfixturedefs(manager, name, node) or ():
            context = step_function_context_registry.get(fixture.func)
            if context is not None:
                found.append(_definition(context, fixture.baseid or ""))
    return found


def fixture_of(node: pytest.Collector, name: str) -> Callable[..., Any] | None:
    """Return the function of the fixture that scenarios under `node` use by this name; None if there is none."""
    found = getfixturedefs(node.session._fixturemanager, name, node)
    return found[-1].func if found else None


def _definition(context: Any, level: str = "") -> StepDefinition:
    parser = context.parser
    return StepDefinition(
        context.type, parser.name, context.step_func, parser.is_matching, parser.parse_arguments, level
    )


def all_definitions() -> list[StepDefinition]:
    """Return every imported step definition, ordered by place."""
    found = [_definition(context) for context in step_function_context_registry.values()]
    return sorted(found, key=lambda definition: (definition.file, definition.line))


def import_beside(file: Path, config: pytest.Config) -> types.ModuleType:
    """Import a Python file of the project as pytest imports a conftest, by the run's own import mode."""
    namespaces = bool(config.getini("consider_namespace_packages"))
    mode = config.getoption("importmode")
    return import_path(file, mode=mode, root=config.rootpath, consider_namespace_packages=namespaces)
