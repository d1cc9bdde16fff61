"""No command leaves a process of pytest behind, and a long check says what it does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from schedspec import distribution
from tests.support.terminal import Terminal

FEATURE = "Feature: f\n  Scenario: s\n    Given nothing\n"
COMMANDS = {
    "check": ("check",),
    "steps": ("steps",),
    "test": ("test", "--cluster", "simulated"),
    "ci": ("ci", "--cluster", "simulated"),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "features").mkdir()
    (tmp_path / "features" / "f.feature").write_text(FEATURE)
    return tmp_path


@pytest.mark.skipif(sys.platform != "linux", reason="needs the Linux kernel's PDEATHSIG")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_is_ended_takes_its_pytest_with_it(project: Path, command: str) -> None:
    (project / "conftest.py").write_text("import os, time\nopen(f'pid-{os.getpid()}', 'w').close()\ntime.sleep(600)\n")
    words = [sys.executable, "-P", "-m", "schedspec", *COMMANDS[command]]
    environment = {**distribution.environment(), "GITHUB_OUTPUT": os.devnull}
    with subprocess.Popen(
        words, cwd=project, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as parent:
        while not (found := [*project.glob("pid-*")]):
            assert parent.poll() is None
            time.sleep(0.05)
        child = psutil.Process(int(found[0].name.removeprefix("pid-")))
        assert child.pid != parent.pid
        parent.send_signal(signal.SIGTERM)
    _, alive = psutil.wait_procs([child], timeout=20)
    for process in alive:
        process.kill()
    assert alive == []


def test_a_long_check_shows_on_a_terminal_what_it_does(project: Path) -> None:
    (project / "conftest.py").write_text("import time\ntime.sleep(3)\n")
    words = [sys.executable, "-P", "-m", "schedspec", "check"]
    with Terminal(words, cwd=project, env=distribution.environment()) as terminal:
        terminal.wait_for(r"collecting: no files and folders read, \d+ s")
        terminal.wait_for(r"no errors|\d errors?")
