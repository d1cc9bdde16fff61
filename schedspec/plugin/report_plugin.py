"""The record of each scenario, and at the end of a run the report of all of them (under xdist the controller's).

A worker hands on the paths of its records as properties of its test reports, which is what crosses xdist.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..ci.results import LINK
from ..monitors import Violation
from ..report import cucumber, html, record
from ..report.files import PAGE
from ..report.from_run import make_record
from ..scenario.run import ScenarioRun
from . import scenarios
from .monitor_plugin import FINDINGS, turned_off

RECORD = "schedspec-record"
"""The property of a test, in JUnit too, that names the file of its record."""


class RunReport:
    """One run's records; registered as a plugin of its own. ``out`` is where its files go."""

    def __init__(self, config: pytest.Config, out: Path, messages: Path | None) -> None:
        self._config, self._out, self._messages = config, out, messages
        self._paths: list[Path] = []
        self._rows: list[str] = []

    def pytest_schedspec_ended(self, running: ScenarioRun) -> None:
        """Write the record of the scenario, beside the JUnit report."""
        if not running.feature and running.history is None:
            return
        none: list[Violation] = []
        found: list[Violation] = running.item.stash.get(FINDINGS, none)
        made = make_record(running, found, turned_off(running))
        path = record.write(made, running.folder)
        link = f"{self._out / PAGE}#{made.anchor}"
        running.item.user_properties += [(RECORD, str(path)), (LINK, link)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember the record of a scenario that has ended, here or on a worker; give a failure its colours.

        A worker hands its reports on as they are.
        """
        if hasattr(self._config, "workerinput"):
            return
        scenarios.paint(report)
        if report.when == "teardown":
            self._paths += [Path(str(value)) for name, value in report.user_properties if name == RECORD]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Write the report: the controller does, for all workers, which remember nothing."""
        if not self._paths:
            return
        records = list(self._read())
        page = html.write(records, self._out / PAGE)
        self._rows.append(f"report: {page}")
        if self._messages is not None:
            try:
                cucumber.write(records, self._config.rootpath, self._messages)
                self._rows.append(f"cucumber messages: {self._messages}")
            except record.RecordError as problem:
                self._rows.append(f"no cucumber messages: {problem}")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say where it is, last of all."""
        for row in self._rows:
            terminalreporter.write_line(row)

    def _read(self) -> Iterator[record.ScenarioRecord]:
        for path in dict.fromkeys(self._paths):
            try:
                yield record.read(path)
            except (OSError, record.RecordError) as problem:
                self._rows.append(f"not in the report: {problem}")
