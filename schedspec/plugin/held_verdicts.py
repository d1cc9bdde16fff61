"""Hold a scenario's verdict: a hook of a conftest or plugin cannot hide a failure, or a scenario that did not run.

`hidden` compares the report that all hooks made with the record of the scenario's sentences. Where the two
differ, the results and the exit status follow from the record. An expected failure (xfail) and a skip do not differ.
"""

from __future__ import annotations

import pytest

from ..gherkin import collection
from ..scenario.run import SCENARIO_RUN
from . import summary

_DO_NEXT = "\n  do next: remove it, or mark the scenario as xfail or skip"
REPLACED = f"a hook of a conftest or plugin replaced the report of this scenario{_DO_NEXT}"


def hidden(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> str:
    """Return what a report hides about an item; empty if the report is true, or the item is no scenario of ours."""
    if not collection.is_ours(item) or report.outcome not in ("passed", "skipped") or hasattr(report, "wasxfail"):
        return ""
    problem = None if call.excinfo is None else call.excinfo.value
    if isinstance(problem, pytest.skip.Exception):
        return ""
    run = item.stash.get(SCENARIO_RUN, None)
    if problem is None and call.when == "call" and run is not None:
        problem = run.problem
    if problem is not None:
        what = f"a hook of a conftest or plugin changed this failure to {report.outcome!r}"
        return f"{what}{_DO_NEXT}\n{type(problem).__name__}: {problem}"
    if report.skipped:
        return f"a hook of a conftest or plugin changed the report of the {call.when} to 'skipped'{_DO_NEXT}"
    ran = 0 if run is None else sum(sentence.verdict == "passed" for sentence in run.sentences)
    is_whole = run is not None and ran == len(run.planned)
    if call.when != "call" or is_whole or summary.runs_nothing(item.config):
        return ""
    return f"the scenario ended after {ran} sentences: a hook of a conftest or plugin replaced its run{_DO_NEXT}"


def restore(report: pytest.TestReport, what: str) -> None:
    """Turn a report that hides something into a failure that says what."""
    report.outcome = "failed"
    report.longrepr = what
