"""Pods of a workload: how many run, wait, and stay so."""

from __future__ import annotations

from harness import checks, timeouts
from harness.expect import Expect
from harness.sentences import then


@then('"{name}" runs')
def _(expect: Expect, name: str) -> None:
    """Every pod that the workload wants is Running."""
    expect.eventually(checks.runs(name), within=timeouts.RUNS)


@then('"{name}" stays pending')
def _(expect: Expect, name: str) -> None:
    """None of its pods gets a node, counted from when the scheduler has said why."""
    expect.eventually(checks.is_refused(name), within=timeouts.SAID)
    expect.consistently(checks.waits(name), during=timeouts.HOLDS)
