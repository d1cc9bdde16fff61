"""pytest within our commands: without a reader of its output, and ended before its scenarios."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from schedspec import distribution
from schedspec.cli import output

FULL = "standard output: No space left on device\n"
WAYS = {">/dev/full": (1, FULL), "| true": (1, ""), ">&-": (0, "")}
"""What a shell does with standard output; the status and standard error of the command."""
COMMANDS = {
    "a command": "-m schedspec steps",
    "help": "-m schedspec plan --help",
    "pytest of a command": "-m schedspec test here --collect-only",
    "a command of the scheduler": "-m schedspec scheduler lint here/policy.yaml",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("buffered", [True, False], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_lost_standard_output_gives_no_traceback(tmp_path: Path, command: str, way: str, buffered: bool) -> None:
    (tmp_path / "here").mkdir()
    text = "Feature: F\n  Scenario: S\n    When these jobs are submitted:\n      | job |\n      | j |\n"
    (tmp_path / "here" / "f.feature").write_text(f'{text}    Then "j" runs\n')
    (tmp_path / "here" / "policy.yaml").write_text(distribution.folder("templates/policies/capacity.yaml").read_text())
    line = f"{sys.executable} {COMMANDS[command]} {way}"
    environment = distribution.environment() | {"PYTHONUNBUFFERED": "" if buffered else "1"}
    shell = ["bash", "-c", f"{line}; exit ${{PIPESTATUS[0]}}"]
    ended = subprocess.run(shell, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr) == WAYS[way]


def test_pytest_of_a_command_is_that_of_python_m_pytest(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("")
    test = "import mine, sys\n\ndef test_it():\n    print(sys.path[0])\n    assert [1] == [2]\n"
    (tmp_path / "test_it.py").write_text(test)
    (tmp_path / "tox.ini").write_text("[pytest]\nfilterwarnings = error\n")
    words = ["-p", "no:cacheprovider", "--import-mode=importlib", "test_it.py"]
    printed = [
        subprocess.run(
            command, cwd=tmp_path, env=distribution.environment(), capture_output=True, text=True, check=False
        )
        for command in (
            output.pytest_command(*words),
            [sys.executable, "-m", "pytest", "-p", "schedspec.plugin", *words],
        )
    ]
    ours, theirs = (re.sub(r"in [0-9.]+s", "", one.stdout + one.stderr) for one in printed)
    assert "At index 0 diff: 1 != 2" in ours
    assert ours == theirs


@pytest.mark.parametrize("way", [">/dev/full", ">&-"])
def test_an_error_of_another_file_is_not_one_of_standard_output(tmp_path: Path, way: str) -> None:
    program = "from schedspec.cli import output\noutput.run(lambda: open('/dev/full', 'w', 1).write('x\\n'))\n"
    (tmp_path / "program.py").write_text(program)
    ended = subprocess.run(
        ["bash", "-c", f"{sys.executable} program.py {way}"],
        cwd=tmp_path,
        env=distribution.environment() | {"PYTHONUNBUFFERED": os.environ.get("PYTHONUNBUFFERED", "")},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (ended.returncode, "Traceback" in ended.stderr, FULL in ended.stderr) == (1, True, False)


EARLY_ENDS = {
    "a step ends the process": ("steps/own.py", "import os\n    os._exit(0)"),
    "a step ends pytest": ("steps/own.py", "import pytest\n    pytest.exit('enough', 0)"),
    "a conftest ends the process": ("conftest.py", "import os\nos._exit(0)"),
    "a conftest exits": ("conftest.py", "import sys\nsys.exit(0)"),
    "a hook runs no scenario": ("conftest.py", "def pytest_runtest_protocol():\n    return True"),
    "a hook runs no loop": ("conftest.py", "def pytest_runtestloop():\n    return True"),
    "the last function of a failed run": ("conftest.py", "import atexit, os\natexit.register(os._exit, 0)"),
}
"""What ends a run of two scenarios, of which the second one fails: a file of the project, and its text."""
STEP = """from schedspec.gherkin.step_decorators import when

@when("the end comes")
def end() -> None:
    \"\"\"End the run.\"\"\"
    """


FEATURE = """Feature: F
  Background:
    Given the policy "capacity"
    And these nodes:
      | node | cpu | memory | gpus |
      | n1   | 32  | 256Gi  | 4    |
    And these queues:
      | queue | deserved |
      | team  | gpus 2   |
    When these jobs are submitted:
      | job | queue | gpus |
      | j   | team  | 1    |

  Scenario: First
    {}Then "j" runs

  Scenario: Second
    Then "j" stays pending
"""


@pytest.mark.parametrize("ending", EARLY_ENDS)
def test_a_run_that_ends_before_its_scenarios_does_not_pass(tmp_path: Path, ending: str) -> None:
    file, text = EARLY_ENDS[ending]
    (tmp_path / "steps").mkdir()
    (tmp_path / "steps/own.py").write_text(STEP)
    (tmp_path / "f.feature").write_text(FEATURE.format("When the end comes\n    " if "step" in file else ""))
    (tmp_path / "pytest.ini").write_text("[pytest]\nschedspec_features = f.feature\nschedspec_steps = steps\n")
    with (tmp_path / file).open("a") as stream:
        stream.write(text + "\n")
    ended = subprocess.run(
        [sys.executable, "-m", "schedspec", "test", "--cluster", "simulated"],
        cwd=tmp_path,
        env=distribution.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ended.returncode in {1, 2}, ended.stdout
    assert any(told in ended.stdout for told in ("os._exit or sys.exit", "without a verdict", "1 failed")), ended.stdout


@pytest.mark.parametrize("command", ["test", "check", "ci"])
def test_a_variable_of_pytest_that_cannot_be_read_is_named(tmp_path: Path, command: str) -> None:
    (tmp_path / "f.feature").write_text(FEATURE.format(""))
    ended = subprocess.run(
        [sys.executable, "-m", "schedspec", command],
        cwd=tmp_path,
        env=distribution.environment() | {"PYTEST_ADDOPTS": '-k "x'},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[:2] == [
        "pytest cannot read its options: No closing quotation",
        "  where: PYTEST_ADDOPTS",
    ]


@pytest.mark.parametrize("command", ["test", "check", "init", "steps", "ci"])
def test_a_working_directory_that_was_removed_is_named(tmp_path: Path, command: str) -> None:
    (tmp_path / "gone").mkdir()
    ended = subprocess.run(
        ["bash", "-c", f"cd gone && rmdir ../gone && exec {sys.executable} -P -m schedspec {command}"],
        cwd=tmp_path,
        env=distribution.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith("the working directory does not exist any more\n  do next: ")


@pytest.mark.parametrize("option", ["--collect-only", "--setup-only", "--setup-plan"])
def test_a_run_that_only_shows_its_plan_passes_no_scenario(tmp_path: Path, option: str) -> None:
    (tmp_path / "f.feature").write_text(FEATURE.format(""))
    ended = subprocess.run(
        [sys.executable, "-m", "schedspec", "ci", "--cluster", "simulated", "--arguments", f"f.feature {option}"],
        cwd=tmp_path,
        env=distribution.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1, ended.stdout
    assert "before it wrote out/ci/results.json" in ended.stderr
    assert not (tmp_path / "out/ci/results.json").exists()
