"""A conftest that hides failures, replaces runs or ends pytest: no run is green, no check shows a traceback."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from schedspec import distribution, results

STEPS = """
import pytest
from pytest_bdd import given, then

@given("nothing")
def nothing(): ...

@then("it fails")
def fails(): assert False, "as it should"
"""
FEATURE = "Feature: f\n  Scenario: s\n    Given nothing\n    Then it fails\n"
WRAPPED = """
@pytest.hookimpl(wrapper=True{order})
def pytest_runtest_makereport(item, call):
    report = yield
    {body}
    return report
"""
PASSED = "report.outcome, report.longrepr = 'passed', None"
SKIPPED = "report.outcome, report.longrepr = 'skipped', ('f', 1, 'Skipped: x')"
NEW = "report = pytest.TestReport(report.nodeid, report.location, report.keywords, 'passed', None, report.when)"
HIDING = {
    "a status of 0": "def pytest_sessionfinish(session): session.exitstatus = 0",
    "a status of 0 at the very end": """
def pytest_sessionstart(session): session.config.kept = session
def pytest_unconfigure(config): config.kept.exitstatus = 0
""",
    "an exit with 0": "def pytest_sessionfinish(): pytest.exit('x', returncode=0)",
    "no failed tests": """
@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session):
    done = yield
    session.testsfailed = 0
    return done
""",
    "a report as passed": WRAPPED.format(order="", body=PASSED),
    "a report as passed, outermost": WRAPPED.format(order=", tryfirst=True", body=PASSED),
    "a report as skipped": WRAPPED.format(order="", body=SKIPPED),
    "another report": WRAPPED.format(order=", tryfirst=True", body=NEW),
    "a logged report as passed": """
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report): report.outcome = "passed"
""",
    "a swallowed error": """
@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    try:
        yield
    except AssertionError:
        pass
""",
    "no call of the function": "def pytest_pyfunc_call(pyfuncitem): return True",
    "another run": """
def pytest_collection_modifyitems(items):
    for item in items: item.runtest = lambda: None
""",
    "another function": """
def pytest_collection_modifyitems(items):
    for item in items: item.obj = lambda **_: None
""",
}
Call = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def call(tmp_path: Path) -> Call:
    (tmp_path / "features").mkdir()
    (tmp_path / "features" / "f.feature").write_text(FEATURE)

    def run(conftest: str, *words: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "conftest.py").write_text(conftest)
        command = [sys.executable, "-P", "-m", "schedspec", *words]
        return subprocess.run(
            command, cwd=tmp_path, env=distribution.environment(), capture_output=True, text=True, check=False
        )

    return run


@pytest.mark.parametrize("hook", HIDING)
def test_no_hook_makes_a_failed_scenario_green(call: Call, tmp_path: Path, hook: str) -> None:
    done = call(STEPS + HIDING[hook], "test", "--cluster", "simulated", "--out=out")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "features/f.feature" in done.stdout
    if hook != "an exit with 0":  # it ends the run before the results are written
        (found,) = [*results.read(tmp_path / "out").results, *results.read(tmp_path / "out").others]
        assert found.verdict in ("failed", "error")


@pytest.mark.parametrize("mark", ["xfail", "skip"])
def test_an_expected_failure_and_a_skip_stay_what_they_are(call: Call, mark: str) -> None:
    hook = f"\ndef pytest_collection_modifyitems(items):\n    items[0].add_marker(pytest.mark.{mark})\n"
    done = call(STEPS + hook, "test", "--cluster", "simulated")
    assert (done.returncode, f"1 {mark}".rstrip("p") in done.stdout) == (0, True), done.stdout + done.stderr


RAISED = ("KeyboardInterrupt", "SystemExit(0)", "GeneratorExit", "BaseException('x')", "RuntimeError('x')")
HOOKS = ("collection_modifyitems", "sessionfinish")
PLACES = {"import": "raise {}\n"} | {hook: f"def pytest_{hook}():\n    raise {{}}\n" for hook in HOOKS}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("raised", RAISED)
def test_a_conftest_that_ends_the_check_is_named(call: Call, place: str, raised: str) -> None:
    done = call(STEPS + PLACES[place].format(raised), "check")
    printed = done.stdout + done.stderr
    assert done.returncode == 1, printed
    assert "Traceback" not in printed
    assert "conftest" in printed


ALONE = "def pytest_bdd_before_scenari(request): ..."
WRONG_HOOKS = {
    ALONE: "there is no hook 'pytest_bdd_before_scenari' (is 'pytest_bdd_before_scenario' meant?)",
    "def pytest_schedspec_juge(running): ...": "(is 'pytest_schedspec_judge' meant?)",
    "def pytest_anything_at_all_of_mine(): ...": "there is no hook 'pytest_anything_at_all_of_mine'",
    "def pytest_bdd_before_step(reqest): ...": "no argument 'reqest' (is 'request' meant?)",
    "@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_call(item): ...": "not a generator function",
    "@pytest.hookimpl(wrapper=True, hookwrapper=True)\ndef pytest_runtest_call(item): yield": "mutually exclusive",
    "@pytest.hookimpl(wrapper=True)\ndef pytest_addoption(parser): yield": "historic",
}
PLUGINS = {"features/below/conftest.py": (), "own/steps.py": ("-o", "schedspec_steps=own")}
RUNS = {"check": (), "test": ("--cluster", "simulated")}


def is_named(done: subprocess.CompletedProcess[str], place: str, text: str) -> None:
    printed = done.stdout + done.stderr
    assert done.returncode not in (0, None), printed
    assert "Traceback" not in printed
    assert "INTERNALERROR" not in printed
    assert f"{place}: " in printed
    assert text in printed


@pytest.mark.parametrize("command", RUNS)
@pytest.mark.parametrize("hook", WRONG_HOOKS)
def test_a_wrong_hook_is_named_with_the_nearest_one(call: Call, command: str, hook: str) -> None:
    is_named(call(f"import pytest\n{hook}\n", command, *RUNS[command]), "conftest.py:2", WRONG_HOOKS[hook])


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize("hook", [ALONE, "def pytest_bdd_before_step(reqest): ..."])
def test_a_wrong_hook_of_any_plugin_is_named(call: Call, tmp_path: Path, plugin: str, workers: str, hook: str) -> None:
    (tmp_path / plugin).parent.mkdir(parents=True)
    (tmp_path / plugin).write_text(f"\n{hook}\n")
    (tmp_path / "features" / "below").mkdir(exist_ok=True)
    (tmp_path / "features" / "below" / "g.feature").write_text(FEATURE)
    done = call(STEPS, "test", *RUNS["test"], workers, *PLUGINS[plugin])
    is_named(done, f"{plugin}:2", WRONG_HOOKS[hook])


@pytest.mark.parametrize("command", RUNS)
def test_an_option_of_a_conftest_that_is_ours_is_named(call: Call, command: str) -> None:
    own = "def pytest_addoption(parser):\n    parser.addoption('--out')\n"
    is_named(call(own, command, *RUNS[command]), "conftest.py:2", "conflicting option string: --out")


ENDS = (
    "sys.exit(3)",
    "sys.exit(0)",
    "sys.exit('no cluster')",
    "exit()",
    "raise GeneratorExit",
    "raise asyncio.CancelledError",
    "argparse.ArgumentParser().parse_args(['--wrong'])",
)


def test_a_step_that_ends_python_fails_in_one_sentence(call: Call, tmp_path: Path) -> None:
    steps = "".join(f'@then("it ends by {number}")\ndef _(): {ends}\n' for number, ends in enumerate(ENDS))
    scenarios = "".join(f"  Scenario: s{number}\n    Then it ends by {number}\n" for number in range(len(ENDS)))
    (tmp_path / "features" / "f.feature").write_text(f"Feature: f\n{scenarios}")
    done = call(f"import argparse, asyncio, sys\nfrom pytest_bdd import then\n{steps}", "test", *RUNS["test"], "-rN")
    assert done.returncode == 1, done.stdout + done.stderr
    for number in range(len(ENDS)):
        place = f"features/f.feature:{3 + 2 * number}: Then it ends by {number}\n  conftest.py:{4 + 2 * number}: "
        assert f"{place}this raised " in done.stdout, done.stdout
    assert done.stdout.count("do next: raise an AssertionError, or call pytest.fail or pytest.skip") == len(ENDS)
    assert "fixture" not in done.stdout
