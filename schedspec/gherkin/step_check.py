"""Check feature files before anything runs, and report all problems at once, each with file and line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from ..api.capabilities import TAG
from . import bdd, documents, lost_lines, step_decorators
from .sentence_check import check_sentence
from .things import KnownThings, RunFacts

_PLACEHOLDER = re.compile(r"\{[^}]*\}|\W")
_QUOTED = re.compile(r'"[^"]*"')
_FEW_LETTERS = 3
"""A pattern with at most this many letters outside of its placeholders matches prose too."""
_OF_PYTHON = {"filterwarnings", "parametrize", "skipif", "tryfirst", "trylast", "usefixtures"}
"""Markers of pytest that mean nothing without arguments, which a tag cannot have."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to repair in a feature file."""

    line: int
    text: str


@dataclass
class StepIndex:
    """Finds the step definitions of a sentence. Caches the results, because backgrounds repeat sentences."""

    definitions: Sequence[bdd.StepDefinition]
    hidden: set[str] = field(default_factory=set)
    """Our sentences that a sentence of the project replaced."""
    _found: dict[tuple[str, str], list[bdd.StepDefinition]] = field(default_factory=dict)

    def find(self, sentence: documents.Sentence) -> list[bdd.StepDefinition]:
        """Return the steps that match: exactly one for a correct sentence. The project's own steps hide ours."""
        key = (sentence.type, sentence.text)
        if key not in self._found:
            found = [
                step for step in self.definitions if step.type in (None, sentence.type) and step.matches(sentence.text)
            ]
            own = _innermost([step for step in found if not bdd.is_ours(step.function)])
            self.hidden.update(step.pattern for step in found if own and bdd.is_ours(step.function))
            self._found[key] = own or found
        return self._found[key]

    def nearest(self, sentence: documents.Sentence) -> str | None:
        """Return the pattern that the author may have meant."""
        plain = _QUOTED.sub('""', sentence.text)
        wordings = {
            wording: step.pattern
            for step in self.definitions
            if step.type in (None, sentence.type)
            for wording in _wordings(step.pattern)
        }
        found = difflib.get_close_matches(plain, wordings, n=1, cutoff=0.5)
        if not found:
            return None
        near = wordings[found[0]]
        words = "; ".join(
            f"{{{name}}}: {', '.join(choices)}" for name, choices in step_decorators.facts_of(near).words.items()
        )
        return f"{near} ({words})" if words else near

    def other_kinds(self, sentence: documents.Sentence) -> list[str]:
        """Return the other kinds of step (given, when, then) that match the sentence."""
        found = {
            step.type
            for step in self.definitions
            if step.type not in (None, sentence.type) and step.matches(sentence.text)
        }
        return [kind.capitalize() for kind in ("given", "when", "then") if kind in found]

    def is_sentence(self, text: str) -> bool:
        """Whether a step of any kind matches this text, other than a pattern that matches nearly everything."""
        return any(
            len(_PLACEHOLDER.sub("", step.pattern)) > _FEW_LETTERS and step.matches(text) for step in self.definitions
        )


def _wordings(pattern: str) -> Iterator[str]:
    """Yield a pattern without its quoted placeholders, once for each word that a placeholder may have."""
    bare = _QUOTED.sub('""', pattern)
    yield bare
    for name, words in step_decorators.facts_of(pattern).words.items():
        yield from (re.sub(rf"\{{{name}[^}}]*\}}", word, bare) for word in words)


def _innermost(found: list[bdd.StepDefinition]) -> list[bdd.StepDefinition]:
    """Return the definitions of the innermost conftest, which hide other definitions with the same pattern."""
    deepest: dict[tuple[str | None, str], int] = {}
    for step in found:
        key = (step.type, step.pattern)
        deepest[key] = max(deepest.get(key, 0), len(step.level))
    return [step for step in found if len(step.level) == deepest[step.type, step.pattern]]


def check_document(document: documents.Document, markers: Collection[str]) -> Iterator[Problem]:
    """Yield the problems that are found without step definitions: names, tags, examples."""
    seen: dict[str, int] = {}
    scenarios = list(documents.scenarios_of(document))
    if not scenarios:
        yield Problem(document.location.line, "the feature has no scenario")
    for node in scenarios:
        line = node.location.line
        if not node.name:
            yield Problem(line, "a scenario needs a name")
        if "::" in node.name:
            yield Problem(line, f"a scenario's name must not contain '::', which separates node ids: {node.name!r}")
        if node.name in seen:
            yield Problem(line, f"the name {node.name!r} is taken by the scenario in line {seen[node.name]}")
        seen.setdefault(node.name, line)
        if not node.steps:
            yield Problem(line, f"the scenario {node.name!r} has no steps: it would pass whatever happens")
        elif not documents.has_then(node):
            text = "has no Then, so that it asserts nothing: say what must come, or what must not"
            yield Problem(line, f"the scenario {node.name!r} {text}")
        yield from _check_examples(node, documents.placeholders(document, node))
        yield from _check_blanks(node, documents.placeholders_in_words(document, node))
        yield from _check_placeholders(node)
    yield from _check_rules(document)
    for step, has_kind in documents.first_steps(document):
        if not has_kind:
            yield Problem(
                step.location.line, f"begin the first step with its kind: Given, When or Then, not {step.keyword}"
            )
    for tag in _tags(document):
        name = tag.name.lstrip("@")
        known = [marker for marker in markers if marker not in _OF_PYTHON]
        if name not in known:
            near = next(iter(difflib.get_close_matches(name, known, n=1)), None)
            hint = f"; is @{near} meant?" if near else ""
            yield Problem(tag.location.line, f"unknown tag {tag.name}{hint} (`pytest --markers` lists the known ones)")


def _check_rules(document: documents.Document) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for rule in documents.rules_of(document):
        line = rule.location.line
        if not rule.name:
            yield Problem(line, "a rule needs a name")
        if "::" in rule.name:
            yield Problem(line, f"a rule's name must not contain '::', which separates node ids: {rule.name!r}")
        if rule.name in seen:
            yield Problem(line, f"the name {rule.name!r} is taken by the rule in line {seen[rule.name]}")
        seen.setdefault(rule.name, line)
        if not any(child.scenario for child in rule.children):
            yield Problem(line, f"the rule {rule.name!r} has no scenario: write one, or remove the rule")


def _check_examples(node: documents.ScenarioNode, used: Collection[str]) -> Iterator[Problem]:
    outline = "outline" in node.keyword.lower() or "template" in node.keyword.lower() or bool(node.examples)
    if outline and not any(table.table_body for table in node.examples):
        yield Problem(node.location.line, f"the outline {node.name!r} has no row of examples: it would not run")
    rows: dict[tuple[str, ...], int] = {}
    for examples in node.examples:
        if (header := examples.table_header) is not None:
            names = [cell.value for cell in header.cells]
            for name in dict.fromkeys(names):
                if name not in used:
                    text = f"no step and no name of the outline uses <{name}>: use it, or remove the column"
                    yield Problem(header.location.line, text)
                if names.count(name) > 1:
                    text = f"{names.count(name)} columns are called {name}: only the last one would be read"
                    yield Problem(header.location.line, text)
        for row in examples.table_body or ():
            values = tuple(cell.value for cell in row.cells)
            if any("::" in value for value in values):
                yield Problem(row.location.line, "an example must not contain '::', which separates node ids")
            if values in rows:
                yield Problem(row.location.line, f"line {rows[values]} has the same example")
            rows.setdefault(values, row.location.line)


def _check_placeholders(node: documents.ScenarioNode) -> Iterator[Problem]:
    """Yield each placeholder of a step for which no table of examples has a column."""
    headers = [table.table_header for table in node.examples if table.table_header is not None]
    columns = [{cell.value for cell in header.cells} for header in headers] or [set()]
    for step in node.steps:
        for name in sorted(documents.placeholders_of(step)):
            if not all(name in header for header in columns):
                yield Problem(step.location.line, f"<{name}> has no value: no table Examples: has a column {name}")


def _check_blanks(node: documents.ScenarioNode, in_words: Collection[str]) -> Iterator[Problem]:
    """Yield each value of the examples that is blank where only a cell of a table may be."""
    for examples in node.examples:
        header = examples.table_header
        for place, head in enumerate(header.cells if header is not None else ()):
            blank = [row.location.line for row in examples.table_body or () if not row.cells[place].value]
            if head.value in in_words:
                text = f"<{head.value}> is blank, and stands in a sentence: fill it in"
                yield from (Problem(line, text) for line in blank)
            elif blank and len(blank) == len(examples.table_body or ()):
                text = f"no row has a value of <{head.value}>: fill one in, or remove the column"
                yield Problem(head.location.line, text)


def _tags(document: documents.Document) -> Iterator[documents.Tag]:
    yield from document.tags
    for child in document.children:
        if child.rule:
            yield from child.rule.tags
    for node in documents.scenarios_of(document):
        yield from node.tags
        for examples in node.examples:
            yield from examples.tags


def check_steps(
    document: documents.Document, lines: Sequence[str], index: StepIndex, facts: RunFacts
) -> Iterator[Problem]:
    """Yield the problems that are found with step definitions: sentences, their tables and names, and lost lines."""
    reported: set[tuple[int, str]] = set()
    for scenario in documents.sentences_in(document):
        is_skipped = bool(facts.lacking.intersection(_needs(scenario, index)))
        known = KnownThings(facts.of_another_scheduler() if is_skipped else facts)
        last = max((n for n, one in enumerate(scenario.sentences) if _states_outcome(one, index)), default=-1)
        for sentence in scenario.sentences[last + 1 :]:
            if sentence.type == "then":
                yield Problem(sentence.line, "this sentence says nothing: no later sentence states an outcome")
        for sentence in scenario.sentences:
            values = ", ".join(f"{name}={value}" for name, value in sentence.values)
            row = f" (with {values}, of line {scenario.row_line})" if values else ""
            for line, text in _check_sentence(sentence, row, index, known):
                same = (line, text.replace(row, values))  # another row with these values has the same problem
                if same not in reported:
                    reported.add(same)
                    yield Problem(line, text)
        for line, text in known.missing():
            if (line, text) not in reported:
                reported.add((line, text))
                yield Problem(line, text)
    for line, text in lost_lines.find(document, lines, index.is_sentence):
        yield Problem(line, text)


def _needs(scenario: documents.ScenarioSentences, index: StepIndex) -> Iterator[str]:
    """Yield the capabilities that the scenario needs, by its own tags and its sentences."""
    yield from (tag.name.removeprefix(f"@{TAG}") for tag in scenario.scenario.tags)
    for sentence in scenario.sentences:
        for step in index.find(sentence):
            yield from step_decorators.needs_of(step.function, sentence)


def _states_outcome(sentence: documents.Sentence, index: StepIndex) -> bool:
    """Whether the sentence states an outcome of its own."""
    found = index.find(sentence) if sentence.type == "then" else ()
    return sentence.type == "then" and not any(step_decorators.is_of_later(step.function) for step in found)


def _check_sentence(
    sentence: documents.Sentence, row: str, index: StepIndex, known: KnownThings
) -> Iterator[tuple[int, str]]:
    found, line = index.find(sentence), sentence.line
    if not found:
        yield line, _undefined(sentence, row, index)
    if len(found) > 1:
        places = "".join(f"\n    {step.pattern!r} at {step.where}" for step in found)
        yield line, f"{len(found)} steps match: {sentence}{places}"
    for step in found:
        if step.is_async:
            yield line, f"the step is `async def`, which would never be awaited: {sentence}\n    at {step.where}"
    if len(found) == 1:
        for at, text in check_sentence(sentence, found[0], known):
            yield at, f"{text}{row}"
    else:
        known.add_anything()


def _undefined(sentence: documents.Sentence, row: str, index: StepIndex) -> str:
    kinds = index.other_kinds(sentence)
    if kinds:
        return f"this is a {' and a '.join(kinds)} sentence, under {sentence.type.capitalize()}: {sentence}{row}"
    near = index.nearest(sentence)
    return f"no step matches: {sentence}{row}" + (f"\n    the nearest is: {sentence.type} {near}" if near else "")


def format_problems(path: str, problems: Sequence[Problem]) -> str:
    """Return one line for each problem: `file:line: what`."""
    ordered = sorted(problems, key=lambda problem: problem.line)
    return "\n".join(f"{path}:{problem.line}: {problem.text}" for problem in ordered)
