"""Lines of a feature file that no keyword begins, although they were meant to be said.

Where a description may stand Gherkin takes them for prose: `Scenaro: …` and all sentences below it are never run. Prose
may have colons and may begin with any word: a line is refused only where it is a keyword but for its spelling, or where
what follows its first word is a sentence that there is. Elsewhere they end the parsing: `read` goes on without them, so
that all that is wrong with a file is told at once.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from . import bdd

_HEADING = re.compile(r"(?P<words>[^\W\d_]+(?: [^\W\d_]+){0,2}) ?(?P<colon>[:：])")
_LANGUAGE = re.compile(r"\A\s*#\s*language\s*:\s*([\w-]+)")
_FOREIGN = ("en", "zh-CN")
"""Languages whose keywords are known in a file of any language."""


_PASSES = 50
"""How many lines that no keyword begins are told of one file."""


def read(text: str) -> tuple[bdd.Document | None, list[tuple[int, str]]]:
    """The document, read as if its unreadable lines were mended; line and text of what is wrong with each of these."""
    lines = text.splitlines()
    problems: list[tuple[int, str]] = []
    language = _LANGUAGE.match(text)
    own = bdd.keywords_of(language[1] if language else "en")
    for _ in range(_PASSES):
        try:
            return bdd.document_of("\n".join(lines)), problems
        except bdd.UnreadableFeatureError as unreadable:
            (number, told), *more = unreadable.problems
            line = lines[number - 1] if number <= len(lines) else ""
            mended, hint = _mended(line, own)
            problems.append((number, f"{told}: {line.strip()}{hint}" if line.strip() else told))
            if not line.strip() or line == mended:
                return None, [*problems, *more]
            lines[number - 1] = mended
    return None, problems


def _mended(line: str, own: bdd.Keywords) -> tuple[str, str]:
    """A line with the keyword that was meant, and a word on it; as a comment where none is near."""
    text = line.strip()
    found = _HEADING.match(text)
    if found is not None and (near := _nearest(found["words"], own.headings)):
        return f"{near}:{text[found.end() :]}", f"\n    is {near}: meant?"
    first, _, rest = text.partition(" ")
    if first not in own.steps and (steps := difflib.get_close_matches(first, own.steps, n=1, cutoff=0.6)):
        return f"{steps[0]} {rest}", f"\n    is {steps[0]} meant?"
    return f"# {text}" if not text.startswith("#") else line, ""


def find(document: bdd.Document, lines: Sequence[str], is_sentence: Callable[[str], bool]) -> Iterator[tuple[int, str]]:
    """Line and text of what is wrong with the descriptions of a file."""
    own = bdd.keywords_of(document.language)
    for part in (document, *bdd.parts_of(document)):
        above = ""
        for number, line in _description(part, lines):
            meant = _heading(line, above, document.language, own)
            if meant or (meant := _sentence(line, own, is_sentence)):
                yield number, f"this line is a description, and is not run: {line}\n    {meant}"
            above = line


def _description(part: bdd.Document | bdd.Part, lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The lines of a description with their numbers: comments stand between them."""
    wanted = [line.strip() for line in part.description.splitlines() if line.strip()]
    at = part.location.line
    for text in wanted:
        while at < len(lines) and lines[at].strip() != text:
            at += 1
        at += 1
        yield at, text


def _heading(line: str, above: str, language: str, own: bdd.Keywords) -> str:
    """What is to be done with a line that is nearly a keyword with a colon; empty where it is none."""
    found = _HEADING.match(line)
    if found is None or (line[0].islower() and above and above[-1] not in ".:!?"):  # the middle of a sentence
        return ""
    words, colon = found["words"], found["colon"]
    if own.headings.get(words) == "examples" or (words.removesuffix("s") in own.headings and words not in own.headings):
        return ""  # as prose says it
    if words in own.headings:
        wide = "write the colon of ASCII, as in" if colon != ":" else "no blank stands before the colon, as in"
        return f"{wide} {words}:" if line[found.start("colon") - 1] == " " or colon != ":" else ""
    near = _nearest(words, own.headings)
    if near:
        return f"is {near}: meant?"
    for other in _FOREIGN:
        theirs = bdd.keywords_of(other).headings
        if other != language and (near := _nearest(words, theirs)):
            comment, same = f"# language: {other}", own.usual(theirs[near])
            return f"{near}: is a keyword of {other}: begin the file with {comment!r}, or write {same}:"
    return ""


def _nearest(words: str, keywords: Iterable[str]) -> str:
    """The keyword that a person meant. Two signs of Chinese are too few for one of them to be wrong."""
    best, likeness = "", 0.0
    for keyword in keywords:
        if words.count(" ") not in (keyword.count(" "), 0) or (not keyword.isascii() and len(keyword) < 3):
            close = float(words == keyword)
        else:
            plain, meant = words.replace(" ", "").casefold(), keyword.replace(" ", "").casefold()
            close = difflib.SequenceMatcher(None, plain, meant).ratio()
        if close > likeness and close >= (0.85 if keyword.isascii() else 0.75):
            best, likeness = keyword, close
    return best


def _sentence(line: str, own: bdd.Keywords, is_sentence: Callable[[str], bool]) -> str:
    """What is to be done with a sentence that stands in a description; empty where the line is none."""
    for keyword in ("*", *own.steps):
        if line.startswith(keyword) and is_sentence(line.removeprefix(keyword).strip()):
            return f"no step may stand here: is the line {own.usual('scenario')}: above it missing, or misspelt?"
    first, _, rest = line.partition(" ")
    near = difflib.get_close_matches(first, own.steps, n=1, cutoff=0.6)
    return f"is the keyword {near[0]} meant?" if near and is_sentence(rest.strip()) else ""
