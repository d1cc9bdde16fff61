"""Every private part of pytest-bdd and pytest that we lean on stands here, and nowhere else.

pytest-bdd 9 collects no feature files, picks one of several matching steps silently and lets an `async def` step pass.
What it takes to do better is not public; the version is therefore pinned, and each function has a test of its own.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from _pytest._code.code import ExceptionChainRepr, ReprEntryNative, ReprFileLocation, ReprTraceback
from _pytest._io import TerminalWriter
from _pytest.compat import ascii_escaped
from _pytest.pathlib import import_path
from gherkin.dialect import Dialect
from gherkin.errors import CompositeParserException
from gherkin.parser import Parser
from pytest_bdd.compat import get_fixture_names, getfixturedefs
from pytest_bdd.exceptions import GherkinParseError, TokenError
from pytest_bdd.feature import features as parsed_features
from pytest_bdd.gherkin_parser import Background, GherkinDocument, Tag, handle_gherkin_parser_error
from pytest_bdd.gherkin_parser import Feature as Document
from pytest_bdd.gherkin_parser import Rule as RuleNode
from pytest_bdd.gherkin_parser import Scenario as ScenarioNode
from pytest_bdd.gherkin_parser import Step as StepNode
from pytest_bdd.parser import PARAM_RE, render_string
from pytest_bdd.scenario import scenario as bind_scenario
from pytest_bdd.scenario import scenario_wrapper_template_registry
from pytest_bdd.steps import step_function_context_registry
from pytest_bdd.types import STEP_TYPE_BY_PARSER_KEYWORD

__all__ = [
    "Document",
    "Keywords",
    "Part",
    "RuleNode",
    "Said",
    "ScenarioNode",
    "Sentence",
    "StepDefinition",
    "Tag",
    "UnreadableFeatureError",
    "all_definitions",
    "bind",
    "definitions_for",
    "document_of",
    "filled",
    "first_steps",
    "forget",
    "import_beside",
    "items_of",
    "keywords_of",
    "paint",
    "parts_of",
    "placed_scenarios",
    "plain_failure",
    "read_document",
    "rules_of",
    "said_in",
    "scenario_of",
    "scenarios_of",
]

_EXAMPLE = "_pytest_bdd_example"
Part = RuleNode | ScenarioNode | Background
"""What a feature file is made of, each with a line of its own."""


class UnreadableFeatureError(Exception):
    """The feature file is not Gherkin. `problems` are what the parser could not take: line and text of each."""

    def __init__(self, problems: Sequence[tuple[int, str]]) -> None:
        super().__init__("; ".join(f"line {line}: {text}" for line, text in problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Keywords:
    """The words of one language that begin a line."""

    headings: Mapping[str, str]
    """Those with a colon, and what each begins: feature, rule, background, scenario, outline, examples."""
    steps: tuple[str, ...]
    """Given, When, Then, And, But; `*` is none of them."""

    def usual(self, kind: str) -> str:
        """The word that most people write for a kind of heading: not Example for Scenario, nor 剧本 for 场景."""
        words = [word for word, it in self.headings.items() if it == kind]
        return "Scenario" if "Scenario" in words else words[0]


@dataclass(frozen=True, slots=True)
class StepDefinition:
    """One decorated function, as the collection sees it."""

    type: str | None
    """given, when, then, or None for any of them."""
    pattern: str
    function: Callable[..., object]
    matches: Callable[[str], bool]
    values: Callable[[str], Mapping[str, Any] | None]
    """The values of its placeholders in a text that it matches."""
    level: str = ""
    """The node id of the folder whose conftest it is in; empty for plugins and the conftest of the root."""

    @property
    def path(self) -> str:
        """The file of the function, whole."""
        return str(inspect.unwrap(self.function).__code__.co_filename)

    @property
    def file(self) -> str:
        """Where the function stands."""
        return _short(self.path)

    @property
    def line(self) -> int:
        """The line of its first decorator."""
        return int(inspect.unwrap(self.function).__code__.co_firstlineno)

    @property
    def where(self) -> str:
        """`path:line` of the function."""
        return f"{self.file}:{self.line}"

    def takes(self, argument: str) -> bool | None:
        """Whether it is given a `datatable` or `docstring`: None where it does not need the one that it may have."""
        found = inspect.signature(self.function).parameters.get(argument)
        return None if found is not None and found.default is not inspect.Parameter.empty else found is not None

    @property
    def is_async(self) -> bool:
        """True for what pytest-bdd would call and never await."""
        return inspect.iscoroutinefunction(self.function) or inspect.isasyncgenfunction(self.function)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One step as a scenario says it, examples filled in."""

    type: str
    keyword: str
    text: str
    line: int
    table: tuple[tuple[str, ...], ...] = ()
    """Its rows, the header first."""
    table_lines: tuple[int, ...] = ()
    """The line of each of them."""
    docstring_line: int = 0
    """0 without a docstring."""
    values: tuple[tuple[str, str], ...] = ()
    """What it has from the row of the examples: column and value of each placeholder in it."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The header of its table."""
        return self.table[0] if self.table else ()

    def __str__(self) -> str:
        return f"{self.keyword.strip()} {self.text}"


@dataclass(frozen=True, slots=True)
class Said:
    """What one scenario says, once for each row of its examples: backgrounds first."""

    scenario: ScenarioNode
    row: Mapping[str, str]
    row_line: int
    """0 without examples."""
    sentences: tuple[Sentence, ...]


def read_document(path: Path) -> Document:
    """The parsed file, with the line of everything. Raises UnreadableFeatureError."""
    forget(path)
    return document_of(path.read_text("utf-8"))


def forget(path: Path) -> None:
    """pytest-bdd keeps what it once read, though the file may have changed."""
    parsed_features.pop(str(path), None)


def document_of(text: str) -> Document:
    """The same of the text of a file. Raises UnreadableFeatureError, with everything that the parser could not take."""
    try:
        return GherkinDocument.from_dict(Parser().parse(text)).feature
    except CompositeParserException as problem:
        raise UnreadableFeatureError([_parse_error(it) for it in problem.errors]) from None
    except KeyError:  # the parser has no word for a file without a feature
        raise UnreadableFeatureError([(1, "there is no Feature in this file")]) from None


def _parse_error(error: Any) -> tuple[int, str]:
    """Line and text, in pytest-bdd's words where it has any."""
    line, text = int(error.location["line"]), str(error).partition(": ")[2]
    try:
        handle_gherkin_parser_error(str(error), line, "", "")
    except TokenError:
        text = "no keyword begins this line"
    except GherkinParseError as known:
        text = str(known.message)
    return line, text.strip()


def keywords_of(language: str) -> Keywords:
    """The keywords of a language as `# language:` names it; of one that there is not, the English ones."""
    it: Any = Dialect.for_name(language) or Dialect.for_name("en")
    headings = {
        "feature": it.feature_keywords,
        "rule": it.rule_keywords,
        "background": it.background_keywords,
        "scenario": it.scenario_keywords,
        "outline": it.scenario_outline_keywords,
        "examples": it.examples_keywords,
    }
    steps = (it.given_keywords, it.when_keywords, it.then_keywords, it.and_keywords, it.but_keywords)
    return Keywords(
        headings={str(word): kind for kind, words in headings.items() for word in words},
        steps=tuple(word.strip() for words in steps for word in words if word.strip() != "*"),
    )


def placed_scenarios(document: Document) -> Iterator[tuple[str | None, ScenarioNode]]:
    """Every scenario of the file with the name of the Rule that it stands in, in the order of the file."""
    for child in document.children:
        if child.scenario:
            yield None, child.scenario
        elif child.rule:
            yield from ((child.rule.name, inner.scenario) for inner in child.rule.children if inner.scenario)


def scenarios_of(document: Document) -> Iterator[ScenarioNode]:
    """Every scenario of the file, those in Rules included, in the order of the file."""
    return (node for _, node in placed_scenarios(document))


def rules_of(document: Document) -> Iterator[RuleNode]:
    """The Rules of the file."""
    return (child.rule for child in document.children if child.rule)


def parts_of(document: Document) -> Iterator[Part]:
    """Rules, scenarios and backgrounds, each where it begins."""
    for child in [*document.children, *(inner for rule in rules_of(document) for inner in rule.children)]:
        yield from (part for part in (child.rule, child.scenario, child.background) if part)


def filled(text: str, row: Mapping[str, str]) -> str:
    """A text of an outline with the values of a row of its examples."""
    return str(render_string(text, row))


def bind(path: Path, node: ScenarioNode) -> types.FunctionType:
    """The test function of one scenario. Its code has the feature file's line, so that pytest reports that place."""

    def body() -> None:
        """The sentences are the test."""

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
    """The items of a bound scenario below `parent`: one, or one a row of its examples, which `names` name in order.

    Whatever else parametrizes them (`--runs`, or `--count` of pytest-repeat) stands in brackets behind the name.
    """
    rows: dict[int, int] = {}
    for item in file._genfunctions(function.__name__, function):
        spec = getattr(item, "callspec", None)
        name, more = names[0], {}
        if spec is not None:
            others, row = list(spec._idlist), spec.params.get(_EXAMPLE)
            if isinstance(row, Mapping):
                name = names[rows.setdefault(id(row), len(rows))]
                said = "-".join(row.values())  # pytest writes letters beyond ASCII as escapes, unless it is told not to
                others.remove(next(it for it in others if it in (said, ascii_escaped(said))))
            name += f"[{'-'.join(others)}]" if others else ""
            more = {
                "callspec": replace(spec, _idlist=()),
                "keywords": {spec.id: True},
            }  # or pytest puts all into the id
        yield pytest.Function.from_parent(parent, name=name, callobj=function, fixtureinfo=item._fixtureinfo, **more)


def said_in(document: Document) -> Iterator[Said]:
    """What every scenario of the file says, in its order: read from the document, so that nothing needs be bound."""
    shared = _background(document.children)
    for child in document.children:
        if child.scenario:
            yield from _said(child.scenario, shared)
        elif child.rule:
            own = [*shared, *_background(child.rule.children)]
            for inner in child.rule.children:
                if inner.scenario:
                    yield from _said(inner.scenario, own)


def _background(children: Sequence[Any]) -> list[tuple[str, StepNode]]:
    return [pair for child in children if child.background for pair in _typed(child.background.steps, "given")]


def _said(node: ScenarioNode, before: Sequence[tuple[str, StepNode]]) -> Iterator[Said]:
    steps = [*before, *_typed(node.steps, before[-1][0] if before else "given")]
    rows = [
        (
            {head.value: cell.value or "" for head, cell in zip(table.table_header.cells, row.cells, strict=True)},
            row.location.line,
        )
        for table in node.examples
        if table.table_header is not None
        for row in table.table_body or ()
    ]
    for row, line in rows or [({}, 0)]:
        yield Said(node, row, line, tuple(_sentence(kind, step, row) for kind, step in steps))


def _typed(steps: Sequence[StepNode], kind: str) -> Iterator[tuple[str, StepNode]]:
    for step in steps:
        kind = STEP_TYPE_BY_PARSER_KEYWORD.get(step.keyword_type, kind)
        yield kind, step


def _sentence(kind: str, step: StepNode, row: Mapping[str, str]) -> Sentence:
    rows = step.datatable.rows if step.datatable is not None else []
    raw = [[cell.value or "" for cell in it.cells] for it in rows]
    doc = step.docstring.content if step.docstring is not None else ""
    asked = {
        name for text in (step.text, doc, *(cell for cells in raw for cell in cells)) for name in PARAM_RE.findall(text)
    }
    return Sentence(
        kind,
        step.keyword,
        filled(step.text, row),
        step.location.line,
        tuple(tuple(filled(cell, row) for cell in cells) for cells in raw),
        tuple(it.location.line for it in rows),
        step.docstring.location.line if step.docstring is not None else 0,
        tuple((name, value) for name, value in row.items() if name in asked),
    )


def first_steps(document: Document) -> Iterator[tuple[StepNode, bool]]:
    """The first step of each scenario and background, and whether its keyword says what kind of step it is."""
    for part in parts_of(document):
        steps = getattr(part, "steps", ())
        if steps:
            yield steps[0], steps[0].keyword_type in STEP_TYPE_BY_PARSER_KEYWORD


def scenario_of(item: pytest.Item) -> tuple[str, dict[str, str], list[Sentence]] | None:
    """The name, the row of examples and the sentences of an item; None if it is no scenario."""
    function = getattr(item, "obj", None)
    template = scenario_wrapper_template_registry.get(function) if callable(function) else None
    if template is None:
        return None
    callspec = getattr(item, "callspec", None)
    row = dict(callspec.params.get("_pytest_bdd_example", {})) if callspec is not None else {}
    return template.name, {key: str(value) for key, value in row.items()}, _rendered(template, row)


def _rendered(template: Any, row: Any) -> list[Sentence]:
    return [
        Sentence(
            step.type, step.keyword, step.name, step.line_number, _cells(rows), tuple(it.location.line for it in rows)
        )
        for step in template.render(row).steps
        for rows in [step.datatable.rows if step.datatable is not None else ()]
    ]


def _cells(rows: Any) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(str(cell.value) for cell in row.cells) for row in rows)


def definitions_for(node: pytest.Collector) -> list[StepDefinition]:
    """Every step definition that scenarios under `node` can see."""
    manager = node.session._fixturemanager
    found = []
    for name in get_fixture_names(fixturemanager=manager):
        for fixture in getfixturedefs(manager, name, node) or ():
            context = step_function_context_registry.get(fixture.func)
            if context is not None:
                found.append(_definition(context, fixture.baseid or ""))
    return found


def _definition(context: Any, level: str = "") -> StepDefinition:
    parser = context.parser
    return StepDefinition(
        context.type, parser.name, context.step_func, parser.is_matching, parser.parse_arguments, level
    )


def all_definitions() -> list[StepDefinition]:
    """Every step definition that was imported, by place."""
    found = [_definition(it) for it in step_function_context_registry.values()]
    return sorted(found, key=lambda it: (it.file, it.line))


def import_beside(file: Path, config: pytest.Config) -> types.ModuleType:
    """Import a Python file of the project as pytest imports a conftest, by the run's own import mode."""
    namespaces = bool(config.getini("consider_namespace_packages"))
    mode = config.getoption("importmode")
    return import_path(file, mode=mode, root=config.rootpath, consider_namespace_packages=namespaces)


def plain_failure(text: Sequence[str], headline: str, path: str, line: int) -> Any:
    """A report's `longrepr` that prints `text` and nothing of Python, and survives xdist and JUnit.

    The headline is what the summary shows.
    """
    body = ReprTraceback([ReprEntryNative([row + "\n" for row in text])], None, style="native")
    return ExceptionChainRepr([(body, ReprFileLocation(path, line, headline), None)])


def paint(longrepr: Any, markup: Callable[[str, int], dict[str, bool]]) -> None:
    """Make a `plain_failure` print its lines with the markup that a terminal shows; nothing else changes."""
    if isinstance(longrepr, ExceptionChainRepr):
        for trace, _, _ in longrepr.chain:
            trace.reprentries = [
                _Painted(it.lines, markup) if isinstance(it, ReprEntryNative) else it for it in trace.reprentries
            ]


class _Painted(ReprEntryNative):
    """A native entry with a markup for each line."""

    def __init__(self, lines: Sequence[str], markup: Callable[[str, int], dict[str, bool]]) -> None:
        super().__init__(lines)
        self._markup = markup

    def toterminal(self, tw: TerminalWriter) -> None:
        for number, row in enumerate(self.lines):
            tw.write(row, **self._markup(row.rstrip("\n"), number))


def _short(path: str) -> str:
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path
