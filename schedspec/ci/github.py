"""Results in the words of GitHub Actions: a step summary, annotations on lines of features, outputs of a step.

Pure: texts in, texts out. A workflow needs no permission for any of it, so it works on pull requests from forks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import PurePosixPath

from .results import Case, Results

ANNOTATIONS = 10
"""GitHub shows so many of a kind a step."""
SUMMARY_BYTES = 900 << 10
"""GitHub refuses a summary of more than 1 MiB."""
_STORY_LINES = 80


def annotate(results: Results, prefix: str = "") -> Iterator[str]:
    """`::error …` for the lines that failures blame, ten at most; then how many more there are.

    `prefix` is the folder of the run below the repository's root.
    """
    blamed = [(case, place) for case in results.bad for place in case.places]
    for case, place in blamed[:ANNOTATIONS]:
        at = {"file": str(PurePosixPath(prefix) / place.path), "line": str(place.line), "title": case.name}
        yield _command("error", place.text or case.text, at)
    if len(blamed) > ANNOTATIONS:
        yield _command("notice", f"{len(blamed) - ANNOTATIONS} more failures are in the step summary", {})


def _command(name: str, text: str, properties: Mapping[str, str]) -> str:
    said = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {said}::{_data(text)}" if said else f"::{name}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def outputs(results: Results, report: str, page: str = "") -> str:
    """Lines for `$GITHUB_OUTPUT`: verdict, passed, failed, errors, skipped, report, page."""
    said = {
        "verdict": results.verdict,
        "passed": results.count("passed"),
        "failed": results.count("failed"),
        "errors": results.count("error"),
        "skipped": results.count("skipped"),
        "report": report.replace("\n", " "),
        "page": page.replace("\n", " "),
    }
    return "".join(f"{key}={value}\n" for key, value in said.items())


def summary(results: Results, title: str = "schedspec") -> str:
    """Markdown: the verdict, what failed and why, then every feature file. Below GitHub's limit, whatever fails."""
    head = [f"## {title}: {headline(results)}", ""]
    table = ["| feature | passed | failed | seconds |", "| --- | ---: | ---: | ---: |"]
    for group, found in groupby(sorted(results.cases, key=lambda case: case.group), key=lambda case: case.group):
        cases = list(found)
        bad = sum(case.verdict in ("failed", "error") for case in cases)
        passed = sum(case.verdict == "passed" for case in cases)
        table.append(f"| `{_cell(group)}` | {passed} | {bad or ''} | {sum(case.seconds for case in cases):.1f} |")
    room = SUMMARY_BYTES - len("\n".join([*head, *table]).encode())
    stories: list[str] = []
    bad_ones = results.bad
    for number, case in enumerate(bad_ones):
        story = _story(case)
        room -= len(story.encode()) + 1
        if room < 0:
            stories.append(f"… and {len(bad_ones) - number} more failures, which the uploaded report has\n")
            break
        stories.append(story)
    return "\n".join([*head, *stories, *table, ""])


def headline(results: Results) -> str:
    """`12 scenarios passed in 34 s`, `2 of 12 scenarios failed`."""
    judged = len(results.cases) - results.count("skipped")
    if results.bad:
        return f"{len(results.bad)} of {judged} scenarios failed"
    if not judged:
        return "no scenario was run"
    return f"{judged} scenario{'' if judged == 1 else 's'} passed in {results.seconds:.0f} s"


def _story(case: Case) -> str:
    lines = case.text.splitlines()
    if len(lines) > _STORY_LINES:
        lines = [*lines[:_STORY_LINES], f"… {len(lines) - _STORY_LINES} more lines"]
    fence = "`" * max(3, 1 + max((_run(line) for line in lines), default=0))
    where = f"<code>{_html(str(case.places[0]))}</code> " if case.places else ""
    where += f"(<code>report.html#{_html(case.anchor)}</code>) " if case.anchor else ""
    body = "\n".join(lines)
    return f"<details open><summary>{where}{_html(case.name)}</summary>\n\n{fence}text\n{body}\n{fence}\n\n</details>\n"


def _run(line: str) -> int:
    """The longest run of backticks in a line: what fences it must have more."""
    return max((len(list(run)) for tick, run in groupby(line) if tick == "`"), default=0)


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
