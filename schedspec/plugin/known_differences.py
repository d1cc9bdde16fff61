"""Expect a known failure of a scheduler, but only if the observed state matches a signature of the known difference.

A scenario with a known difference runs like any other. At its end, the failed sentence, what it expected and what
the cluster showed are compared by amounts with each signature of the difference. Only a failure that matches one
becomes an expected failure; a scenario that has changed, or that fails for another reason, fails.
"""

from __future__ import annotations

import math
import re

import pytest

from ..api.errors import Unmet
from ..api.kinds import OWNERS, Kind
from ..checks.workloads import wanted_pods
from ..observe import queries
from ..observe import view as views
from ..observe.history import View
from ..scenario.run import SCENARIO_RUN, ScenarioRun
from ..schedulers.known import Amounts, KnownDifference
from .scenarios import JudgedError

DIFFERENCES: pytest.StashKey[list[tuple[KnownDifference, bool]]] = pytest.StashKey()
"""The known differences of a scenario, each with True if a scenario that passes despite it counts as failed."""
_NUMBER = re.compile(r"(?<![\w-])\d+(?![\w-])")


def settle(item: pytest.Item) -> None:
    """Mark a judged scenario as an expected failure if its failure is known."""
    run = item.stash[SCENARIO_RUN]
    for difference, strict in item.stash.get(DIFFERENCES, []):
        if run.problem is None:
            item.add_marker(pytest.mark.xfail(reason=difference.reason, strict=strict))
        elif isinstance(run.problem, Unmet | JudgedError):
            sentence, expected, seen = signature(run)
            if any(difference.matches(sentence, expected, amounts) for amounts in seen):
                item.add_marker(pytest.mark.xfail(reason=difference.reason, raises=(Unmet, JudgedError)))
            else:
                shown = f"sentence: {sentence}\nexpected: {_shown(expected)}\nseen: {_shown(seen[0])}"
                text = (
                    f"{difference.reason}\nThis is a different failure: no signature of that difference equals\n{shown}"
                )
                item.add_report_section("call", "known difference", text)


def signature(run: ScenarioRun) -> tuple[str, Amounts, list[Amounts]]:
    """Return the failed sentence, the amounts that it expects, and the amounts that the cluster showed.

    The cluster continues to change while the monitors judge, so the amounts are of two moments: when the sentence
    failed, and now.
    """
    moments = [math.inf]
    if isinstance(run.problem, JudgedError):
        sentence, rows = run.findings[0].partition(",")[0], 0
    else:
        last = run.sentences[-1]
        planned = next((step for step in run.planned if step.line == last.line), last)
        sentence, rows = last.text, max(0, len(planned.table) - 1)
        moments = [math.inf if last.ended is None else last.ended, math.inf]
    expected: Amounts = {}
    if "evicted" in sentence and (rows or _NUMBER.search(sentence)):
        found = _NUMBER.search(sentence)
        expected["evictions"] = int(found[0]) if found else rows
    if sentence == "nothing is evicted":
        expected["evictions"] = 0
    if run.history is None:
        return sentence, expected, [{}]
    states = [run.history.until(moment) for moment in moments]
    for name in re.findall(r'"([^"]+)" runs$', sentence):
        expected[f"running {name}"] = wanted_pods(states[0], name) or 0
    return sentence, expected, [_amounts_in(view) for view in states]


def _amounts_in(view: View) -> Amounts:
    """Return the evictions, the running and the evicted pods of each workload, and the state of each queue."""
    evicted = queries.evictions(view)
    found: Amounts = {"evictions": len(evicted)}
    pods = view.mine(Kind.POD)
    workloads = {*map(views.workload_of, pods), *views.names(owner for kind in OWNERS for owner in view.mine(kind))}
    for name in sorted(workloads):
        found[f"running {name}"] = sum(map(views.runs, views.pods_of(view, name)))
        found[f"evicted {name}"] = len(queries.of_workload(evicted, name))
    for queue in view.mine(Kind.QUEUE):
        found[f"queue {queue['metadata']['name']}"] = str((queue.get("status") or {}).get("state", ""))
    return found


def _shown(amounts: Amounts) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in amounts.items()) or "no amounts"
