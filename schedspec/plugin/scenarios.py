"""The record of each scenario that runs: kept on its item, judged at its end, told when it fails."""

from __future__ import annotations

import hashlib
import re
import time
from pathlib import Path
from typing import Any

import pytest

from ..api.errors import HarnessError, Unmet
from ..ci.results import PLACE
from ..clusters import ClusterError
from ..gherkin import bdd
from ..report import dump, failure
from ..scenario.run import SCENARIO_RUN, ScenarioRun, SentenceRun

READABLE = (Unmet, HarnessError, ClusterError)
"""Errors whose text says it all. Anything else is a defect of a step, and keeps its traceback."""


_MOST = 120
_WORDS = re.compile(r"[\w.]+(?:[ -][\w.]+)*")


class JudgedError(HarnessError):
    """Every sentence was true, and something happened that must never happen."""


def begin(item: pytest.Item, feature: Any, scenario: Any, out: Path) -> ScenarioRun:
    """Start the record of an item."""
    path = Path(feature.filename)
    folder = out / "scenarios" / folder_name(path.parent.name, path.stem, item.name)
    run = ScenarioRun(item, feature.name, path, scenario.name, scenario.line_number, folder)
    item.stash[SCENARIO_RUN] = run
    item.user_properties.append((PLACE, run.where))
    return run


def running(item: pytest.Item, out: Path) -> ScenarioRun:
    """The record of an item; a test that is no scenario gets one when it asks for the world."""
    if SCENARIO_RUN not in item.stash:
        path, line, name = item.location
        folder = out / "scenarios" / folder_name(name)
        item.stash[SCENARIO_RUN] = ScenarioRun(item, "", item.config.rootpath / path, name, (line or 0) + 1, folder)
    return item.stash[SCENARIO_RUN]


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
        dump.write(run, problem)
        text = failure.tell(run, problem)
        report.longrepr = bdd.plain_failure(text, failure.headline(run, problem), *_place(run))
        item.user_properties.append(("schedspec-files", str(run.folder)))
        report.user_properties = item.user_properties
    if call.when == "teardown":
        run.ended = time.monotonic()
        item.config.hook.pytest_schedspec_ended(running=run)


def _place(run: ScenarioRun) -> tuple[str, int]:
    path, _, line = run.where.rpartition(":")
    return path, int(line)


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
