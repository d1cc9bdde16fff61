"""Keep the record of each running scenario on its pytest item; judge it at its end and explain its failure."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from .. import distribution
from ..api import clock
from ..api.errors import HarnessError, Unmet
from ..api.kinds import Kind
from ..checks import unplaceable
from ..clusters import ClusterError
from ..gherkin import bdd, collection, plain_failure
from ..observe import view
from ..observe.history import History
from ..report import failure
from ..scenario.run import SCENARIO_RUN, ScenarioRun, SentenceRun
from ..terminal import short_path
from . import summary

READABLE = (Unmet, HarnessError, ClusterError)
"""Errors whose text is complete. Any other error is a defect of a step, and keeps its traceback."""

RUN = "schedspec_run"
"""The parameter that counts the runs of one scenario, from 1."""

FILES = "schedspec-files"
"""The property of a failed test that names the folder with all observations."""


_MAX_BYTES = 120
_WORD = re.compile(r"[\w.]+")
_WORDS = re.compile(r"[\w.]+(?: [\w.]+)*")


RECORDS: pytest.StashKey[bool] = pytest.StashKey()
"""Whether scenarios that pass keep the scheduler's recording."""


class JudgedError(HarnessError):
    """Every sentence passed, but a monitor found a violation."""


def begin(item: pytest.Item, feature: Any, scenario: Any, out: Path) -> ScenarioRun:
    """Start the record of an item."""
    path = Path(feature.filename)
    folder = _empty(out / "scenarios" / folder_name(path.parent.name, path.stem, item.name))
    run = ScenarioRun(item, feature.name, path, scenario.name, scenario.line_number, folder)
    backgrounds = [
        background for background in (feature.background, scenario.rule and scenario.rule.background) if background
    ]
    from_background = sum(len(background.steps) for background in backgrounds)
    run.planned = [_planned(step, number < from_background) for number, step in enumerate(scenario.steps)]
    run.tags = sorted({*feature.tags, *scenario.tags, *(scenario.rule.tags if scenario.rule else ())})
    run.rule = scenario.rule.name if scenario.rule else ""
    run.example = "-".join(_row(item))
    item.stash[SCENARIO_RUN] = run
    return run


def running(item: pytest.Item, out: Path) -> ScenarioRun:
    """Return the record of an item. A test that is no scenario gets a record when it requests the world."""
    if SCENARIO_RUN not in item.stash:
        path, line, name = item.location
        folder = _empty(out / "scenarios" / folder_name(name))
        item.stash[SCENARIO_RUN] = ScenarioRun(item, "", item.config.rootpath / path, name, (line or 0) + 1, folder)
    return item.stash[SCENARIO_RUN]


def opened(run: ScenarioRun) -> None:
    """Restart the clock of the current sentence: the boot of the world does not count as the sentence's time."""
    now = clock.monotonic()
    history = run.history
    if history is not None:
        history.opened = now
    for sentence in run.sentences[-1:]:
        if history is not None:
            run.boot_seconds = max(0.0, history.began - sentence.began)
        sentence.began = now


def wait_for_reasons(run: ScenarioRun, seconds: float = 1.0) -> None:
    """Wait until the scheduler has published which pod each eviction was for.

    The scheduler writes these events after more urgent ones, and they are deleted with the namespace. Waits only while
    an event is missing, and only for a scheduler that is known to publish these events.
    """
    history = run.history
    if history is None or run.session is None or not run.session.options.adapter.names_preemptors:
        return
    deadline = clock.monotonic() + seconds
    while _unexplained(history) and clock.monotonic() < deadline:
        history.wait(len(history), max(0.0, deadline - clock.monotonic()))


def _unexplained(history: History) -> bool:
    marked = {version.uid for version in history.versions(Kind.POD) if view.eviction(version.object)}
    if not marked:
        return False
    events = [version.object for version in history.versions(Kind.EVENT)]
    return bool(marked - {(event.get("involvedObject") or {}).get("uid") for event in events if event.get("related")})


def sentence_began(item: pytest.Item, step: Any) -> None:
    """Record that a sentence begins."""
    item.stash[SCENARIO_RUN].sentences.append(SentenceRun(step.keyword, step.name, step.line_number, clock.monotonic()))


def sentence_ended(item: pytest.Item, problem: BaseException | None) -> None:
    """Record that the sentence ended, successfully or with a problem."""
    run = item.stash[SCENARIO_RUN]
    sentence = run.sentences[-1]
    sentence.ended, sentence.verdict = clock.monotonic(), "failed" if problem else "passed"
    if problem is not None:
        run.problem = problem
        if not isinstance(problem, READABLE):
            problem.add_note(f"in the sentence: {sentence}\nat {run.where}")


def judge(item: pytest.Item) -> None:
    """Run the monitors.

    Raises:
        JudgedError: They found something in a scenario that had passed.
    """
    run = item.stash[SCENARIO_RUN]
    if run.world is None:
        return
    for found in item.config.hook.pytest_schedspec_judge(running=run):
        texts = [*found] if isinstance(found, Iterable) and not isinstance(found, str) else [None]
        if not all(isinstance(text, str) for text in texts):
            what = f"a hook pytest_schedspec_judge returned {found!r}"
            run.problem = HarnessError(f"{what}\n  do next: return a list of texts, one for each finding")
            raise run.problem
        run.findings += map(str, texts)
    if run.problem is None and run.feature and run.history is not None:
        run.findings += unplaceable.find(run.history, [sentence.text for sentence in run.sentences])
    if run.findings and run.problem is None:
        run.problem = JudgedError("\n".join(run.findings))
        raise run.problem


def explain(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport, out: Path) -> None:
    """Replace the traceback by an explanation, and close the record after the teardown."""
    run = item.stash.get(SCENARIO_RUN, None)
    if run is None and call.when == "setup" and report.skipped and collection.is_ours(item):
        run = begin(item, *bdd.nodes_of(item), out)  # a skipped scenario is counted, too
    if run is None:
        return
    problem = None if call.excinfo is None else _readable(item, call.excinfo.value, report)
    if problem is not None:
        run.problem = run.problem or problem
        with summary.reporting(item.config):
            failure.write_dump(run, problem)
        text = failure.render(run, problem, cut=item.config.get_verbosity() < 2 and not os.environ.get("CI"))
        report.longrepr = plain_failure.failure_of(text, failure.headline(run, problem), *_place(run))
        item.user_properties.append((FILES, str(run.folder)))
        report.user_properties = item.user_properties
    elif call.when == "call" and report.passed and item.config.stash.get(RECORDS, False):
        with summary.reporting(item.config):
            failure.keep_recording(run)
    run.known = run.known or str(getattr(report, "wasxfail", ""))
    run.skipped = run.skipped or report.skipped
    if call.when == "teardown":
        run.ended = clock.monotonic()
        with summary.reporting(item.config):
            item.config.hook.pytest_schedspec_ended(running=run)
        report.user_properties = list(item.user_properties)


def _readable(item: pytest.Item, problem: BaseException, report: pytest.TestReport) -> Exception | None:
    """Return an error with a complete text; None for the defect of a step, which keeps its traceback.

    pytest-bdd reports no `sys.exit` in a step, and pytest shows its own frames for it.
    """
    if isinstance(problem, READABLE):
        return problem
    if report.outcome != "failed" or isinstance(problem, Exception | pytest.fail.Exception):
        return None
    frames = [
        found
        for found in traceback.extract_tb(problem.__traceback__)
        if distribution.is_of_project(Path(found.filename))
    ]
    place = f"{short_path(frames[-1].filename)}:{frames[-1].lineno}: " if frames else ""
    what = f"{place}this raised {type(problem).__name__}: {problem}"
    ended = HarnessError(f"{what}\n  do next: raise an AssertionError, or call pytest.fail or pytest.skip")
    sentences = item.stash[SCENARIO_RUN].sentences
    if sentences and sentences[-1].ended is None:
        sentence_ended(item, ended)
    return ended


def paint(report: pytest.TestReport) -> None:
    """Colour a failure for the terminal of this process. Other outputs (JUnit, a pipe) stay plain."""
    if any(name == FILES for name, _ in report.user_properties):
        plain_failure.paint(report.longrepr, lambda row, number: failure.colour(row, first=number == 0))


def _row(item: pytest.Item) -> Iterator[str]:
    """Yield the values of the item's row of examples, and the number of the run if there are several."""
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
    sentence = SentenceRun(step.keyword.strip(), step.name, step.line_number, background=background)
    return replace(sentence, table=table, doc=step.docstring or "")


def _empty(folder: Path) -> Path:
    """Return the scenario's folder, without the files of an earlier run."""
    if folder.is_dir():
        shutil.rmtree(folder, ignore_errors=True)
    return folder


def folder_name(*parts: str) -> str:
    """Return the name of a scenario's folder. Different parts get different folders.

    Letters of every script stay. A name gets a checksum if it is longer than 120 bytes, or if a part contains other
    characters than those of words. The last part may contain single spaces without a checksum.
    """
    *places, title = parts
    text = "-".join((*(place.replace("-", "/") for place in places), title))  # hyphens separate the places
    plain = re.sub(r"[^\w.]+", "-", text).strip("-")
    is_unique = all(map(_WORD.fullmatch, places)) and _WORDS.fullmatch(title) and len(plain.encode()) <= _MAX_BYTES
    if is_unique:
        return plain
    cut = plain.encode()[:_MAX_BYTES].decode(errors="ignore").rstrip("-")
    return f"{cut}-{hashlib.blake2b(text.encode(), digest_size=3).hexdigest()}"
