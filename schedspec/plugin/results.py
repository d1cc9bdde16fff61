"""Collects what came of every scenario, and writes it at the end of the run; a pytest plugin. Crosses xdist."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ..api.errors import ClusterUnreachableError, DirtyClusterError
from ..clusters import ClusterError
from ..gherkin import bdd
from ..report.results import FILE, Numbers, Result, RunResults, Verdict, numbers_of
from ..scenario.run import ScenarioRun
from .gating import LACKS
from .scenarios import RUN

_ITEM, _NUMBERS, _ENVIRONMENT = "schedspec-scenario", "schedspec-numbers", "schedspec-environment"
_UNJUDGED = "schedspec-unjudged"
_NO_JUDGEMENT = (ClusterError, ClusterUnreachableError, DirtyClusterError)
"""What says nothing of the scheduler: the cluster was not there, or not clean."""


class Results:
    """One row for each scenario, by its node id."""

    def __init__(self, config: pytest.Config, scheduler: str) -> None:
        self._config, self._scheduler = config, scheduler
        self._rows: dict[str, Result] = {}
        self._environment: dict[str, str] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """What a row is called goes with the item's reports."""
        for item in items:
            scenario = bdd.scenario_of(item)
            if scenario is not None:
                callspec = getattr(item, "callspec", None)
                run = callspec.params.get(RUN, 1) if callspec is not None else 1
                path = (
                    item.path.relative_to(item.config.rootpath)
                    if item.path.is_relative_to(item.config.rootpath)
                    else item.path
                )
                item.user_properties.append((_ITEM, [path.as_posix(), scenario[0], scenario[1], run]))

    def pytest_schedspec_judge(self, running: ScenarioRun) -> None:
        """Measure, while the history is complete and the report not yet made."""
        if running.history is None or running.session is None:
            return
        item, session = running.item, running.session
        item.user_properties.append((_NUMBERS, msgspec.to_builtins(numbers_of(running.history))))
        item.user_properties.append((_ENVIRONMENT, session.described()))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Tell what was not judged from what failed, while the exception is there."""
        if call.excinfo is not None and isinstance(call.excinfo.value, _NO_JUDGEMENT):
            item.user_properties.append((_UNJUDGED, True))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The worst of setup, call and teardown is what came of a scenario."""
        said: dict[str, Any] = dict(report.user_properties)
        if _ITEM not in said:
            return
        self._environment |= said.get(_ENVIRONMENT, {})
        verdict, why = _verdict(report, judged=_UNJUDGED not in said)
        before = self._rows.get(report.nodeid)
        if before is not None and (verdict == "passed" or before.verdict in ("failed", "error")):
            verdict, why = before.verdict, before.why
        feature, scenario, example, run = said[_ITEM]
        self._rows[report.nodeid] = Result(
            feature=feature,
            scenario=scenario,
            example=example,
            node_id=report.nodeid,
            run=run,
            verdict=verdict,
            why=why,
            seconds=round((before.seconds if before is not None else 0.0) + report.duration, 3),
            numbers=msgspec.convert(said[_NUMBERS], Numbers) if _NUMBERS in said else None,
        )

    def pytest_sessionfinish(self) -> None:
        """Write them; on a worker of xdist there is nothing to do."""
        if hasattr(self._config, "workerinput") or not self._rows:
            return
        from . import config_out  # noqa: PLC0415 - the plugin imports this module

        found = RunResults(
            scheduler=self._scheduler,
            version=self._environment.get("version", ""),
            kubernetes=self._environment.get("kubernetes", ""),
            cluster=self._environment.get("cluster", ""),
            results=list(self._rows.values()),
        )
        out = config_out(self._config)
        out.mkdir(parents=True, exist_ok=True)
        (out / FILE).write_bytes(msgspec.json.format(msgspec.json.encode(found)))


def _verdict(report: pytest.TestReport, *, judged: bool) -> tuple[Verdict, str]:
    if hasattr(report, "wasxfail") and report.skipped:
        return "known", str(report.wasxfail)
    if report.skipped:
        why = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        return ("lacks" if LACKS in why else "skipped"), why.removeprefix("Skipped: ")
    if report.passed:
        return "passed", ""
    text = getattr(getattr(report.longrepr, "reprcrash", None), "message", "") or str(report.longrepr)
    return ("failed" if report.when == "call" and judged else "error"), text
