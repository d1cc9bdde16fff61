"""Parse feature files: their parts with line numbers, and the sentences of each scenario, before pytest binds them.

The parser is pytest-bdd's, so that a file is read here exactly as it is run.
"""

from __future__ import annotations

import codecs
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gherkin.dialect import DIALECTS, Dialect
from gherkin.errors import CompositeParserException
from gherkin.parser import Parser
from pytest_bdd.exceptions import GherkinParseError, TokenError
from pytest_bdd.feature import features as parsed_features
from pytest_bdd.gherkin_parser import Background, GherkinDocument, Tag, handle_gherkin_parser_error
from pytest_bdd.gherkin_parser import Feature as Document
from pytest_bdd.gherkin_parser import Rule as RuleNode
from pytest_bdd.gherkin_parser import Scenario as ScenarioNode
from pytest_bdd.gherkin_parser import Step as StepNode
from pytest_bdd.parser import PARAM_RE, render_string
from pytest_bdd.types import STEP_TYPE_BY_PARSER_KEYWORD

from ..scheduler.model.input_files import read_bytes

__all__ = [
    "SUFFIX",
    "WRONG_NAME",
    "Document",
    "Keywords",
    "Part",
    "RuleNode",
    "ScenarioNode",
    "ScenarioSentences",
    "Sentence",
    "Tag",
    "UnreadableFeatureError",
    "document_of",
    "filled",
    "first_steps",
    "forget",
    "has_then",
    "is_nearly_feature",
    "keywords_of",
    "parts_of",
    "placed_scenarios",
    "placeholders",
    "placeholders_in_words",
    "placeholders_of",
    "read_document",
    "read_text",
    "rules_of",
    "scenarios_of",
    "sentences_in",
    "table_lines",
]

SUFFIX = ".feature"
WRONG_NAME = f"the name of a feature ends with {SUFFIX}, in lower case: rename the file"
_LANGUAGE = re.compile(r"\s*#\s*language\s*:\s*([A-Za-z_-]+)")
Part = RuleNode | ScenarioNode | Background
"""The parts of a feature file, each with a line of its own."""


class UnreadableFeatureError(Exception):
    """The feature file is not valid Gherkin. `problems` are the line and text of each error of the parser."""

    def __init__(self, problems: Sequence[tuple[int, str]]) -> None:
        super().__init__("; ".join(f"line {line}: {text}" for line, text in problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Keywords:
    """The keywords of one language."""

    headings: Mapping[str, str]
    """Keyword with a colon → the part that it begins: feature, rule, background, scenario, outline or examples."""
    steps: tuple[str, ...]
    """Given, When, Then, And, But; `*` is none of them."""

    def usual(self, kind: str) -> str:
        """Return the most common keyword for a kind of heading: Scenario rather than Example, 场景 rather than 剧本."""
        words = [word for word, heading in self.headings.items() if heading == kind]
        return "Scenario" if "Scenario" in words else words[0]


@dataclass(frozen=True, slots=True)
class Sentence:
    """One step of a scenario, with the values of its example filled in."""

    type: str
    keyword: str
    text: str
    line: int
    table: tuple[tuple[str, ...], ...] = ()
    """Its rows, the header first."""
    table_lines: tuple[int, ...] = ()
    """The line of each row."""
    docstring_line: int = 0
    """0 without a docstring."""
    values: tuple[tuple[str, str], ...] = ()
    """The values that the step has from the row of examples: column and value of each placeholder."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The header of the step's table."""
        return self.table[0] if self.table else ()

    @property
    def rows(self) -> list[dict[str, str]]:
        """The rows of the step's table, by the names of the columns."""
        return [dict(zip(self.columns, row, strict=False)) for row in self.table[1:]]

    def __str__(self) -> str:
        return f"{self.keyword.strip()} {self.text}"


@dataclass(frozen=True, slots=True)
class ScenarioSentences:
    """All sentences of one scenario for one row of its examples, those of the backgrounds first."""

    scenario: ScenarioNode
    row: Mapping[str, str]
    row_line: int
    """0 without examples."""
    sentences: tuple[Sentence, ...]


def is_nearly_feature(path: Path) -> bool:
    """Whether a file has the suffix of a feature, or one that its author must have meant for it, such as `.featrue`."""
    return path.suffix[1:].isalpha() and bool(difflib.get_close_matches(path.suffix.lower(), [SUFFIX], cutoff=0.85))


def read_text(path: Path) -> str:
    """Return the text of a feature file.

    Raises:
        UnreadableFeatureError: The file cannot be read, or is not plain UTF-8.
    """
    try:
        data = read_bytes(path)
    except OSError as problem:
        raise UnreadableFeatureError([(1, f"the file cannot be read: {problem.strerror}")]) from None
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise UnreadableFeatureError([(1, "the file is UTF-32: save it as UTF-8")])
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise UnreadableFeatureError([(1, "the file is UTF-16: save it as UTF-8")])
    if data.startswith(codecs.BOM_UTF8):
        raise UnreadableFeatureError([(1, "the file begins with a byte-order mark: save it as UTF-8 without one")])
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        text = f"byte 0x{data[problem.start]:02x} is not UTF-8 (is the file Latin-1?): save it as UTF-8"
        raise UnreadableFeatureError([(line, text)]) from None


def read_document(path: Path) -> Document:
    """Return the parsed file, with line numbers.

    Raises:
        UnreadableFeatureError: The file is not valid Gherkin.
    """
    forget(path)
    return document_of(read_text(path))


def forget(path: Path) -> None:
    """Remove a file from pytest-bdd's cache, because the file may have changed."""
    parsed_features.pop(str(path), None)


def document_of(text: str) -> Document:
    """Return the parsed text of a feature file, with line numbers.

    Raises:
        UnreadableFeatureError: The text is not valid Gherkin; the error has all problems that the parser found.
    """
    try:
        return GherkinDocument.from_dict(Parser().parse(text)).feature
    except (CompositeParserException, KeyError) as problem:
        if wrong := _language_problem(text):
            raise UnreadableFeatureError([wrong]) from None
        if isinstance(problem, CompositeParserException):
            raise UnreadableFeatureError(
                [_parse_error(error) for error in problem.errors]
            ) from None  # the parser has no error for a file without a feature
        raise UnreadableFeatureError([(1, "there is no Feature in this file")]) from None


def _language_problem(text: str) -> tuple[int, str] | None:
    """Return the line and problem of a file whose language is unknown, or whose first keyword is of another one."""
    for number, line in enumerate(text.splitlines(), 1):
        if named := _LANGUAGE.match(line):
            if Dialect.for_name(named[1]) is not None:
                return None
            near = difflib.get_close_matches(named[1], DIALECTS, n=1)
            return number, f"there is no language {named[1]!r}" + (f": write # language: {near[0]}" if near else "")
        if not line.strip() or line.lstrip().startswith(("#", "@")):
            continue
        word = line.replace("：", ":").partition(":")[0].strip()
        for language in ("en", "zh-CN", *DIALECTS):
            if word in DIALECTS[language]["feature"]:
                comment = f"# language: {language}"
                return (
                    None if language == "en" else (number, f"{word} is of {language}: begin the file with {comment!r}")
                )
        return None
    return None


def _parse_error(error: Any) -> tuple[int, str]:
    """Return line and text of a parser error, in pytest-bdd's words if it has any."""
    line, text = int(error.location["line"]), str(error).partition(": ")[2]
    try:
        handle_gherkin_parser_error(str(error), line, "", "")
    except TokenError:
        text = "no keyword begins this line"
    except GherkinParseError as known:
        text = str(known.message)
    return line, text.strip()


def keywords_of(language: str) -> Keywords:
    """Return the keywords of a language as `# language:` names it; the English ones for an unknown language."""
    dialect: Any = Dialect.for_name(language) or Dialect.for_name("en")
    headings = {
        "feature": dialect.feature_keywords,
        "rule": dialect.rule_keywords,
        "background": dialect.background_keywords,
        "scenario": dialect.scenario_keywords,
        "outline": dialect.scenario_outline_keywords,
        "examples": dialect.examples_keywords,
    }
    steps = (
        dialect.given_keywords,
        dialect.when_keywords,
        dialect.then_keywords,
        dialect.and_keywords,
        dialect.but_keywords,
    )
    return Keywords(
        headings={str(word): kind for kind, words in headings.items() for word in words},
        steps=tuple(word.strip() for words in steps for word in words if word.strip() != "*"),
    )


def placed_scenarios(document: Document) -> Iterator[tuple[str | None, ScenarioNode]]:
    """Yield every scenario of the file with the name of its Rule, in the order of the file."""
    for child in document.children:
        if child.scenario:
            yield None, child.scenario
        elif child.rule:
            yield from ((child.rule.name, inner.scenario) for inner in child.rule.children if inner.scenario)


def scenarios_of(document: Document) -> Iterator[ScenarioNode]:
    """Yield every scenario of the file, including those in Rules, in the order of the file."""
    return (node for _, node in placed_scenarios(document))


def rules_of(document: Document) -> Iterator[RuleNode]:
    """Return the Rules of the file."""
    return (child.rule for child in document.children if child.rule)


def parts_of(document: Document) -> Iterator[Part]:
    """Yield the file's Rules, scenarios and backgrounds, then the scenarios and backgrounds inside of the Rules."""
    for child in [*document.children, *(inner for rule in rules_of(document) for inner in rule.children)]:
        yield from (part for part in (child.rule, child.scenario, child.background) if part)


def table_lines(document: Document) -> Iterator[int]:
    """Yield the line of each row of a table or of examples."""
    for part in parts_of(document):
        for step in getattr(part, "steps", ()):
            yield from (row.location.line for row in (step.datatable.rows if step.datatable is not None else ()))
        for table in getattr(part, "examples", ()):
            rows = (table.table_header, *(table.table_body or ()))
            yield from (row.location.line for row in rows if row is not None)


def filled(text: str, row: Mapping[str, str]) -> str:
    """Return a text of an outline with the values of a row of its examples."""
    return str(render_string(text, row))


def sentences_in(document: Document) -> Iterator[ScenarioSentences]:
    """Yield the sentences of every scenario, in the order of the file. No scenario has to be bound."""
    shared = _background(document.children)
    for child in document.children:
        if child.scenario:
            yield from _sentences_of(child.scenario, shared)
        elif child.rule:
            own = [*shared, *_background(child.rule.children)]
            for inner in child.rule.children:
                if inner.scenario:
                    yield from _sentences_of(inner.scenario, own)


def _background(children: Sequence[Any]) -> list[tuple[str, StepNode]]:
    return [pair for child in children if child.background for pair in _typed(child.background.steps, "given")]


def _sentences_of(node: ScenarioNode, before: Sequence[tuple[str, StepNode]]) -> Iterator[ScenarioSentences]:
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
        yield ScenarioSentences(node, row, line, tuple(_sentence(kind, step, row) for kind, step in steps))


def _typed(steps: Sequence[StepNode], kind: str) -> Iterator[tuple[str, StepNode]]:
    for step in steps:
        kind = STEP_TYPE_BY_PARSER_KEYWORD.get(step.keyword_type, kind)
        yield kind, step


def placeholders(document: Document, node: ScenarioNode) -> set[str]:
    """Return the placeholders of an outline: in its name, in its steps and in the steps of backgrounds."""
    return {*PARAM_RE.findall(node.name)}.union(*map(_placeholders, _steps_of(document, node)))


def _steps_of(document: Document, node: ScenarioNode) -> list[StepNode]:
    backgrounds = [part for part in parts_of(document) if isinstance(part, Background)]
    return [*node.steps, *(step for part in backgrounds for step in part.steps)]


def placeholders_in_words(document: Document, node: ScenarioNode) -> set[str]:
    """Return the placeholders of an outline's steps that stand in a sentence, or in a part of a cell."""
    texts = [text for step in _steps_of(document, node) for text in _texts(step) if not PARAM_RE.fullmatch(text)]
    return {name for text in texts for name in PARAM_RE.findall(text)}


def placeholders_of(step: StepNode) -> set[str]:
    """Return the placeholders in a step's sentence and table; a text block may have any text."""
    return {name for text in _words(step) for name in PARAM_RE.findall(text)}


def _placeholders(step: StepNode) -> set[str]:
    return {name for text in _texts(step) for name in PARAM_RE.findall(text)}


def _words(step: StepNode) -> list[str]:
    rows = step.datatable.rows if step.datatable is not None else ()
    return [step.text, *(cell.value or "" for row in rows for cell in row.cells)]


def _texts(step: StepNode) -> list[str]:
    return [*_words(step), *([step.docstring.content] if step.docstring is not None else ())]


def _sentence(kind: str, step: StepNode, example: Mapping[str, str]) -> Sentence:
    rows = step.datatable.rows if step.datatable is not None else []
    raw = [[cell.value or "" for cell in row.cells] for row in rows]
    used = _placeholders(step)
    return Sentence(
        kind,
        step.keyword,
        filled(step.text, example),
        step.location.line,
        tuple(tuple(filled(cell, example) for cell in cells) for cells in raw),
        tuple(row.location.line for row in rows),
        step.docstring.location.line if step.docstring is not None else 0,
        tuple((name, value) for name, value in example.items() if name in used),
    )


def has_then(node: ScenarioNode) -> bool:
    """Whether a step of the scenario states an outcome."""
    return any(kind == "then" for kind, _ in _typed(node.steps, "given"))


def first_steps(document: Document) -> Iterator[tuple[StepNode, bool]]:
    """Yield the first step of each scenario and background, and whether its keyword determines the step's type."""
    for part in parts_of(document):
        steps = getattr(part, "steps", ())
        if steps:
            yield steps[0], steps[0].keyword_type in STEP_TYPE_BY_PARSER_KEYWORD
