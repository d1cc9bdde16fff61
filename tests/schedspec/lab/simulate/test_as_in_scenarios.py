"""The monitors of loads and the monitors of scenarios report the same violations for one play."""

from __future__ import annotations

from typing import Any

import pytest

from schedspec.lab.explore.rounds import case_of
from schedspec.lab.reduce import play
from schedspec.lab.reduce.case import Case, CompleteStep, SubmitStep
from schedspec.lab.reduce.written import known_policies
from schedspec.lab.simulate.monitored import MonitoredRun
from schedspec.monitors import Rules, judge
from tests.support.core.play_history import Recorder

SEEDS = 40
"""Seeds of one test; in about half of their cases only jobs change, which is all that a load can express."""


def found_by(case: Case) -> tuple[set[str], set[str]]:
    """Return the monitors that report violations: those of the stream of outcomes and those of the history."""
    recorder = Recorder()
    stream = MonitoredRun(Rules(case.policy))

    def listen(at: float, given: Any) -> None:
        recorder.record(at, given)
        stream.observe(at, given)

    play(case, listener=listen)
    history = judge(recorder.versions, Rules(case.policy))
    return {finding.monitor for finding in stream.close()}, {finding.monitor for finding in history}


@pytest.mark.parametrize("first", range(1, 6 * SEEDS, SEEDS))
def test_monitors_of_stream_and_history_report_the_same(first: int) -> None:
    policies, judged = known_policies(), 0
    for seed in range(first, first + SEEDS):
        case = case_of((seed, None), policies)
        if all(isinstance(step, SubmitStep | CompleteStep) for step in case.steps):
            of_stream, of_history = found_by(case)
            assert of_stream == of_history, seed
            judged += 1
    assert judged > SEEDS // 5
