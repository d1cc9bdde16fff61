"""The monitors and the record, connected with the run: a pytest plugin of its own, so that either can be left out.

A tag `@without-monitor-NAME` turns one monitor off for a scenario; the sentence above it in the feature says why.
"""

from __future__ import annotations

import hashlib
import time

import pytest

from ..monitors import MONITORS, Rules, Violation, judge
from ..report import record
from ..scenario.run import ScenarioRun
from ..schedulers import Adapter

FINDINGS: pytest.StashKey[list[Violation]] = pytest.StashKey()
_TAG = "without-monitor-"


def pytest_configure(config: pytest.Config) -> None:
    """One marker for each monitor that a tag can turn off."""
    for name in MONITORS:
        config.addinivalue_line("markers", f"{_TAG}{name}: the monitor {name!r} does not judge this scenario")


def turned_off(running: ScenarioRun) -> list[str]:
    """The monitors that the scenario's tags turn off, and those whose law does not hold for the scheduler."""
    adapter = running.session.options.adapter if running.session is not None else Adapter
    return [
        name
        for name in MONITORS
        if name in adapter.monitors_off or running.item.get_closest_marker(f"{_TAG}{name}") is not None
    ]


def pytest_schedspec_judge(running: ScenarioRun) -> list[str]:
    """What must never happen and did."""
    if running.history is None:
        return []
    found = judge(running.history.since(0), Rules(running.policy), off=turned_off(running))
    running.item.stash[FINDINGS] = found
    seconds = running.history.seconds
    return [f"monitor {it.monitor}, after {seconds(it.time):.2f} s: {it.about}: {it.text}" for it in found]


def pytest_schedspec_ended(running: ScenarioRun) -> None:
    """The record of the scenario, beside the JUnit report."""
    if running.history is not None:
        record.write(make_record(running), running.folder)


def make_record(running: ScenarioRun) -> record.ScenarioRecord:
    """Everything that is known of a scenario that has ended."""
    history, session = running.history, running.session
    assert history is not None
    stories = record.stories(history)
    none: list[Violation] = []
    findings: list[Violation] = running.item.stash.get(FINDINGS, none)
    ended = running.ended or time.monotonic()
    return record.ScenarioRecord(
        feature=running.feature,
        feature_file=running.path.name,
        scenario=running.name,
        line=running.line,
        tags=sorted(marker.name for marker in running.item.iter_markers()),
        cluster=session.cluster.kind if session is not None else "",
        policy=running.policy,
        policy_sha256=hashlib.sha256(running.policy.encode()).hexdigest(),
        began=running.began_wall,
        seconds=round(ended - running.began, 4),
        verdict="failed" if running.problem is not None or running.findings else "passed",
        failure=str(running.problem or ""),
        sentences=[
            record.Sentence(
                said.keyword.strip(),
                said.text,
                said.line,
                round(said.began - running.began, 4),
                round((said.ended or ended) - said.began, 4),
                said.verdict or "skipped",
            )
            for said in running.sentences
        ],
        objects=stories,
        queues=record.queue_moments(history, Rules(running.policy)),
        acts=record.act_moments(history),
        reasons=record.reasons(stories),
        findings=record.judgements(history, findings),
        monitors_off=turned_off(running),
    )
