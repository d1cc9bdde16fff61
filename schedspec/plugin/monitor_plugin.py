"""Connect the monitors with the run. This is a pytest plugin of its own, so that a run can leave it out.

A tag `@without-monitor-NAME` turns one monitor off for a scenario; the comment above it in the feature gives the
reason.
"""

from __future__ import annotations

import pytest

from ..monitors import MONITORS, Rules, Violation, judge
from ..scenario.run import ScenarioRun
from ..schedulers import Adapter

FINDINGS: pytest.StashKey[list[Violation]] = pytest.StashKey()
_TAG = "without-monitor-"


def pytest_configure(config: pytest.Config) -> None:
    """Declare one marker for each monitor that a tag can turn off."""
    for name in MONITORS:
        config.addinivalue_line("markers", f"{_TAG}{name}: the monitor {name!r} does not judge this scenario")


def turned_off(running: ScenarioRun) -> list[str]:
    """Return the monitors that the scenario's tags turn off, and those whose rule does not hold for the scheduler."""
    adapter = running.session.options.adapter if running.session is not None else Adapter
    return [
        name
        for name in MONITORS
        if name in adapter.monitors_off or running.item.get_closest_marker(f"{_TAG}{name}") is not None
    ]


def pytest_schedspec_judge(running: ScenarioRun) -> list[str]:
    """Return the violations that the monitors found."""
    if running.history is None:
        return []
    versions, off = running.history.since(0), turned_off(running)
    found = [
        violation
        for policy in running.policies
        for violation in judge(versions, Rules(policy.text), off, since=policy.since, until=policy.until)
    ]
    running.item.stash[FINDINGS] = found
    seconds = running.history.seconds
    return [
        f"monitor {finding.monitor}, after {seconds(finding.time):.2f} s: {finding.about}: {finding.text}"
        for finding in found
    ]
