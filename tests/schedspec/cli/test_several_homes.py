"""Several folders of ours in one repository: each runs and is checked from the root, with what belongs to it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from schedspec import distribution

Call = Callable[..., "subprocess.CompletedProcess[str]"]
FOLDERS = ("batch/queues", "serving")
FEATURE = """\
Feature: Quota of {name}
  Background:
    Given the policy "team"
    And these nodes:
      | node | cpu | memory |
      | n1   | 4   | 8Gi    |
    And these queues:
      | queue | deserved |
      | team  | cpu 2    |

  Scenario: A job runs
    Given a fact of {name}
    When these jobs are submitted:
      | job   | queue | replicas | cpu |
      | train | team  | 1        | 1   |
    Then "train" runs
"""
STEP = 'from pytest_bdd import given\n\n\n@given("a fact of {name}")\ndef _():\n    pass\n'
POLICY = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: capacity\n  - name: predicates\n'


@pytest.fixture
def call(tmp_path: Path) -> Call:
    """Create a repository with two folders of ours; return a function that runs a command at its root."""
    for name in FOLDERS:
        home = tmp_path / name
        for folder in ("features", "policies", "steps"):
            (home / folder).mkdir(parents=True)
        (home / "pytest.ini").write_text(
            "[pytest]\nstrict = true\nschedspec_features = features\nschedspec_policies = policies\n"
            "schedspec_steps = steps\n"
        )
        (home / "features/quota.feature").write_text(FEATURE.format(name=home.name))
        (home / "steps/facts.py").write_text(STEP.format(name=home.name))
        (home / "policies/team.yaml").write_text(POLICY)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = '--an-option-of-theirs'\n")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "schedspec", *arguments]
        environment = {key: value for key, value in distribution.environment().items() if "GITHUB" not in key}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.mark.parametrize("named", [(), tuple(f"{name}/features/quota.feature" for name in FOLDERS)])
def test_every_folder_runs_with_its_own_ini_file_policies_and_sentences(
    call: Call, tmp_path: Path, named: tuple[str, ...]
) -> None:
    done = call("test", *named, "--cluster", "simulated", "-q")
    assert (done.returncode, done.stdout.count("1 passed")) == (0, 2), done.stdout + done.stderr
    assert {path.parent.name for path in (tmp_path / "out/run").glob("*/results.json")} == {"batch-queues", "serving"}


@pytest.mark.parametrize("stands", ["", "serving", "serving/features"])
def test_output_goes_where_the_user_stands(call: Call, tmp_path: Path, stands: str) -> None:
    here = tmp_path / stands
    path = os.path.relpath(tmp_path / "serving/features/quota.feature", here)
    command = [sys.executable, "-P", "-m", "pytest", "-p", "schedspec.plugin", path, "--cluster", "simulated", "-q"]
    done = subprocess.run(
        command, cwd=here, env=distribution.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [found.parents[2] for found in tmp_path.rglob("results.json")] == [here]


def test_a_failure_in_the_first_folder_is_the_exit_status(call: Call, tmp_path: Path) -> None:
    feature = tmp_path / FOLDERS[0] / "features/quota.feature"
    feature.write_text(
        feature.read_text().replace("| train | team  | 1        | 1 ", "| train | team  | 1        | 9 ")
    )
    done = call("test", "--cluster", "simulated", "-q")
    assert (done.returncode, done.stdout.count("1 passed"), done.stdout.count("1 failed")) == (1, 1, 1), done.stdout


def test_check_reads_every_folder_with_its_own_sentences_and_policies(call: Call, tmp_path: Path) -> None:
    done = call("check")
    assert (done.returncode, "2 scenarios, 2 policies: no errors" in done.stdout) == (0, True), done.stdout
    (tmp_path / FOLDERS[1] / "steps/facts.py").write_text("")
    done = call("check")
    assert done.returncode == 1
    assert f"{FOLDERS[1]}/features/quota.feature:12: " in done.stdout
    assert FOLDERS[0] not in done.stdout.partition("quota.feature")[0]


def test_steps_lists_the_sentences_of_every_folder(call: Call) -> None:
    found = call("steps", "fact").stdout
    assert ("a fact of queues" in found, "a fact of serving" in found) == (True, True)


def test_ci_joins_the_results_of_all_folders(call: Call, tmp_path: Path) -> None:
    done = call("ci", "--cluster", "simulated", "--out", "results")
    assert (done.returncode, "2 scenarios passed" in done.stdout) == (0, True), done.stdout + done.stderr
    assert len(json.loads((tmp_path / "results/durations.json").read_text())) == 2
    page = (tmp_path / "results/report.html").read_text()
    assert all(f"Quota of {Path(name).name}" in page for name in FOLDERS)


@pytest.mark.parametrize("option", ["--out=results", "--junitxml=junit.xml", "--shard=1/2"])
def test_an_option_of_one_run_is_refused_where_several_folders_run(call: Call, option: str) -> None:
    done = call("test", option)
    assert (done.returncode, "name one of batch/queues, serving" in done.stderr) == (1, True), done.stderr


@pytest.mark.parametrize("name", ["bad.yaml", "bad.yml", "BAD.YAML", "bad.Yml"])
def test_every_policy_of_a_folder_is_checked_however_its_name_is_written(call: Call, tmp_path: Path, name: str) -> None:
    (tmp_path / FOLDERS[0] / "policies" / name).write_text('actions: "alocate"\ntiers: []\n')
    done = call("check")
    assert (done.returncode, f"{FOLDERS[0]}/policies/{name}:1" in done.stdout) == (1, True), done.stdout


KYVERNO = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: require-labels}
spec:
  rules:
  - name: check
    actions: [deny]
"""
THEIRS = {
    "tests/features/shop.feature": "Feature: Shop\n  Scenario: A book\n    Given a basket\n",
    "serving/unbound/shop.feature": "Feature: Shop\n  Scenario: A book\n    Given a basket\n",
    "policies/require-labels.yaml": KYVERNO,
    "serving/policies/require-labels.yaml": KYVERNO,
    "policies/team.yaml": 'actions: "no such action"\ntiers: []\n',
}


def test_the_hook_of_pre_commit_judges_only_what_belongs_to_us(call: Call, tmp_path: Path) -> None:
    for name, text in THEIRS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (hook,) = yaml.safe_load((Path(__file__).parents[3] / ".pre-commit-hooks.yaml").read_text("utf-8"))
    command, *arguments = hook["entry"].split()
    assert command == "schedspec"
    assert all(re.search(hook["files"], name) for name in THEIRS)
    done = call(*arguments, *THEIRS)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
    assert call("check").returncode == 0
    ours = [f"{FOLDERS[1]}/features/quota.feature", f"{FOLDERS[0]}/policies/team.yaml"]
    assert all(re.search(hook["files"], name) for name in ours)
    for name in ours:
        (tmp_path / name).write_text(
            (tmp_path / name).read_text().replace("runs", "flies").replace("allocate", "alocate")
        )
    done = call(*arguments, *THEIRS, *ours)
    assert done.returncode == 1
    assert all(f"{name}:" in done.stdout for name in ours), done.stdout
    assert not any(f"\n{name}:" in f"\n{done.stdout}" for name in THEIRS), done.stdout


BROKEN = {
    "def f(:": "line 1: invalid syntax",
    "x = 1\nraise RuntimeError('no')": "line 2: RuntimeError: no",
    "import sys\nsys.exit(0)": "line 2: SystemExit: 0",
    "{}['a']": "line 1: KeyError: 'a'",
    "import absent": "No module named 'absent'",
}


@pytest.mark.parametrize("command", ["check", "test", "steps"])
@pytest.mark.parametrize("text", BROKEN)
def test_a_file_of_sentences_that_cannot_be_imported_is_named(
    call: Call, tmp_path: Path, command: str, text: str
) -> None:
    (tmp_path / "serving/steps/broken.py").write_text(text)
    done = call(command, *(("serving",) if command != "steps" else ()))
    printed = done.stdout + done.stderr
    assert done.returncode != 0
    assert f"broken.py: {BROKEN[text]}\n  where: schedspec_steps in the ini file" in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize("command", ["check", "test"])
def test_an_unknown_setting_is_refused_by_every_command(call: Call, tmp_path: Path, command: str) -> None:
    ini = tmp_path / "serving/pytest.ini"
    ini.write_text(ini.read_text().replace("schedspec_features", "schedspec_feature"))
    done = call(command, "serving/features")
    assert done.returncode != 0
    assert "Unknown config option: schedspec_feature" in done.stdout + done.stderr


@pytest.mark.parametrize("place", [":14", ":11:3", "::A job runs"])
def test_one_scenario_runs_with_the_settings_of_its_folder(call: Call, place: str) -> None:
    done = call("test", f"serving/features/quota.feature{place}", "--cluster", "simulated")
    assert "1 passed" in done.stdout, done.stdout


def test_a_named_folder_without_features_is_refused(call: Call, tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    done = call("test", "serving", "tests")
    assert (done.returncode, "no feature is below\n  where: tests" in done.stderr) == (1, True)


OUTPUTS = ("--out=serving", "--out=.", "--out=pyproject.toml", "--out=serving/features", "--junitxml=serving.xml")


@pytest.mark.parametrize("output", OUTPUTS)
def test_results_are_not_written_over_features_or_files(call: Call, tmp_path: Path, output: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    done = call("test", "serving", "--cluster", "simulated", "-p", "no:cacheprovider", output)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"where: {output.partition('=')[0]}" in done.stdout + done.stderr
    assert [path for path in sorted(tmp_path.rglob("*")) if path not in before and "__pycache__" not in str(path)] == []
