"""Write the record of each scenario, and the report of all of them at the end of a run (with xdist, in the controller).

A worker sends the paths of its records as properties of its test reports, because xdist transfers these.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from .. import results
from ..api.client import Api
from ..api.errors import HarnessError
from ..api.kinds import Kind
from ..monitors import Violation
from ..observe import view as views
from ..observe.history import History
from ..report import cucumber, html, record
from ..report.files import PAGE
from ..report.from_run import make_record
from ..scenario import nodes
from ..scenario.run import ScenarioRun
from . import scenarios
from .monitor_plugin import FINDINGS, turned_off
from .results_writer import recorded

_LOGS, _LINES = 40, "100"
"""The number of pods whose logs a record keeps, and the number of lines of each."""
RECORD = "schedspec-record"
"""The property of a test, in JUnit too, that names the file of its record."""
LINK = "schedspec-report"
"""The property that names the record's place in the report: `page#anchor`."""


def logs_of(api: Api, history: History) -> dict[str, str]:
    """Return the last lines of each pod on a real node, by pod; a log that cannot be read is left out."""
    view = history.now()
    real = {str(node["metadata"]["name"]) for node in view.all(Kind.NODE) if nodes.is_real(node)}
    found: dict[str, str] = {}
    for pod in view.mine(Kind.POD):
        name = str(pod["metadata"]["name"])
        if pod["spec"].get("nodeName") not in real or views.waits(pod) or len(found) == _LOGS:
            continue
        with suppress(HarnessError):
            answer = api.raw("GET", history.ref(Kind.POD, name).path("log"), query={"tailLines": _LINES})
            text = answer.data.decode(errors="replace") if answer.status == 200 else ""
            found |= {name: text} if text else {}
    return found


class RunReport:
    """One run's records; registered as a plugin of its own. `out` is the folder for the files."""

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
        recorded(running, made)

    def pytest_schedspec_judge(self, running: ScenarioRun) -> None:
        """Save the last lines of containers while the pods exist. Only pods on nodes with a kubelet have logs."""
        if running.session is not None and running.history is not None:
            running.logs = logs_of(running.session.api, running.history)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the path of the record of a scenario that has ended, here or on a worker; colour a failure.

        A worker forwards its reports unchanged.
        """
        if hasattr(self._config, "workerinput"):
            return
        scenarios.paint(report)
        if report.when == "teardown":
            self._paths += [Path(str(value)) for name, value in report.user_properties if name == RECORD]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Write the report. With xdist only the controller has the records of all workers."""
        if not self._paths:
            return
        records = list(self._read())
        runs = [results.read(self._out)] if (self._out / results.FILE).is_file() else []
        page = html.write(records, self._out / PAGE, skipped=html.without_record(runs, records))
        self._rows.append(f"report: {page}")
        if self._messages is not None:
            try:
                cucumber.write(records, self._config.rootpath, self._messages)
                self._rows.append(f"cucumber messages: {self._messages}")
            except record.RecordError as problem:
                self._rows.append(f"no cucumber messages: {problem}")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the path of the report, after everything else."""
        for row in self._rows:
            terminalreporter.write_line(row)

    def _read(self) -> Iterator[record.ScenarioRecord]:
        for path in dict.fromkeys(self._paths):
            try:
                yield record.read(path)
            except (OSError, record.RecordError) as problem:
                self._rows.append(f"not in the report: {problem}")
