"""Complete a line of a feature in an editor: sentences after a keyword, names within quotes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from gherkin.dialect import Dialect

_LANGUAGE = re.compile(r"\A\s*#\s*language\s*:\s*([\w-]+)")
_QUOTED = re.compile(r'"([^"\n]*)"')
_PLACEHOLDER = re.compile(r"\{(\w+)(?::\w+)?\}")


class Completion(NamedTuple):
    """A text that an editor offers, and where it begins in the line."""

    label: str
    snippet: str
    """The text with `${1:name}` for each placeholder."""
    start: int


class Sentence(NamedTuple):
    """A sentence of the catalogue: `given`, `when`, `then` or empty for any, and its pattern."""

    type: str
    pattern: str


def completions(text: str, line: int, column: int, sentences: Iterable[Sentence]) -> list[Completion]:
    """Return what could stand at a place of a feature.

    Args:
        text: The feature.
        line: Number of the line, from 0.
        column: Number of characters before the cursor.
        sentences: The known sentences.
    """
    lines = text.splitlines()
    before = lines[line][:column] if line < len(lines) else ""
    if before.count('"') % 2:
        start = before.rindex('"') + 1
        written = before[start:]
        return [Completion(name, name, start) for name in names(text) if name.startswith(written) and name != written]
    dialect = Dialect.for_name(found[1] if (found := _LANGUAGE.match(text)) else "en")
    types = _types(lines[: line + 1], dialect) if dialect is not None else []
    if not types:
        return []
    kind, start = types[-1]
    written = before[start:].strip().lower()
    return [
        Completion(sentence.pattern, _snippet(sentence.pattern), start)
        for sentence in sentences
        if sentence.type in ("", kind) and all(word in sentence.pattern.lower() for word in written.split())
    ]


def names(text: str) -> list[str]:
    """Return the names in a feature, sorted: in quotes, and in the first column of its tables."""
    found = set(_QUOTED.findall(text)) | {cells[0] for cells in _rows(text.splitlines()) if cells}
    return sorted(name for name in found if name.strip())


def _rows(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the cells of each row of a table without its header."""
    in_table = False
    for line in lines:
        is_row = line.strip().startswith("|")
        if is_row and in_table:
            yield [cell.strip() for cell in line.strip().strip("|").split("|")]
        in_table = is_row


def _types(lines: Sequence[str], dialect: Dialect) -> list[tuple[str, int]]:
    """Return, for the sentences of these lines up to a last line that is one, their types and where their text begins.

    `And` has the type of the sentence before it.
    """
    keywords = {
        **dict.fromkeys(dialect.given_keywords, "given"),
        **dict.fromkeys(dialect.when_keywords, "when"),
        **dict.fromkeys(dialect.then_keywords, "then"),
        **dict.fromkeys((*dialect.and_keywords, *dialect.but_keywords), ""),
    }
    found: list[tuple[str, int]] = []
    for line in lines:
        indent = len(line) - len(line.lstrip())
        word = next((word for word in sorted(keywords, key=len, reverse=True) if line.lstrip().startswith(word)), "")
        if word:
            found.append((keywords[word] or (found[-1][0] if found else "given"), indent + len(word)))
        elif line is lines[-1]:
            return []
    return found


def _snippet(pattern: str) -> str:
    number = iter(range(1, 100))
    return _PLACEHOLDER.sub(lambda part: f"${{{next(number)}:{part[1]}}}", pattern.replace("$", "\\$"))
