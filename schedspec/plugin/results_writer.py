"""Collect the outcomes of all tests and write them at the end of the run, also with xdist; a pytest plugin.

`attach` stores facts of the test's process on the test's report, which xdist transfers to the controller.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from ..api.errors import ClusterUnreachableError, DirtyClusterError
from ..clusters import ClusterError
from ..conformance import levels
from ..gherkin import bdd, collection, selection
from ..report import files
from ..report.lives import lives_of
from ..report.record import ScenarioRecord
from ..results import FILE, FeatureLine, Numbers, Result, RunResults, Verdict, of_difference
from ..scenario.run import ScenarioRun
from . import held_verdicts, summary
from .gating import LACKS
from .scenarios import RUN

_NO_JUDGEMENT = (ClusterError, ClusterUnreachableError, DirtyClusterError)
"""Errors that are not the scheduler's: the cluster was missing or not clean."""
_RECORDED: pytest.StashKey[dict[str, Any]] = pytest.StashKey()
"""Fields of a scenario's row that come from its record."""
_ENVIRONMENT: pytest.StashKey[dict[str, str]] = pytest.StashKey()


def recorded(run: ScenarioRun, record: ScenarioRecord) -> None:
    """Store the fields of a row that the record of the scenario determines."""
    found: dict[str, Any] = {"anchor": record.anchor}
    if run.history is not None:
        found["numbers"] = msgspec.to_builtins(numbers_of(record))
    if record.failure is not None:
        found |= {"expected": record.failure.expected, "seen": record.failure.seen or record.failure.text}
        found |= {"because": record.because, "places": [_place(run, record)]}
    run.item.stash[_RECORDED] = found


def _place(run: ScenarioRun, record: ScenarioRecord) -> dict[str, Any]:
    line = int(record.where.rpartition(":")[2])
    return {"path": run.shown_path, "line": line, "text": record.headline}


def numbers_of(record: ScenarioRecord) -> Numbers:
    """Return the measurements of one scenario."""
    waits = [life.started - life.created for life in lives_of(record) if life.started is not None]
    ratio = record.evicted.ratio
    measured = next(
        (name for name in (*(resource for resource in ratio if "/" in resource), "cpu", "memory") if name in ratio), ""
    )
    return Numbers(
        round(sum(waits) / len(waits), 3) if waits else None,
        record.evicted.pods,
        round(ratio[measured], 2) if measured else None,
    )


def attach(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Attach the row's fields to a report, and whether it is a failure: outer hooks may still change that."""
    root = item.config.rootpath
    path = item.path.relative_to(root) if item.path.is_relative_to(root) else item.path
    row: dict[str, Any] = {"feature": path.as_posix()} | item.stash.get(_RECORDED, dict[str, Any]())
    scenario = bdd.scenario_of(item) if collection.is_ours(item) else None
    if scenario is not None:
        callspec = getattr(item, "callspec", None)
        run = callspec.params.get(RUN, 1) if callspec is not None else 1
        row |= {"scenario": scenario[0], "example": dict(scenario[1]), "run": run}
        row["level"] = str(levels.of_tags(marker.name for marker in item.iter_markers()) or "")
    unjudged = call.excinfo is not None and isinstance(call.excinfo.value, _NO_JUDGEMENT)
    environment = item.stash.get(_ENVIRONMENT, {})
    vars(report)["schedspec"] = {"row": row, "unjudged": unjudged, "environment": environment, "failed": report.failed}


class Results:
    """One row for each test, keyed by its node id. Only the controller of xdist writes them."""

    def __init__(self, config: pytest.Config, out: Path, scheduler: str) -> None:
        self._config, self._out, self._scheduler = config, out, scheduler
        self._rows: dict[str, Result] = {}
        self._environment: dict[str, str] = {}
        self._ids: list[str] = []
        self._unended: list[str] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Store the ids of the scenarios that have to end."""
        self._ids = [item.nodeid for item in session.items if collection.is_ours(item)]

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Store the ids of the scenarios; only workers of xdist collect them."""
        self._ids = [*filter(collection.is_of_feature, ids)]

    def pytest_schedspec_judge(self, running: ScenarioRun) -> None:
        """Store the versions of the run's programs while the cluster is reachable."""
        if running.session is not None:
            running.item.stash[_ENVIRONMENT] = running.session.described()

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Hold the exit status once all hooks have ended: any of them may replace it."""
        if not summary.worker(self._config):
            self._config.add_cleanup(lambda: self._hold_status(session))

    def _hold_status(self, session: pytest.Session) -> None:
        if session.exitstatus != pytest.ExitCode.OK:
            return
        failed = [row for row in self._rows.values() if row.verdict in ("failed", "error") and _is_ours(row)]
        if not failed and not self._unended:
            return
        session.exitstatus = pytest.ExitCode.TESTS_FAILED if failed else pytest.ExitCode.INTERRUPTED
        with summary.reporting(self._config):
            write = summary.progress_writer(self._config)
            write("a hook of a conftest or plugin set the exit status to 0, or hid a failure; this run failed:")
            for row in failed:
                write(f"{row.node_id}: {row.why.splitlines()[0] if row.why else row.verdict}")

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Any:
        """Attach the lines of a feature file that could not be collected."""
        report = yield
        if isinstance(collector, collection.FeatureFile):
            path = selection.shown_path(collector.path, collector.config)
            places = [{"path": path, "line": problem.line, "text": problem.text} for problem in collector.problems]
            vars(report)["schedspec"] = places
        return report

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep an error for a file that could not be collected."""
        if report.failed:
            places = [msgspec.convert(place, FeatureLine) for place in getattr(report, "schedspec", ())]
            self._rows[report.nodeid] = Result(
                feature=report.nodeid.partition("::")[0],
                node_id=report.nodeid,
                verdict="error",
                why=_why(report),
                text=report.longreprtext,
                places=places,
            )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the worst outcome of setup, call and teardown."""
        if str(report.outcome) == "rerun":  # of pytest-rerunfailures: the last run decides
            return
        attached = getattr(report, "schedspec", None) or _unattached(report)
        self._environment |= attached.get("environment", {})
        verdict, why = _verdict(report, judged=not attached.get("unjudged", False))
        if verdict in ("passed", "skipped") and attached.get("failed"):
            verdict, why = "failed", held_verdicts.REPLACED
        text = report.longreprtext if report.failed else ""
        before = self._rows.get(report.nodeid)
        if before is not None:
            if verdict == "passed" or before.verdict in ("failed", "error"):
                verdict, why = before.verdict, before.why
            text = "\n".join(filter(None, (before.text, text)))
        row = msgspec.convert({**attached["row"], "verdict": verdict}, Result)
        places = row.places or (before.places if before is not None else [])
        self._rows[report.nodeid] = msgspec.structs.replace(
            row,
            node_id=report.nodeid,
            why=why,
            seconds=round((before.seconds if before is not None else 0.0) + report.duration, 3),
            text=text,
            places=places if verdict in ("failed", "error") else [],
        )

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the results; a worker of xdist writes nothing.

        A run passes only if each scenario has a verdict: `pytest.exit` with status 0, or a hook of the project that
        runs nothing, would pass without one.
        """
        if hasattr(self._config, "workerinput") or summary.runs_nothing(self._config):
            return
        if exitstatus == pytest.ExitCode.OK:
            self._unended = [node_id for node_id in self._ids if node_id not in self._rows]
        if self._unended:
            session.exitstatus = pytest.ExitCode.INTERRUPTED
        rows = list(self._rows.values())
        found = RunResults(
            scheduler=self._scheduler,
            version=self._environment.get("version", ""),
            kubernetes=self._environment.get("kubernetes", ""),
            cluster=self._environment.get("cluster", ""),
            results=[row for row in rows if row.scenario],
            others=[row for row in rows if not row.scenario],
        )
        files.make_folder(self._out)
        files.write(self._out / FILE, msgspec.json.format(msgspec.json.encode(found)))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the scenarios that have no verdict although the run would pass."""
        if self._unended:
            terminalreporter.section("scenarios without a verdict", red=True)
            for node_id in self._unended:
                terminalreporter.write_line(node_id)
            terminalreporter.write_line("  why: pytest.exit, or a hook of a conftest or plugin, ended them unjudged")
            terminalreporter.write_line("  do next: remove it; name scenarios with -k, or with a line: f.feature:7")


def _unattached(report: pytest.TestReport) -> dict[str, Any]:
    """Return the attachment of a report that has none: another plugin made it."""
    feature = report.nodeid.partition("::")[0]
    is_ours = collection.is_of_feature(report.nodeid) and report.when == "call"
    return {"row": {"feature": feature}, "failed": is_ours}


def _verdict(report: pytest.TestReport, *, judged: bool) -> tuple[Verdict, str]:
    if hasattr(report, "wasxfail") and report.skipped:
        why = str(report.wasxfail)
        return of_difference(why), why
    if report.skipped:
        why = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        return ("lacks" if LACKS in why else "skipped"), why.removeprefix("Skipped: ")
    if report.passed:
        return "passed", ""
    return ("failed" if report.when == "call" and judged else "error"), _why(report)


def _is_ours(row: Result) -> bool:
    return collection.is_of_feature(row.node_id)


def _why(report: pytest.TestReport | pytest.CollectReport) -> str:
    return getattr(getattr(report.longrepr, "reprcrash", None), "message", "") or str(report.longrepr)
