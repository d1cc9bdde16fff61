"""The pytest plugin: it only connects pytest's hooks with the modules that do the work."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from .. import options
from ..api.errors import HarnessError
from ..ci.plugin import Sharding
from ..gherkin import collection, own_steps, selection
from ..observe.expect import Expect
from ..observe.history import History
from ..report import summary
from ..report.files import Claim, FolderTakenError
from ..scenario.run import SCENARIO_RUN
from ..scenario.session import LiveSession
from ..scenario.world import World
from ..schedulers import UnsuitableClusterError
from . import claims, gating, progress, run_facts, scenarios
from .hooks import HookSpecs
from .report_plugin import RunReport
from .results import Results

OPTIONS: pytest.StashKey[options.Options] = pytest.StashKey()


pytest_plugins = ["schedspec.plugin.monitor_plugin"]


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """The options of a run; and our steps, before any conftest is read."""
    options.declare(parser)
    own_steps.register_ours(pluginmanager)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """What other plugins may add."""
    pluginmanager.add_hookspecs(HookSpecs)


def pytest_configure(config: pytest.Config) -> None:
    """Check the options. Nothing is started before a scenario asks for it."""
    config.pluginmanager.register(summary.Summary(config), "schedspec-summary")
    config.stash[OPTIONS] = _with_a_folder_of_its_own(config, options.read(config))
    try:
        config.args[:] = selection.node_ids(config.args, config.invocation_params.dir)
    except selection.NotSelectableError as problem:
        raise pytest.UsageError(str(problem)) from None
    config.stash[collection.RUN_FACTS] = run_facts.of_run(config.stash[OPTIONS])
    own_steps.register_own(config)
    config.pluginmanager.register(progress.Progress(config), progress.NAME)
    it, worker = config.stash[OPTIONS], summary.worker(config)
    shards = Sharding(it.out, it.shard, it.shard_durations, writes=worker in ("", "gw0"), measures=not worker)
    config.pluginmanager.register(shards, "schedspec-sharding")
    report = RunReport(config, it.out, it.cucumber_messages)
    config.pluginmanager.register(report, "schedspec-report")
    for line in ("embedded: needs the embedded cluster", "kind: needs a Kind cluster", "slow: takes more than 10 s"):
        config.addinivalue_line("markers", line)
    gating.declare_markers(config)
    config.pluginmanager.register(Results(config, config.stash[OPTIONS].adapter.title), "schedspec-results")


def _with_a_folder_of_its_own(config: pytest.Config, given: options.Options) -> options.Options:
    """The options with the folder that this run's workers share and no other run writes into."""
    if summary.worker(config):
        return dataclasses.replace(given, out=Path(config.workerinput["schedspec-out"]))  # type: ignore[attr-defined]
    if config.option.collectonly:
        return given
    with summary.reporting(config):
        try:
            claim = Claim(given.out, named=given.out_is_named)
        except FolderTakenError as taken:
            raise pytest.UsageError(str(taken)) from None
        config.add_cleanup(claim.release)
        return dataclasses.replace(given, out=claim.folder)
    return given


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """A worker of xdist begins: it writes where the others do."""
    node.workerinput["schedspec-out"] = str(config_out(node.config))


def pytest_report_header(config: pytest.Config) -> str:
    """What this run is about."""
    return config.stash[OPTIONS].header()


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Which of our sentences the project has replaced by its own."""
    hidden = config.stash.setdefault(collection.HIDDEN, set())
    return [f"schedspec: own sentence in the place of ours: {pattern}" for pattern in sorted(hidden)]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Feature files are test modules."""
    return collection.collect_file(file_path, parent)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A scheduler whose order is not deterministic runs every scenario several times."""
    gating.repeat(metafunc, metafunc.config.stash[OPTIONS].runs)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What the scheduler lacks is skipped, what is known of it is expected to fail."""
    chosen = config.stash[OPTIONS]
    try:
        gating.gate(items, chosen.adapter, chosen.kubernetes_version)
    except HarnessError as problem:
        raise pytest.UsageError(str(problem)) from None


@pytest.fixture(scope="session")
def live(request: pytest.FixtureRequest) -> Iterator[LiveSession]:
    """The session: a cluster with the scheduler under test on it."""
    config = request.config
    session = LiveSession(config.stash[OPTIONS], summary.worker(config), summary.run_of(config), summary.teller(config))
    session.claims = lambda: claims.of_items(request.session.items)
    try:
        session.open()
    except UnsuitableClusterError as problem:
        pytest.skip(str(problem))
    finally:
        progress.of(config).end_line()
    try:
        yield session
    finally:
        if session.owns:
            summary.note(config, session)
        session.close()


@pytest.fixture
def world(live: LiveSession, request: pytest.FixtureRequest) -> Iterator[World]:
    """The scenario's objects: an empty world, emptied again at the end."""
    running = scenarios.running(request.node, config_out(request.config))
    running.session = live
    with live.scenario(running.name) as world:
        running.world, running.facts = world, live.facts
        running.scheduler = (live.options.adapter.title, live.scheduler_version)
        request.config.hook.pytest_schedspec_begins(running=running)
        scenarios.opened(running)
        try:
            yield world
        finally:
            scenarios.wait_for_reasons(running)
            running.cleanup_began = time.monotonic()


@pytest.fixture
def history(world: World) -> History:
    """Everything that the cluster has shown since the scenario began."""
    return world.history


@pytest.fixture
def expect(world: World) -> Expect:
    """What must come, hold, or never be."""
    return world.expect


def config_out(config: pytest.Config) -> Path:
    """Where this run's files go."""
    return config.stash[OPTIONS].out


def pytest_bdd_before_scenario(request: pytest.FixtureRequest, feature: Any, scenario: Any) -> None:
    """Begin the record of a scenario."""
    scenarios.begin(request.node, feature, scenario, config_out(request.config))


def pytest_bdd_before_step(request: pytest.FixtureRequest, step: Any) -> None:
    """A sentence begins."""
    scenarios.say(request.node, step)


def pytest_bdd_after_step(request: pytest.FixtureRequest) -> None:
    """It was true."""
    scenarios.said(request.node, None)


def pytest_bdd_step_error(request: pytest.FixtureRequest, exception: BaseException) -> None:
    """It was not, or could not be told."""
    scenarios.said(request.node, exception)


def pytest_bdd_after_scenario(request: pytest.FixtureRequest) -> None:
    """All was said: let the monitors judge while the objects are still there."""
    scenarios.judge(request.node)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Failures in the words of the feature."""
    report = yield
    scenarios.explain(item, call, report)
    if report.failed and report.when == "call" and item.config.stash[OPTIONS].pause and SCENARIO_RUN in item.stash:
        progress.pause(item.stash[SCENARIO_RUN], item.config)
    return report
