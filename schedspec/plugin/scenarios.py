"""The record of each scenario that runs: kept on its item, judged at its end, told when it fails."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ..api.errors import HarnessError, Unmet
from ..api.kinds import Kind
from ..ci.results import PLACE
from ..clusters import ClusterError
from ..gherkin import bdd
from ..observe import view
from ..observe.history import History
from ..report import dump, failure, summary
from ..scenario.run import SCENARIO_RUN, ScenarioRun, SentenceRun

READABLE = (Unmet, HarnessError, ClusterError)
"""Errors whose text says it all. Anything else is a defect of a step, and keeps its traceback."""

RUN = "schedspec_run"
"""The parameter that counts the runs of one scenario, from 1."""

FILES = "schedspec-files"
"""The property of a failed test that names the folder with everything that was seen."""


_MOST = 120
_WORDS = re.compile(r"[\w.]+(?:[ -][\w.]+)*")


class JudgedError(HarnessError):
    """Every sentence was true, and something happened that must never happen."""


def begin(item: pytest.Item, feature: Any, scenario: Any, out: Path) -> ScenarioRun:
    """Start the record of an item."""
    path = Path(feature.filename)
    folder = _empty(out / "scenarios" / folder_name(path.parent.name, path.stem, item.name))
    run = ScenarioRun(item, feature.name, path, scenario.name, scenario.line_number, folder)
    backgrounds = [it for it in (feature.background, scenario.rule and scenario.rule.background) if it]
    told_before = sum(len(it.steps) for it in backgrounds)
    run.planned = [_planned(step, number < told_before) for number, step in enumerate(scenario.steps)]
    run.tags = sorted({*feature.tags, *scenario.tags, *(scenario.rule.tags if scenario.rule else ())})
    run.rule = scenario.rule.name if scenario.rule else ""
    run.example = "-".join(_row(item))
    item.stash[SCENARIO_RUN] = run
    item.user_properties.append((PLACE, run.where))
    return run


def running(item: pytest.Item, out: Path) -> ScenarioRun:
    """The record of an item; a test that is no scenario gets one when it asks for the world."""
    if SCENARIO_RUN not in item.stash:
        path, line, name = item.location
        folder = _empty(out / "scenarios" / folder_name(name))
        item.stash[SCENARIO_RUN] = ScenarioRun(item, "", item.config.rootpath / path, name, (line or 0) + 1, folder)
    return item.stash[SCENARIO_RUN]


def opened(run: ScenarioRun) -> None:
    """The world is there: from now on the sentence that asked for it takes its own time."""
    now = time.monotonic()
    history = run.history
    if history is not None:
        history.opened = now
    for sentence in run.sentences[-1:]:
        if history is not None:
            run.boot_seconds = max(0.0, history.began - sentence.began)
        sentence.began = now


def wait_for_reasons(run: ScenarioRun, seconds: float = 1.0) -> None:
    """Let the scheduler say for whom it evicted: its events come after what is more urgent, and die with the namespace.

    Waits only while one is missing, and for a scheduler of which it is known that it says it.
    """
    history = run.history
    if history is None or run.session is None or not run.session.options.adapter.names_preemptors:
        return
    deadline = time.monotonic() + seconds
    while _unexplained(history) and time.monotonic() < deadline:
        history.wait(len(history), max(0.0, deadline - time.monotonic()))


def _unexplained(history: History) -> bool:
    marked = {version.uid for version in history.versions(Kind.POD) if view.eviction(version.object)}
    if not marked:
        return False
    events = [version.object for version in history.versions(Kind.EVENT)]
    return bool(marked - {(event.get("involvedObject") or {}).get("uid") for event in events if event.get("related")})


def say(item: pytest.Item, step: Any) -> None:
    """A sentence begins."""
    item.stash[SCENARIO_RUN].sentences.append(SentenceRun(step.keyword, step.name, step.line_number, time.monotonic()))


def said(item: pytest.Item, problem: BaseException | None) -> None:
    """It ended, well or with a problem."""
    run = item.stash[SCENARIO_RUN]
    sentence = run.sentences[-1]
    sentence.ended, sentence.verdict = time.monotonic(), "failed" if problem else "passed"
    if problem is not None:
        run.problem = problem
        if not isinstance(problem, READABLE):
            problem.add_note(f"in the sentence: {sentence}\nat {run.where}")


def judge(item: pytest.Item) -> None:
    """Ask the monitors. Raises JudgedError if they found something in a scenario that had passed."""
    run = item.stash[SCENARIO_RUN]
    if run.world is None:
        return
    for found in item.config.hook.pytest_schedspec_judge(running=run):
        run.findings += found or ()
    if run.findings and run.problem is None:
        run.problem = JudgedError("\n".join(run.findings))
        raise run.problem


def explain(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Put the story in the place of a traceback, and close the record after the teardown."""
    run = item.stash.get(SCENARIO_RUN, None)
    if run is None:
        return
    if call.excinfo is not None and isinstance(call.excinfo.value, READABLE):
        problem = call.excinfo.value
        run.problem = run.problem or problem
        with summary.reporting(item.config):
            dump.write(run, problem)
        text = failure.tell(run, problem, cut=item.config.get_verbosity() < 2 and not os.environ.get("CI"))
        report.longrepr = bdd.plain_failure(text, failure.headline(run, problem), *_place(run))
        item.user_properties.append((FILES, str(run.folder)))
        report.user_properties = item.user_properties
    run.known = run.known or str(getattr(report, "wasxfail", ""))
    run.skipped = run.skipped or report.skipped
    if call.when == "teardown":
        run.ended = time.monotonic()
        with summary.reporting(item.config):
            item.config.hook.pytest_schedspec_ended(running=run)
        report.user_properties = list(item.user_properties)


def paint(report: pytest.TestReport) -> None:
    """Give a failure its colours, for the terminal of this process; text elsewhere (JUnit, a pipe) has none."""
    if any(name == FILES for name, _ in report.user_properties):
        bdd.paint(report.longrepr, lambda row, number: failure.colour(row, first=number == 0))


def _row(item: pytest.Item) -> Iterator[str]:
    """The values of the item's row of examples, and which of several runs it is."""
    known = bdd.scenario_of(item)
    if known is not None:
        yield from known[1].values()
    callspec = getattr(item, "callspec", None)
    if callspec is not None and RUN in callspec.params:
        yield f"run {callspec.params[RUN]}"


def _place(run: ScenarioRun) -> tuple[str, int]:
    path, _, line = run.where.rpartition(":")
    return path, int(line)


def _planned(step: Any, background: bool) -> SentenceRun:
    table = [list(map(str, row)) for row in step.datatable.raw()] if step.datatable is not None else []
    said = SentenceRun(step.keyword.strip(), step.name, step.line_number, background=background)
    return replace(said, table=table, doc=step.docstring or "")


def _empty(folder: Path) -> Path:
    """A scenario's folder without what an earlier run of it has left."""
    if folder.is_dir():
        shutil.rmtree(folder, ignore_errors=True)
    return folder


def folder_name(*parts: str) -> str:
    """A scenario's folder, as it is called: letters of every script stay. Different names make different folders.

    What a name has besides words and single spaces, or above 120 bytes, is told apart by a checksum at its end.
    """
    text = "-".join(parts)
    plain = re.sub(r"[^\w.]+", "-", text).strip("-")
    whole = all(_WORDS.fullmatch(part) for part in parts) and len(plain.encode()) <= _MOST
    if whole:
        return plain
    cut = plain.encode()[:_MOST].decode(errors="ignore").rstrip("-")
    return f"{cut}-{hashlib.blake2b(text.encode(), digest_size=3).hexdigest()}"
