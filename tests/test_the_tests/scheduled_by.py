"""pytest plugin (`-p tests.test_the_tests.scheduled_by`): the tag `@fault-NAME` selects the faulty scheduler.

On an embedded cluster, each change of the fault restarts the scheduler process; the cluster keeps running. The
scheduler of a simulated cluster is part of this process, where `tests.test_the_tests.virtual_run` injects the fault.
"""

from __future__ import annotations

import dataclasses
import sys

import pytest

from schedspec.scenario.session import LiveSession
from schedspec.schedulers import Own
from schedspec.schedulers.process import SchedulerProcess
from tests.test_the_tests.faults import FAULTS
from tests.test_the_tests.faults.fault import TAG

SHORT = 0.1
"""Factor of timeouts for faults that only omit something: waiting longer would not change the verdict."""


def pytest_configure(config: pytest.Config) -> None:
    """Declare a marker for each fault."""
    for name, fault in FAULTS.items():
        config.addinivalue_line("markers", f"{TAG}{name}: the scheduler {fault.does}")


@pytest.fixture(autouse=True)
def _scheduled_by(schedspec_live: LiveSession, request: pytest.FixtureRequest) -> None:
    names = [mark.name.removeprefix(TAG) for mark in request.node.iter_markers() if mark.name.startswith(TAG)]
    scheduler = schedspec_live.scheduler
    command = (sys.executable, "-m", "tests.test_the_tests.faulty", names[0]) if names else Own.command
    if isinstance(scheduler, SchedulerProcess) and scheduler.command != tuple(command):
        scheduler.stop()
        scheduler.command = tuple(command)
        scheduler.start(schedspec_live.policy)
    scale = SHORT if names and not FAULTS[names[0]].acts else request.config.getoption("schedspec_timeout_scale")
    schedspec_live.options = dataclasses.replace(schedspec_live.options, timeout_scale=float(scale))
