"""Progress on a terminal while features run; a log file contains none of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from schedspec import distribution
from schedspec.clusters.programs import binaries
from tests.support.terminal import Terminal

STEPS = '''
import time
from schedspec.gherkin.step_decorators import given as own_given, then as own_then

@own_given("it takes a while")
def _():
    """Take a second."""
    time.sleep(1)

@own_then("it is done")
def _():
    """The work is done."""
'''
QUICK = """\
Feature: f
  Scenario: slow
    Given it takes a while
    Then it is done
"""
LIVE = """\
Feature: f
  Background:
    Given the policy "capacity"
    And these nodes:
      | node | cpu | memory |
      | n1   | 2   | 8Gi    |
    And these queues:
      | queue | deserved |
      | team  | cpu 2    |
  Scenario: too large
    When these jobs are submitted:
      | job   | queue | replicas | min available | cpu |
      | large | team  | 3        | 1             | 1   |
    Then "large" runs
"""


def environment() -> dict[str, str]:
    return {name: value for name, value in distribution.environment().items() if not name.startswith(("PYTEST", "CI"))}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-p", "schedspec.plugin", "-p", "no:cacheprovider", *arguments]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text(STEPS)
    (tmp_path / "quick.feature").write_text(QUICK)
    (tmp_path / "live.feature").write_text(LIVE)
    return tmp_path


def test_each_sentence_is_shown_while_it_runs(project: Path) -> None:
    with Terminal(command("-v", "quick.feature"), cwd=project, env=environment()) as terminal:
        terminal.wait_for("… Given it takes a while")
        terminal.wait_for(r"✓ Given it takes a while +1\.\d s")
        terminal.wait_for("✓ Then it is done")
        assert terminal.ended() == 0


def test_no_sentence_is_shown_without_v_or_in_a_log(project: Path) -> None:
    with Terminal(command("quick.feature"), cwd=project, env=environment()) as terminal:
        assert terminal.ended() == 0
        assert "it takes a while" not in terminal.shown
    log = subprocess.run(
        command("-v", "quick.feature"), cwd=project, env=environment(), capture_output=True, text=True, check=True
    )
    assert "it takes a while" not in log.stdout + log.stderr
    assert "\r" not in log.stdout


@pytest.fixture
def cluster(project: Path) -> Iterator[dict[str, str]]:
    """Yield an environment with a state folder of its own; afterwards no cluster is listed there."""
    yield {**environment(), "SCHEDSPEC_STATE": str(project / "state")}
    left = subprocess.run(
        [sys.executable, "-m", "schedspec", "list"],
        env={**environment(), "SCHEDSPEC_STATE": str(project / "state")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert left.stdout == ""


@pytest.mark.embedded
@pytest.mark.slow
def test_ctrl_c_prints_the_condition_that_was_awaited(project: Path, cluster: dict[str, str]) -> None:
    pytest_command = command("-v", "--cluster", "embedded", "--timeout-scale", "20", "live.feature")
    with Terminal(pytest_command, cwd=project, env=cluster) as terminal:
        terminal.wait_for('✓ Given the policy "capacity"')  # after the boot that this sentence needs
        terminal.wait_for('… Then "large" runs .* · 2 of 3 run')
        terminal.interrupt()
        assert terminal.ended() == pytest.ExitCode.INTERRUPTED
        terminal.wait_for(r'interrupted at live\.feature:14: Then "large" runs, after \d+\.\d s')
        terminal.wait_for("expected: .*large")
        terminal.wait_for("seen: 2 of 3 run")


@pytest.mark.embedded
@pytest.mark.slow
def test_a_paused_run_leaves_the_cluster_until_enter_is_pressed(project: Path, cluster: dict[str, str]) -> None:
    pytest_command = command("--cluster", "embedded", "--timeout-scale", "0.2", "--pause-on-failure", "live.feature")
    with Terminal(pytest_command, cwd=project, env=cluster) as terminal:
        kubeconfig = terminal.wait_for(r"export KUBECONFIG=(\S+)")[1]
        looks = terminal.wait_for(r"kubectl (--namespace \S+ get pods),podgroups\S+")[1].split()
        terminal.wait_for("press Enter to continue")
        kubectl = binaries.provide(("kubectl",), folder=None, progress=print)["kubectl"].path
        found = subprocess.run(
            [kubectl, *looks], env={**os.environ, "KUBECONFIG": kubeconfig}, capture_output=True, check=False
        )
        assert found.stdout.count(b"large-task-") == 3, found
        terminal.type("\n")
        assert terminal.ended() == pytest.ExitCode.TESTS_FAILED
        terminal.wait_for('live.feature:14: Then "large" runs')
    assert not Path(kubeconfig).exists()
