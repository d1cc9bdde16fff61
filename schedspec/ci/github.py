"""Format the results of a run for GitHub Actions: a step summary, annotations on lines of features, step outputs.

The summary fits on one screen: the verdict and a table of the failures; the stories and the features are folded below.

This module is pure: it maps texts to texts. A workflow needs no permission for these outputs, so they work on pull
requests from forks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePosixPath
from urllib.parse import quote

from ..results import FeatureLine, Result
from .joined import Suite

ANNOTATIONS = 10
"""Maximum number of annotations of one kind that GitHub shows for a step."""
SUMMARY_BYTES = 900 << 10
"""GitHub refuses a summary of more than 1 MiB."""
_STORY_LINES = 80
_ROWS = 20
"""Failures in the table; all of them are in the folded stories."""
_CELL = 240


def annotate(suite: Suite, prefix: str = "") -> Iterator[str]:
    """Yield one `::error …` command for each line that a failure names: at most ten, then the number of further ones.

    `prefix` is the folder of the run, relative to the repository's root.
    """
    named = [(case, place) for case in suite.bad for place in case.places]
    for case, place in named[:ANNOTATIONS]:
        at = {"file": str(PurePosixPath(prefix) / place.path), "line": str(place.line), "title": case.name}
        because = f"\n{case.because}" if case.because and place is case.places[0] else ""
        yield _command("error", (place.text or case.text) + because, at)
    if len(named) > ANNOTATIONS:
        yield _command("notice", f"{len(named) - ANNOTATIONS} more failures are in the step summary", {})


def _command(name: str, text: str, properties: Mapping[str, str]) -> str:
    options = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {options}::{_data(text)}" if options else f"::{name}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def outputs(suite: Suite, report: str, page: str = "") -> str:
    """Return the lines for `$GITHUB_OUTPUT`: verdict, passed, failed, errors, skipped, report, page."""
    values = {
        "verdict": suite.verdict,
        "passed": len(suite.passed),
        "failed": sum(result.verdict == "failed" for result in suite.bad),
        "errors": sum(result.verdict == "error" for result in suite.bad),
        "skipped": len(suite.skipped),
        "report": report.replace("\n", " "),
        "page": page.replace("\n", " "),
    }
    return "".join(f"{key}={value}\n" for key, value in values.items())


@dataclass(frozen=True, slots=True)
class Links:
    """Addresses that work in the step summary; empty outside of a workflow."""

    sources: str = ""
    """The address of the folder of the run at this commit."""
    artifacts: str = ""
    """The address of the files that this workflow run has uploaded."""

    @classmethod
    def of(cls, variables: Mapping[str, str], prefix: str = "") -> Links:
        """Return the addresses that a workflow's variables name. `prefix` as in `annotate`."""
        names = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_SHA", "GITHUB_RUN_ID")
        server, repository, commit, run = (variables.get(name, "") for name in names)
        if not (server and repository and commit):
            return cls()
        folder = PurePosixPath(prefix) if prefix else PurePosixPath()
        sources = f"{server}/{repository}/blob/{commit}/{folder if str(folder) != '.' else ''}".rstrip("/")
        return cls(sources, f"{server}/{repository}/actions/runs/{run}#artifacts" if run else "")

    def place(self, place: FeatureLine) -> str:
        """Return `path:line` in Markdown, as a link if the address is known."""
        text = f"`{_cell(str(place))}`"
        return f"[{text}]({self.sources}/{quote(place.path)}#L{place.line})" if self.sources else text


def summary(suite: Suite, title: str = "schedspec", links: Links = Links()) -> str:
    """Return the summary in Markdown: verdict, failures, folded stories and features. Below GitHub's size limit."""
    report = f" [Download the report]({links.artifacts})" if links.artifacts and suite.results else ""
    head = [f"## {title}: {headline(suite)}", "", *_failures(suite.bad, links, report)]
    table = ["| feature | passed | failed | skipped | seconds |", "| --- | ---: | ---: | ---: | ---: |"]
    for file, found in groupby(sorted(suite.results, key=lambda case: case.feature), key=lambda case: case.feature):
        of_file = Suite(tuple(found))
        counts = (len(of_file.passed), len(of_file.bad) or "", len(of_file.skipped) or "")
        table.append(f"| `{_cell(file)}` | {' | '.join(map(str, counts))} | {of_file.seconds:.1f} |")
    features = _folded(f"{_count(len(suite.results), 'scenario')} by feature", table) if suite.results else []
    free_bytes = SUMMARY_BYTES - len("\n".join([*head, *features]).encode()) - 200
    stories: list[str] = []
    failures = suite.bad
    for number, case in enumerate(failures):
        story = _story(case)
        free_bytes -= len(story.encode()) + 1
        if free_bytes < 0:
            stories.append(f"… and {len(failures) - number} more failures: see the uploaded report\n")
            break
        stories.append(story)
    texts = _folded("What happened", stories) if stories else []
    return "\n".join([*head, *texts, *features, ""])


def _failures(bad: Sequence[Result], links: Links, report: str) -> list[str]:
    """Return the table of failures, cut to one screen, with a reference to the remaining ones."""
    if not bad:
        return [report.strip(), ""] if report else []
    rows = ["| scenario | expected | seen | because |", "| --- | --- | --- | --- |"]
    for case in bad[:_ROWS]:
        where = f"{links.place(case.places[0])} " if case.places else ""
        seen = case.seen or (case.places[0].text if case.places else "") or next(iter(case.text.splitlines()), "")
        texts = (_html(_cut(text)) for text in (case.name, case.expected, seen, case.because))
        name, *cells = (_cell(text) for text in texts)
        rows.append(f"| {where}{name} | {' | '.join(cells)} |")
    more = [f"… and {len(bad) - _ROWS} more: see the stories below."] if len(bad) > _ROWS else []
    return [*rows, "", *more, *([report.strip()] if report else []), ""]


def _folded(title: str, lines: Sequence[str]) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", *lines, "", "</details>", ""]


def _cut(text: str) -> str:
    """Shorten a text to one cell of the table; the story has the full text."""
    plain = " ".join(text.split())
    return plain if len(plain) <= _CELL else f"{plain[: _CELL - 1]}…"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def headline(suite: Suite) -> str:
    """Return the verdict in one line: `12 scenarios passed in 34 s, 3 skipped`, `2 of 12 scenarios failed`.

    A scenario that could not be judged, and a file that could not be read, "did not run".
    """
    skipped, unrun = len(suite.skipped), [result for result in suite.bad if result.verdict == "error"]
    failed, judged = len(suite.bad) - len(unrun), len(suite.results) - skipped - len(unrun)
    parts = [f"{len(unrun)} did not run"] if unrun else []
    parts += [f"{skipped} skipped"] if skipped else []
    if failed:
        return ", ".join((f"{failed} of {_count(judged, 'scenario')} failed", *parts))
    if judged:
        return ", ".join((f"{_count(judged, 'scenario')} passed in {suite.seconds:.0f} s", *parts))
    return ", ".join(parts if unrun else ("no scenario was run", *parts))


def _story(case: Result) -> str:
    lines = case.text.splitlines()
    if len(lines) > _STORY_LINES:
        lines = [*lines[:_STORY_LINES], f"… {len(lines) - _STORY_LINES} more lines"]
    fence = "`" * max(3, 1 + max((_run(line) for line in lines), default=0))
    where = f"<code>{_html(str(case.places[0]))}</code> " if case.places else ""
    where += f"(in the report: <code>#{_html(case.anchor)}</code>) " if case.anchor else ""
    body = "\n".join(lines)
    return f"<details><summary>{where}{_html(case.name)}</summary>\n\n{fence}text\n{body}\n{fence}\n\n</details>\n"


def _run(line: str) -> int:
    """Return the longest run of backticks in a line; the fence of a code block must be longer."""
    return max((len(list(run)) for tick, run in groupby(line) if tick == "`"), default=0)


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
