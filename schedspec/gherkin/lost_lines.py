"""Find misspelt lines of a feature file that Gherkin would silently ignore.

Where a description is allowed, Gherkin reads such lines as prose: `Scenaro: …` and all sentences below it never run.
Prose may contain colons and begin with any word. A line is rejected if it is a misspelt keyword, if it is a known
sentence without a keyword or with another first word, or if a table or a text block is below it: prose has none.
Elsewhere such lines end the parsing: `read` repairs them and parses again, so that all problems of a file are reported
at once.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from . import documents

_HEADING = re.compile(r"(?P<words>[^\W\d_]+(?: [^\W\d_]+){0,2}) ?(?P<colon>[:：])")
_LANGUAGE = re.compile(r"\A\s*#\s*language\s*:\s*([\w-]+)")
_FOREIGN = ("en", "zh-CN")
"""Languages whose keywords are recognised in a file of any language."""


_LAST_CELL = re.compile(r".*(?<!\\)(?:\\\\)*\|")
"""A row up to its last | that is not escaped."""
_ARGUMENTS = {"|": "a table", '"""': "a text block", "```": "a text block"}
"""How the arguments of steps begin."""
_PASSES = 50
"""Maximum number of reported lines without a keyword in one file."""


def read(text: str) -> tuple[documents.Document | None, list[tuple[int, str]]]:
    """Return the document, parsed with its unreadable lines repaired, and line and text of each problem."""
    lines = text.splitlines()
    problems: list[tuple[int, str]] = []
    language = _LANGUAGE.match(text)
    own = documents.keywords_of(language[1] if language else "en")
    for _ in range(_PASSES):
        try:
            return documents.document_of("\n".join(lines)), problems
        except documents.UnreadableFeatureError as unreadable:
            (number, problem), *more = unreadable.problems
            line = lines[number - 1] if number <= len(lines) else ""
            repaired, hint = _repaired(line, own)
            problems.append((number, f"{problem}: {line.strip()}{hint}" if line.strip() else problem))
            if not line.strip() or line == repaired:
                return None, [*problems, *more]
            lines[number - 1] = repaired
    return None, problems


def _repaired(line: str, own: documents.Keywords) -> tuple[str, str]:
    """Return the line with its keyword repaired, or as a comment if no keyword is near; and a hint for the author."""
    text = line.strip()
    found = _HEADING.match(text)
    if found is not None and (near := _nearest(found["words"], own.headings)):
        return f"{near}:{text[found.end() :]}", f"\n    is {near}: meant?"
    first, _, rest = text.partition(" ")
    if first not in own.steps and (steps := difflib.get_close_matches(first, own.steps, n=1, cutoff=0.6)):
        return f"{steps[0]} {rest}", f"\n    is {steps[0]} meant?"
    return f"# {text}" if not text.startswith("#") else line, ""


def find(
    document: documents.Document, lines: Sequence[str], is_sentence: Callable[[str], bool]
) -> Iterator[tuple[int, str]]:
    """Yield line and text of each problem in the descriptions and behind the last cells of a file."""
    for number in documents.table_lines(document):
        if lost := _LAST_CELL.sub("", lines[number - 1]).strip():
            yield number, f"what follows the last | of a row is not read: {lost}; end the row with |"
    own = documents.keywords_of(document.language)
    for part in (document, *documents.parts_of(document)):
        above, refused = "", False  # one line is refused for all arguments below it
        for number, line in _description(part, lines):
            meant = _heading(line, above, document.language, own) or _sentence(line, own, is_sentence)
            argument = next((what for mark, what in _ARGUMENTS.items() if line.startswith(mark)), "")
            if argument and not refused:
                meant = f"{argument} belongs to a step: does the line above it lack its keyword?"
            if meant:
                yield number, f"this line is a description, and is not run: {line}\n    {meant}"
            above, refused = line, refused or bool(meant)


def _description(part: documents.Document | documents.Part, lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines of a description with their numbers, without comments."""
    wanted = [line.strip() for line in part.description.splitlines() if line.strip()]
    at = part.location.line
    for text in wanted:
        while at < len(lines) and lines[at].strip() != text:
            at += 1
        at += 1
        yield at, text


def _heading(line: str, above: str, language: str, own: documents.Keywords) -> str:
    """Return a remedy for a line that is nearly a keyword with a colon; empty for any other line."""
    found = _HEADING.match(line)
    if found is None or (line[0].islower() and above and above[-1] not in ".:!?"):  # the middle of a sentence
        return ""
    words, colon = found["words"], found["colon"]
    if own.headings.get(words) == "examples" or (words.removesuffix("s") in own.headings and words not in own.headings):
        return ""  # usual in prose
    if words in own.headings:
        remedy = "write an ASCII colon, as in" if colon != ":" else "remove the blank before the colon, as in"
        return f"{remedy} {words}:" if line[found.start("colon") - 1] == " " or colon != ":" else ""
    near = _nearest(words, own.headings)
    if near:
        return f"is {near}: meant?"
    for other in _FOREIGN:
        theirs = documents.keywords_of(other).headings
        if other != language and (near := _nearest(words, theirs)):
            comment, same = f"# language: {other}", own.usual(theirs[near])
            return f"{near}: is a keyword of {other}: begin the file with {comment!r}, or write {same}:"
    return ""


def _nearest(words: str, keywords: Iterable[str]) -> str:
    """Return the keyword that the author probably meant. A Chinese keyword of two characters must match exactly."""
    best, similarity = "", 0.0
    for keyword in keywords:
        if words.count(" ") not in (keyword.count(" "), 0) or (not keyword.isascii() and len(keyword) < 3):
            score = float(words == keyword)
        else:
            plain, meant = words.replace(" ", "").casefold(), keyword.replace(" ", "").casefold()
            score = difflib.SequenceMatcher(None, plain, meant).ratio()
        if score > similarity and score >= (0.85 if keyword.isascii() else 0.75):
            best, similarity = keyword, score
    return best


def _sentence(line: str, own: documents.Keywords, is_sentence: Callable[[str], bool]) -> str:
    """Return a remedy for a sentence in a description; empty if the line is not a sentence."""
    for keyword in ("*", *own.steps):
        if line.startswith(keyword) and is_sentence(line.removeprefix(keyword).strip()):
            return f"no step is allowed here: is the line {own.usual('scenario')}: above it missing, or misspelt?"
    usual = f"begin the line with a keyword: {', '.join(dict.fromkeys(own.steps))}"
    if is_sentence(line):
        return usual
    first, _, rest = line.partition(" ")
    if is_sentence(rest.strip()):
        near = difflib.get_close_matches(first, own.steps, n=1, cutoff=0.6)
        return f"is the keyword {near[0]} meant?" if near else usual
    longest = max(map(len, own.steps), default=0) + 1
    spaced = line[:longest].isascii()  # a keyword of Chinese or Japanese has no blank behind it
    return usual if not spaced and any(is_sentence(line[end:]) for end in range(1, longest + 1)) else ""
