"""The pytest plugin of a run that uses schedspec: it connects pytest's hooks with the modules that do the work.

Scenarios of feature files that are not ours (an ordinary pytest-bdd suite in the same run) pass through unchanged: each
hook checks for the record that only our scenarios have.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .. import clusters, options, steps
from ..api import clock
from ..api.errors import HarnessError
from ..api.kinds import Kind, Ref
from ..ci.plugin import Sharding
from ..clusters import ClusterError, Settings
from ..gherkin import bdd, collection, documents, own_steps, selection, short_names, step_check, step_decorators, things
from ..observe.expect import Expect
from ..observe.history import History
from ..options import Options
from ..report import files, record
from ..scenario.preflight import Claim
from ..scenario.run import SCENARIO_RUN
from ..scenario.session import LiveSession
from ..scenario.world import World
from ..schedulers import UnsuitableClusterError
from . import (
    gating,
    held_verdicts,
    known_differences,
    preview,
    progress,
    results_writer,
    run_facts,
    scenarios,
    summary,
    wrong_hooks,
)
from .hooks import HookSpecs
from .report_plugin import RunReport

_KINDS = {things.QUEUE: Kind.QUEUE, things.NODE: Kind.NODE, things.PRIORITY_CLASS: Kind.PRIORITYCLASS}


def _claims_of(items: Iterable[pytest.Item]) -> Iterator[Claim]:
    """Yield the cluster-scoped objects that the scenarios of a run will create, as their sentences declare.

    A sentence without a declaration claims nothing; its objects are checked when the sentence runs.
    """
    indices: dict[pytest.Collector, step_check.StepIndex] = {}
    for item in items:
        scenario = bdd.scenario_of(item)
        if scenario is None or item.parent is None or not collection.is_ours(item) or item.get_closest_marker("skip"):
            continue
        if item.parent not in indices:
            indices[item.parent] = step_check.StepIndex(bdd.definitions_for(item.parent))
        for sentence in scenario[2]:
            for step in indices[item.parent].find(sentence):
                for ref, line in _made(sentence, step):
                    yield Claim(ref, f"{item.location[0]}:{line}")


def _made(sentence: documents.Sentence, step: bdd.StepDefinition) -> Iterator[tuple[Ref, int]]:
    """Yield the objects that a sentence creates, each with its line: that of its table row if there is one."""
    values = step.values(sentence.text) or {}
    shape = step_decorators.shape_of(step.function, values, sentence.columns)
    rows = shape.read(sentence.table)[0] if shape is not None and sentence.table else []
    for thing, name in step_decorators.made_by(step.function, values, rows) or ():
        if thing in _KINDS and "*" not in name:
            lines = zip(sentence.table, sentence.table_lines, strict=True)
            yield Ref(_KINDS[thing], name), next((line for row, line in lines if name in row), sentence.line)


def _check_programs(options: Options, progress: Callable[[str], None]) -> None:
    """Check that the programs of the run's cluster and scheduler exist or can be built, before a cluster boots.

    Without Go, missing programs are downloaded, as the session would do. With Go, the check is that Go can build them.

    Raises:
        pytest.UsageError: programs are missing (no Go, a Go that is too old, no network); the text names them, the
        places
            and what to do next.
    """
    problems = list(_problems(options, clusters.resolve(options.settings), progress))
    if problems:
        raise pytest.UsageError("\n".join(problems))


def _problems(options: Options, settings: Settings, progress: Callable[[str], None]) -> Iterator[str]:
    try:
        clusters.require_programs(settings, progress)
    except ClusterError as problem:
        yield f"cluster {settings.kind}: {problem}"
    try:
        options.adapter.require_programs(settings, options.scheduler_binaries, progress)
    except (ClusterError, HarnessError) as problem:
        yield f"scheduler {options.adapter}: {problem}"


OPTIONS: pytest.StashKey[options.Options] = pytest.StashKey()

pytest_plugins = ["schedspec.plugin.monitor_plugin", "schedspec.plugin.wrong_hooks"]


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the options of a run, and register our steps before any conftest is loaded."""
    options.declare(parser)
    for module in steps.MODULES:
        if not pluginmanager.is_registered(module):
            pluginmanager.register(module, module.__name__)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks for other plugins."""
    pluginmanager.add_hookspecs(HookSpecs)


def pytest_configure(config: pytest.Config) -> None:
    """Check the options. No cluster starts before a scenario needs it."""
    if not config.pluginmanager.has_plugin("pytest-bdd"):
        raise pytest.UsageError("pytest-bdd runs the sentences, and -p no:pytest-bdd leaves it out: remove the option")
    config.pluginmanager.register(summary.Summary(config), "schedspec-summary")
    chosen = options.read(config)
    if problem := run_facts.problem_of_policy(chosen):
        raise pytest.UsageError(problem)
    if chosen.settings.kind == "existing":
        files.keep_private(config.add_cleanup, config.getoption("xmlpath", None))
    config.stash[OPTIONS] = _with_a_folder_of_its_own(config, chosen)
    try:
        config.args[:] = selection.node_ids(config.args, config.invocation_params.dir)
    except selection.NotSelectableError as problem:
        raise pytest.UsageError(str(problem)) from None
    config.stash[collection.FOLDERS] = tuple(_features(config))
    config.stash[collection.RUN_FACTS] = run_facts.of_run(config.stash[OPTIONS], options.home(config))
    with wrong_hooks.refused(config.pluginmanager):
        own_steps.register_own(config, config.stash[OPTIONS].steps)
    config.pluginmanager.register(progress.Progress(config), progress.NAME)
    run, worker = config.stash[OPTIONS], summary.worker(config)
    shards = Sharding(run.out, run.shard, run.shard_durations, writes=worker in ("", "gw0"), measures=not worker)
    config.pluginmanager.register(shards, "schedspec-sharding")
    report = RunReport(config, run.out, run.cucumber_messages)
    config.pluginmanager.register(report, "schedspec-report")
    for line in ("embedded: needs the embedded cluster", "kind: needs a Kind cluster", "slow: takes more than 10 s"):
        config.addinivalue_line("markers", line)
    gating.declare_markers(config)
    config.pluginmanager.register(results_writer.Results(config, run.out, run.adapter.title), "schedspec-results")


def _features(config: pytest.Config) -> Iterator[Path]:
    """Yield the files and folders whose feature files are ours.

    These are feature files of the command line, and the paths of the setting `schedspec_features`; without the setting,
    the folder of an ini file with settings of ours; without such a file, all paths of the command line.
    """
    here = config.invocation_params.dir
    named = [here / argument.partition("::")[0] for argument in config.args]
    yield from (path for path in named if path.suffix == ".feature")
    configured = config.stash[OPTIONS].features
    if configured:
        yield from configured
    elif options.ini_is_ours(config):
        yield options.home(config)
    else:
        yield from named


def _with_a_folder_of_its_own(config: pytest.Config, given: options.Options) -> options.Options:
    """Return the options with a folder that this run's workers share and no other run writes into."""
    if summary.worker(config):
        return dataclasses.replace(given, out=Path(config.workerinput["schedspec-out"]))  # type: ignore[attr-defined]
    if summary.runs_nothing(config):
        return given
    with summary.reporting(config):
        try:
            claim = files.Claim(given.out, named=given.out_is_named)
        except files.FolderTakenError as taken:
            raise pytest.UsageError(str(taken)) from None
        config.add_cleanup(claim.release)
        record.note_run(claim.folder, time.time())
        return dataclasses.replace(given, out=claim.folder)
    return given


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the run's folder to a worker of xdist."""
    node.workerinput["schedspec-out"] = str(config_out(node.config))


def pytest_report_header(config: pytest.Config) -> str:
    """Return the cluster, the scheduler and the options of this run."""
    return config.stash[OPTIONS].header()


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Name the sentences of ours that the project has replaced, and the fixtures that hide short names of ours."""
    hidden = config.stash.setdefault(collection.HIDDEN, set())
    sentences = [f"schedspec: own sentence replaces ours: {pattern}" for pattern in sorted(hidden)]
    shadowed: set[str] = config.stash.setdefault(short_names.SHADOWED, set())
    return [*sentences, *sorted(shadowed)]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect our feature files as test modules."""
    return collection.collect_file(file_path, parent)


@pytest.hookimpl(tryfirst=True)
def pytest_collect_directory(path: Path, parent: pytest.Collector) -> None:
    """Refuse features that pytest would leave out; pytest collects the folder."""
    collection.refuse_left_out(path, parent)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every scenario several times if the scheduler's order is not deterministic."""
    gating.repeat(metafunc, metafunc.config.stash[OPTIONS].runs)


_THREADS_MATTER = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
"""An assertion that fails in a thread of a step fails its scenario; pytest only warns."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip scenarios that need what the scheduler lacks, and store its known differences."""
    chosen = config.stash[OPTIONS]
    try:
        gating.gate(items, chosen.adapter, chosen.kubernetes_version)
        of_features = [item for item in items if bdd.scenario_of(item) is not None]
        for item in of_features:
            item.add_marker(_THREADS_MATTER)
        judged = sum(not item.get_closest_marker("skip") for item in of_features)
        config.stash[scenarios.RECORDS] = chosen.records(judged)
    except HarnessError as problem:
        raise pytest.UsageError(str(problem)) from None


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Refuse a run whose programs are missing, before a cluster boots."""
    config = session.config
    if not (session.testsfailed or summary.runs_nothing(config) or summary.worker(config)):
        _require_programs(config, [item.nodeid for item in session.items if not item.get_closest_marker("skip")])


_REQUIRED = pytest.StashKey[bool]()
"""Whether the programs of this run were checked."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    """Refuse a run of workers whose programs are missing; only workers collect its scenarios.

    Workers run nothing before all of them have collected, so that a preview comes first here, too.
    """
    _require_programs(node.config, ids)


def _require_programs(config: pytest.Config, ids: list[str]) -> None:
    if any(map(collection.is_of_feature, ids)) and not config.stash.get(_REQUIRED, False):
        config.stash[_REQUIRED] = True
        preview.show(config, config.stash[OPTIONS], summary.progress_writer(config))
        _check_programs(config.stash[OPTIONS], summary.progress_writer(config))


@pytest.fixture(scope="session")
def schedspec_live(request: pytest.FixtureRequest) -> Iterator[LiveSession]:
    """Return the session: a cluster with the scheduler under test."""
    config = request.config
    session = LiveSession(
        config.stash[OPTIONS], summary.worker(config), summary.run_of(config), summary.progress_writer(config)
    )
    session.claims = lambda: _claims_of(request.session.items)
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
def schedspec_world(schedspec_live: LiveSession, request: pytest.FixtureRequest) -> Iterator[World]:
    """Yield the scenario's objects: a world that is empty at the start, and emptied at the end."""
    running = scenarios.running(request.node, config_out(request.config))
    running.session = live = schedspec_live
    with live.scenario(running.name) as world:
        running.world, running.facts = world, live.facts
        running.scheduler = (live.options.adapter.title, live.scheduler_version)
        request.config.hook.pytest_schedspec_begins(running=running)
        scenarios.opened(running)
        try:
            yield world
        finally:
            scenarios.wait_for_reasons(running)
            running.cleanup_began = clock.monotonic()


@pytest.fixture
def schedspec_history(schedspec_world: World) -> History:
    """Return all object versions that the cluster has shown since the scenario began."""
    return schedspec_world.history


@pytest.fixture
def schedspec_expect(schedspec_world: World) -> Expect:
    """Return the conditions on the history: `eventually`, `consistently` and `never`."""
    return schedspec_world.expect


def config_out(config: pytest.Config) -> Path:
    """Return the folder for this run's files."""
    return config.stash[OPTIONS].out


def pytest_bdd_before_scenario(request: pytest.FixtureRequest, feature: Any, scenario: Any) -> None:
    """Begin the record of a scenario of ours."""
    if collection.is_ours(request.node):
        scenarios.begin(request.node, feature, scenario, config_out(request.config))


def pytest_bdd_before_step(request: pytest.FixtureRequest, step: Any) -> None:
    """Record that a sentence begins."""
    if collection.is_ours(request.node):
        scenarios.sentence_began(request.node, step)


def pytest_bdd_after_step(request: pytest.FixtureRequest) -> None:
    """Record that a sentence has passed."""
    if collection.is_ours(request.node):
        scenarios.sentence_ended(request.node, None)


def pytest_bdd_step_error(request: pytest.FixtureRequest, exception: BaseException) -> None:
    """Record that a sentence has failed, or could not be judged. Skip the scenario if this cluster does not suit it."""
    if collection.is_ours(request.node):
        scenarios.sentence_ended(request.node, exception)
        if isinstance(exception, UnsuitableClusterError):
            pytest.skip(str(exception))


def pytest_bdd_after_scenario(request: pytest.FixtureRequest) -> None:
    """Run the monitors while the objects still exist."""
    if not collection.is_ours(request.node):
        return
    try:
        scenarios.judge(request.node)
    finally:
        known_differences.settle(request.node)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Replace the traceback of a failure by an explanation."""
    report = yield
    hidden = held_verdicts.hidden(item, call, report)
    if hidden:
        held_verdicts.restore(report, hidden)
    scenarios.explain(item, call, report, config_out(item.config))
    results_writer.attach(item, call, report)
    if report.failed and report.when == "call" and item.config.stash[OPTIONS].pause and SCENARIO_RUN in item.stash:
        progress.pause(item.stash[SCENARIO_RUN], item.config)
    return report
