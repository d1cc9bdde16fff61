"""Read the values of a policy file from YAML, with their lines and the problems with them.

Reading does not stop at a problem: each problem is recorded with line, field, value and remedy.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from ..model.documents import DocumentError, compose
from ..model.errors import BadInputError
from .schema import BOOL, DURATION, FLOAT, INT, MAPPING, RULES, TEXT, Argument

_DURATION = re.compile(r"([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+")
LARGEST = 2**31 - 1
"""Largest number in a policy. Larger or infinite numbers break sums and orders."""
_EXAMPLES = {
    INT: "2", FLOAT: "1.5", BOOL: "true", TEXT: "nvidia.com/gpu", DURATION: "1h30m", MAPPING: "{key: value}",
    RULES: "[{app: training}]",
}  # fmt: skip
_TEXTS = {"actions": '"enqueue, allocate, backfill"', "name": "gang"}
"""Fields with a text that is no name of a resource → an example."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem in a file."""

    line: int
    field: str
    value: str
    text: str
    remedy: str

    def render(self, source: str) -> str:
        """Return the problem as text for users."""
        value = f" {self.value!r}:" if self.value else ""
        return f"{source}:{self.line}: {self.field}:{value} {self.text}; {self.remedy}"


class PolicyError(BadInputError):
    """A rejected policy file. `problems` has all problems in the order of the file."""

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        self.source = source
        self.problems = tuple(sorted(problems, key=lambda problem: problem.line))
        super().__init__("\n".join(problem.render(source) for problem in self.problems))


def suggest(name: str, known: Iterable[str]) -> str:
    """Suggest a replacement for an unknown name."""
    names = sorted(known)
    close = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=1, cutoff=0.6)
    if close:
        return f"did you mean {next(n for n in names if n.lower() == close[0])}?"
    return f"there are {', '.join(names)}" if names else "the plugin has no arguments"


class PolicySource:
    """The reader of one file, with the `problems` found so far and the `lines` of the fields read so far."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.problems: list[Problem] = []
        self.lines: dict[str, int] = {}
        self._lines_above = 0

    def inner(self, node: yaml.ScalarNode) -> yaml.Node:
        """Return the document that a text in this file contains (as in a ConfigMap). Lines count from the file's start.

        Raises:
            PolicyError: The text is empty or not YAML.
        """
        if node.style in ("|", ">"):
            self._lines_above = node.start_mark.line + 1
        return self.compose(node.value)

    def line_of(self, node: yaml.Node) -> int:
        """Return the line at which a node begins, from 1."""
        return self._lines_above + node.start_mark.line + 1

    def compose(self, text: str) -> yaml.Node:
        """Return the file's only document.

        Raises:
            PolicyError: The file is empty, has several documents or is not YAML.
        """
        try:
            nodes = compose(text)
        except DocumentError as error:
            self.note(self._lines_above + error.line, "file", "", error.problem, error.remedy)
        else:
            if len(nodes) == 1:
                return nodes[0]
            if nodes:
                line = nodes[1].start_mark.line + 1
                remedy = "keep one document in the file; manifests are checked with `lint POLICY --queues FILE`"
                self.note(self._lines_above + line, "file", "", "a second document", remedy)
            else:
                self.note(1, "file", "", "empty", "write at least actions and tiers")
        raise PolicyError(self.name, self.problems)

    def note(self, line: int, field: str, value: str, text: str, remedy: str) -> None:
        """Record a problem."""
        self.problems.append(Problem(line, field, value, text, remedy))

    def refuse(self, node: yaml.Node, field: str, value: str, text: str, remedy: str) -> None:
        """Record a problem with the value of a node."""
        self.note(self.line_of(node), field, value, text, remedy)

    def entries(self, node: yaml.Node | None, field: str) -> Iterator[tuple[str, yaml.Node]]:
        """Yield the entries of a mapping. If the node is not a mapping, record a problem and yield nothing."""
        if node is None:
            return
        if not isinstance(node, yaml.MappingNode):
            self.refuse(
                node, field or "file", "", f"a mapping is expected here, this is {_kind_of(node)}", "write key: value"
            )
            return
        seen: set[str] = set()
        for key_node, value in node.value:
            key = str(key_node.value)
            inner = f"{field}.{key}" if field else key
            self.lines[inner] = self.line_of(key_node)
            if key in seen:
                self.refuse(key_node, inner, "", "written twice", "keep one")
                continue
            seen.add(key)
            yield key, value

    def items(self, node: yaml.Node | None, field: str) -> Iterator[tuple[str, yaml.Node]]:
        """Yield the items of a list with their fields.

        If the node is not a list, record a problem and yield nothing.
        """
        if node is None or _is_null(node):
            return
        if not isinstance(node, yaml.SequenceNode):
            self.refuse(
                node,
                field,
                "",
                f"a list is expected here, this is {_kind_of(node)}",
                "write one item a line, after a dash",
            )
            return
        for index, item in enumerate(node.value):
            inner = f"{field}[{index}]"
            self.lines[inner] = self.line_of(item)
            yield inner, item

    def value(self, node: yaml.Node, field: str, rule: Argument) -> Any:
        """Return the value of a node. If the value does not fit `rule`, record a problem and return None."""
        loader = yaml.SafeLoader("")
        try:
            read = loader.construct_object(node, deep=True)
        except (yaml.YAMLError, ValueError, AttributeError) as error:
            # PyYAML fails in this way on `!!timestamp soon`
            why = f"its tag {node.tag} does not fit" if isinstance(error, AttributeError) else error
            self.refuse(node, field, "", f"cannot be read: {why}", f"write for example {_EXAMPLES[rule.kind]}")
            return None
        finally:
            loader.dispose()
        if not _fits(read, rule):
            shown = str(node.value) if isinstance(node, yaml.ScalarNode) else _kind_of(node)
            quoted = " without quotes" if isinstance(read, str) and rule.kind in (INT, FLOAT, BOOL) else ""
            usual = _TEXTS.get(field.rpartition(".")[2], _EXAMPLES[rule.kind])
            example = f"{{Job: {rule.values[-1]}}}" if rule.values else (*rule.choices, usual)[0]
            self.refuse(node, field, shown, f"must be {rule.wording}", f"write for example {example}{quoted}")
            return None
        if rule.kind in (INT, FLOAT) and not abs(read) <= LARGEST:
            self.refuse(node, field, str(node.value), f"must be at most {LARGEST}", "write a smaller number")
            return None
        return read


_TYPES: dict[str, tuple[type, ...]] = {
    INT: (int,), FLOAT: (int, float), BOOL: (bool,), TEXT: (str,), DURATION: (str,), MAPPING: (dict,),
    RULES: (list,),
}  # fmt: skip


def _fits(read: Any, rule: Argument) -> bool:
    value: Any = read
    if not isinstance(read, _TYPES[rule.kind]) or (isinstance(read, bool) and rule.kind != BOOL):
        return False
    if rule.kind in (TEXT, DURATION):
        return (not rule.choices or value in rule.choices) and (rule.kind == TEXT or bool(_DURATION.fullmatch(value)))
    if rule.kind == RULES:
        pairs = [pair for item in value for pair in (item.items() if isinstance(item, dict) else [(None, None)])]
        return all(isinstance(text, str) for pair in pairs for text in pair) and all(value)
    if rule.values:
        return all(isinstance(key, str) and item in rule.values for key, item in value.items())
    if rule.minimum is None:
        return True
    return bool(value > rule.minimum if rule.exclusive else value >= rule.minimum)


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _kind_of(node: yaml.Node) -> str:
    if _is_null(node):
        return "nothing"
    if isinstance(node, yaml.CollectionNode):
        return "a mapping" if isinstance(node, yaml.MappingNode) else "a list"
    return "a single value"
