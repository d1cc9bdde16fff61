"""The wheel in a foreign project: the project's steps, templates and policies work beside ours, from any folder."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from schedspec.scheduler.controllers.runtime.objects import JOBS
from schedspec.scheduler.kube import PODS
from tests.e2e.conftest import ROOT, Call, Environment, Start
from tests.support.live.api_objects import client_of, fresh_cluster, prepare

FILES = {
    "features/lent.feature": """\
Feature: What a team lends comes back

  Background:
    Given the policy "house"
    And these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |
    And a queue "lent" that deserves 1 cpu
    And a queue "own" that deserves 3 cpu

  Rule: The owner is served

    Scenario: The owner gets three cpus back
      Given these jobs run:
        | job  | queue | replicas | min available | cpu |
        | loan | lent  | 4        | 1             | 1   |
      When these jobs are submitted:
        | job   | queue | replicas | cpu |
        | build | own   | 3        | 1   |
      Then "build" runs
      And exactly 3 pods are evicted, once each
      And "loan" is poorer
""",
    "steps/__init__.py": "",
    "steps/common.py": 'LOAN = "loan"\n',
    "steps/house.py": '''\
from schedspec.api import timeouts
from schedspec.checks import pods
from schedspec.gherkin.step_decorators import given, then
from schedspec.observe.expect import Expect
from schedspec.scenario.world import World

from steps.common import LOAN


@given('a queue "{name}" that deserves {cpu:d} cpu')
def _(world: World, name: str, cpu: int) -> None:
    """A queue of the house."""
    world.apply("housequeue", name=name, cpu=cpu)


@then('"{name}" is poorer')
def _(expect: Expect, name: str) -> None:
    """One pod is left."""
    assert name == LOAN
    expect.eventually(pods.count_runs(name, 1), within=timeouts.RUNS)


@then('"{name}" {what:w}')
def _(expect: Expect, name: str, what: str) -> None:
    """In the place of a sentence that is shipped."""
    print("the project's own")
    expect.eventually(pods.runs(name), within=timeouts.RUNS)
''',
    "templates/housequeue.yaml.j2": """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata:
  name: {{ name }}
spec:
  deserved:
    cpu: {{ cpu }}
""",
    "scheduler/__init__.py": "raise ImportError('the user has another scheduler')\n",
    "pytest.ini": "[pytest]\nschedspec_steps = steps\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Create a project with a feature, steps, a template, a policy, and packages of the same names as ours."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "policies").mkdir()
    shutil.copy(ROOT / "templates/policies/capacity.yaml", tmp_path / "policies/house.yaml")
    return tmp_path


def test_the_wheel_installs_only_the_package_schedspec(environment: Environment) -> None:
    names = {path.name for path in environment.site.iterdir()}
    assert {name for name in names if not name.startswith(("pip", "_", "dependencies"))} == {
        "schedspec",
        "schedspec-0.1.0.dist-info",
    }


@pytest.mark.parametrize(
    "part", ["steps", "scheduler", "templates/policies", "scheduler/crds", "kind-config/stages/beside-kubelets"]
)
def test_the_package_contains_all_parts(environment: Environment, part: str) -> None:
    assert (environment.site / "schedspec" / part).is_dir()


def test_a_project_is_collected_and_replaced_parts_of_ours_are_named_once(project: Path, call: Call) -> None:
    (project / "templates/queue.yaml.j2").write_text("")
    done = call("pytest", "--collect-only", "-q", "-n0")
    assert done.returncode == 0, done.stdout
    assert "::The owner is served::The owner gets three cpus back" in done.stdout
    assert done.stdout.count('own sentence replaces ours: "{name}" runs') == 1
    assert call("pytest", "--collect-only").stdout.count("own templates replace ours: queue.yaml.j2") == 1


@pytest.mark.parametrize(("selection", "found"), [("lent.feature:21", 1), ("lent.feature::The owner is served", 1)])
def test_a_line_or_a_name_selects_a_scenario_from_another_folder(
    project: Path, call: Call, selection: str, found: int
) -> None:
    done = call("pytest", "--collect-only", "-q", selection, cwd=project / "features")
    assert f"{found} test collected" in done.stdout, done.stdout


@pytest.mark.parametrize("settings", ["[pytest]\n", FILES["pytest.ini"]], ids=["alone", "beside a setting"])
def test_a_conftest_may_also_load_the_plugin(project: Path, call: Call, settings: str) -> None:
    (project / "pytest.ini").write_text(settings)
    (project / "conftest.py").write_text('pytest_plugins = ["schedspec.plugin"]\n')
    (project / "features/lent.feature").write_text(
        "Feature: f\n  Scenario: s\n    Given these nodes:\n"
        "      | node | cpu | memory |\n      | n1   | 4   | 8Gi    |\n"
        "    And these jobs run:\n      | job | cpu |\n      | own | 1   |\n    Then nothing is evicted\n"
    )
    done = call("pytest", "--collect-only", "-q")
    assert (done.returncode, "1 test collected" in done.stdout) == (0, True), done.stdout


def test_a_run_without_our_features_imports_only_the_plugins_entry_point(tmp_path: Path, call: Call) -> None:
    test = "import sys\n\ndef test_it():\n    assert [it for it in sys.modules if 'schedspec' in it] == {}\n"
    (tmp_path / "test_it.py").write_text(test.format(["schedspec", "schedspec.plugin"]))
    (tmp_path / "it.feature").write_text("Feature: f\n  Scenario: s\n    Given nothing\n")
    done = call("pytest", "-q", "-n0")
    assert "1 passed" in done.stdout, done.stdout


def test_a_steps_module_that_cannot_be_imported_is_a_usage_error(project: Path, call: Call) -> None:
    (project / "steps/broken.py").write_text("import a_module_that_nobody_has\n")
    done = call("pytest", "--collect-only", "-q")
    assert done.returncode == 4, done.stdout
    assert "No module named 'a_module_that_nobody_has'\n  where: schedspec_steps in the ini file" in done.stdout


@pytest.fixture
def passes(project: Path, call: Call) -> Callable[..., str]:
    """Return a function that runs the project's feature from another folder and returns pytest's output."""

    def run(*arguments: str) -> str:
        done = call("pytest", "-rP", *arguments, "lent.feature:21", cwd=project / "features")
        assert done.returncode == 0, done.stdout
        return done.stdout

    return run


@pytest.mark.embedded
@pytest.mark.slow
def test_a_project_passes_on_the_embedded_cluster(passes: Callable[..., str]) -> None:
    assert "the project's own" in passes("--cluster", "embedded")


@pytest.mark.kind
@pytest.mark.slow
@pytest.mark.nightly
def test_a_project_passes_on_kind(passes: Callable[..., str]) -> None:
    assert "the project's own" in passes("--cluster", "kind")


def test_init_in_an_empty_folder_creates_a_valid_project(tmp_path: Path, call: Call) -> None:
    assert "written      features/lending.feature" in call("schedspec", "init").stdout
    done = call("schedspec", "check")
    assert (done.returncode, "2 scenarios, 1 policy: no errors" in done.stdout) == (0, True), done.stdout
    assert {path.name for path in tmp_path.iterdir()} >= {
        "features",
        "policies",
        "steps",
        ".github",
        "pytest.ini",
    }


def test_the_shipped_features_can_be_copied_into_a_project(tmp_path: Path, call: Call) -> None:
    shutil.copytree(call("schedspec", "features").stdout.strip(), tmp_path / "features")
    done = call("schedspec", "test", "--collect-only", "-q", "features/gang")
    assert (done.returncode, "13 tests collected" in done.stdout) == (0, True), done.stdout


def test_the_scheduler_is_found_beside_a_package_of_the_same_name(project: Path, call: Call) -> None:
    done = call("schedspec", "scheduler", "lint", "policies/house.yaml")
    assert (done.returncode, "0 errors" in done.stdout) == (0, True), done.stdout


@pytest.mark.embedded
@pytest.mark.slow
def test_scheduler_and_controllers_run_as_two_processes(environment: Environment, start: Start) -> None:
    policy = environment.site / "schedspec/templates/policies/default.yaml"
    container = {"name": "main", "image": "worker", "resources": {"requests": {"cpu": "1"}}}
    task = {"name": "t", "replicas": 2, "template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
    job = {"metadata": {"name": "build"}, "spec": {"minAvailable": 2, "schedulerName": "schedspec", "tasks": [task]}}

    async def run(kubeconfig: Path) -> None:
        async with client_of(kubeconfig) as client:
            await prepare(client, 1, [])
            given = ("--kubeconfig", kubeconfig, "--listen", "127.0.0.1:0")
            control = start("schedspec", "scheduler", "controllers", *given)
            schedule = start("schedspec", "scheduler", "run", *given, "--policy", policy, "--controllers", "none")
            await client.create(JOBS, job, "default")
            async with asyncio.timeout(60):
                while len([pod for pod in (await client.list(PODS)).items if pod.spec.node_name]) < 2:
                    assert (control.poll(), schedule.poll()) == (None, None)
                    await asyncio.sleep(0.1)

    with fresh_cluster() as kubeconfig:
        asyncio.run(run(kubeconfig))


@pytest.mark.embedded
@pytest.mark.slow
def test_a_new_project_passes_on_the_embedded_cluster(call: Call) -> None:
    call("schedspec", "init")
    done = call("schedspec", "ci", "--cluster", "embedded")
    assert done.returncode == 0, done.stdout
    assert "schedspec embedded: 2 scenarios passed" in done.stdout
