"""Run pytest's collection in a separate process: problems and scenarios for `check`, own sentences for `steps`.

This module is also a plugin of that process: it writes the result of the collection into a JSON file.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from .. import distribution
from ..gherkin import catalogue
from ..gherkin.collection import UNSAVED
from ..plugin.gating import LACKS
from ..plugin.run_plugin import OPTIONS
from ..schedulers.pdeathsig import dying_with_us
from ..terminal import on_stderr
from . import testing
from .answers import count

VARIABLE = "SCHEDSPEC_COLLECTED"
"""Environment variable with the path of that file."""
_FRAME = re.compile(r'  File "(?P<file>[^"]+)", line (?P<line>\d+)')
_INTERRUPTED = re.compile(r"^\S.*:\d+: KeyboardInterrupt$", re.MULTILINE)
_UNSAVED, _PROGRESS = "unsaved.json", "progress"
"""Names of files beside it: the unsaved texts, and as many bytes as files and folders have been collected."""
_TICK = 1.0
"""Seconds between two lines of progress."""


class Collected(msgspec.Struct):
    """Result of a collection."""

    scenarios: int = 0
    skipped: dict[str, int] = {}
    """What the scheduler lacks → the number of scenarios that are skipped for it."""
    failures: list[str] = []
    sentences: list[catalogue.CatalogueEntry] = []
    """The project's own sentences."""
    misnamed: list[str] = []
    """The project's files that no run reads."""


def collect(
    paths: Sequence[Path], *options: str, unsaved: Mapping[str, str] | None = None
) -> tuple[Collected | None, str]:
    """Return the result of the collection of these paths, with these options of pytest, and pytest's output.

    Paths in several folders of ours are collected one folder after the other, each with its own ini file. The result is
    None if pytest refused the run. `unsaved` are texts by path, which are judged in place of the files.
    """
    joined, printed = Collected(), ""
    for _, words in testing.runs_of([*map(str, paths), *options]):
        found, text = _collect(words, unsaved or {})
        printed += text
        if found is None:
            return None, printed
        joined.scenarios += found.scenarios
        joined.skipped = dict(Counter(joined.skipped) + Counter(found.skipped))
        joined.failures += found.failures
        joined.misnamed += found.misnamed
        joined.sentences += [entry for entry in found.sentences if entry not in joined.sentences]
    return joined, printed


def error_in(printed: str) -> str:
    """Return the error in the output of a run that pytest refused, without what it collected before."""
    lines = [line.removeprefix("INTERNALERROR> ") for line in printed.splitlines()]
    frames = [(number, frame) for number, line in enumerate(lines) if (frame := _FRAME.match(line))]
    if of_project := [(number, frame) for number, frame in frames if distribution.is_of_project(Path(frame["file"]))]:
        number, frame = of_project[-1]
        raised = next((line for line in lines[number + 1 :] if line and not line.startswith(" ")), "an error")
        return f"{frame['file']}:{frame['line']}: {raised}\n  do next: correct it; pytest could not collect"
    if found := _INTERRUPTED.search(printed):
        return f"{found[0]}\n  do next: correct it; pytest could not collect"
    do_next = "a conftest or a plugin called os._exit or sys.exit, or raised KeyboardInterrupt"
    ended = f"pytest ended before it collected everything\n  do next: {do_next}"
    begins = re.search("ERROR|Error", printed)
    return printed[max(printed.find("ERROR"), 0) :].strip().removeprefix("ERROR: ") if begins else ended


def problems(failure: str) -> Iterator[dict[str, Any]]:
    """Yield the problems of a failure.

    A problem is `file:line: text`, continued by indented lines. A failure without such a line is one problem.
    """
    start = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+): (?P<text>.*(?:\n[ \t].*)*)", re.MULTILINE)
    places = list(start.finditer(failure))
    for place in places:
        yield {"kind": "error", "file": place["file"], "line": int(place["line"]), "text": place["text"]}
    if not places:
        yield {"kind": "error", "file": "", "line": 0, "text": failure}


def _collect(words: Sequence[str], unsaved: Mapping[str, str]) -> tuple[Collected | None, str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-n0"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "collected.json"
        file.with_name(_UNSAVED).write_bytes(msgspec.json.encode(unsaved))
        command += ["-p", "schedspec.plugin", "-p", __name__, "--runs=1", *words]
        status, printed = _run(dying_with_us(*command), {**distribution.environment(), VARIABLE: str(file)}, file)
        found = msgspec.json.decode(file.read_bytes(), type=Collected) if file.is_file() else None
        ends = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        with_errors = (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.TESTS_FAILED)
        if status not in (with_errors if found is not None and found.failures else ends):
            found = None
    return found, printed


def _run(command: Sequence[str], environment: Mapping[str, str], file: Path) -> tuple[int, str]:
    """Run a collection, and show on a terminal how far it is; return its status and output."""
    lines, began, printed = on_stderr(), time.monotonic(), None
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            while printed is None:
                try:
                    printed = process.communicate(timeout=_TICK)[0]
                except subprocess.TimeoutExpired:
                    if sys.stderr.isatty():
                        number = count(_read_so_far(file), "file or folder", "files and folders")
                        lines.show(f"collecting: {number} read, {time.monotonic() - began:.0f} s")
        except BaseException:
            process.kill()
            raise
        finally:
            lines.close()
    return process.returncode, printed


def _read_so_far(file: Path) -> int:
    progress = file.with_name(_PROGRESS)
    return progress.stat().st_size if progress.exists() else 0


_found = Collected()


def pytest_configure(config: pytest.Config) -> None:
    """Judge the unsaved texts in place of their files."""
    texts = msgspec.json.decode(Path(os.environ[VARIABLE]).with_name(_UNSAVED).read_bytes(), type=dict[str, str])
    config.stash[UNSAVED] = {Path(path): text for path, text in texts.items()}


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Store the failure of a file that could not be collected; one byte for each report shows the progress."""
    with Path(os.environ[VARIABLE]).with_name(_PROGRESS).open("ab") as progress:
        progress.write(b".")
    if report.failed:
        _found.failures.append(str(report.longrepr))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Store the number of scenarios and the project's own sentences."""
    _found.scenarios = sum(item.path.suffix == ".feature" for item in session.items)
    marks = (mark.kwargs.get("reason", "") for item in session.items for mark in item.iter_markers("skip"))
    _found.skipped = dict(Counter(reason for reason in marks if LACKS in reason))
    _found.sentences = catalogue.own_sentences()
    _found.misnamed = session.config.stash[OPTIONS].misnamed


def pytest_sessionfinish() -> None:
    """Write the result, also after failures."""
    Path(os.environ[VARIABLE]).write_bytes(msgspec.json.encode(_found))
