"""Where programs have to be built, a terminal first shows the same features in the simulated cluster."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from schedspec import distribution
from tests.support.terminal import Terminal

FEATURE = """\
Feature: f
  Scenario: a job runs
    Given these nodes:
      | node | cpu | memory |
      | n1   | 2   | 8Gi    |
    When these jobs are submitted:
      | job   | replicas | cpu |
      | train | 2        | 1   |
    Then "train" runs
"""
GO = """\
#!/bin/sh
case "$1" in
  build) echo "the preview came first"; exit 1 ;;
  env) echo /nowhere ;;
esac
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return the variables of a machine whose Go fails when it builds, with an empty cache."""
    (tmp_path / "f.feature").write_text(FEATURE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/go").write_text(GO)
    (tmp_path / "bin/go").chmod(0o755)
    found = {**distribution.environment(), "SCHEDSPEC_CACHE": str(tmp_path / "cache")}
    found.pop("SCHEDSPEC_BINARIES", None)
    return {**found, "PATH": f"{tmp_path / 'bin'}:{found['PATH']}", "https_proxy": "http://127.0.0.1:9"}


COMMAND = [sys.executable, "-m", "schedspec", "test", "f.feature", "--cluster", "embedded", "--keep-cluster"]


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "workers"])
def test_a_terminal_shows_one_preview_before_programs_are_built(
    tmp_path: Path, environment: dict[str, str], workers: list[str]
) -> None:
    with Terminal([*COMMAND, *workers], cwd=tmp_path, env=environment) as terminal:
        status = terminal.ended()
        shown = terminal.shown
    places = [re.search(text, shown) for text in (
        r"kwokctl: not built yet. First a preview: the same features in the simulated cluster",
        r"1 passed", r"without exit status and record", r"made now, once; elsewhere that took 2 to 8 minutes",
        r"the preview came first",
    )]  # fmt: skip
    assert all(places), shown
    assert [it.start() for it in places if it] == sorted(it.start() for it in places if it), shown
    assert shown.count("First a preview") == 1
    assert status == 1, "the preview passed, the run did not"
    assert not [path for path in tmp_path.rglob("results.json") if "simulated" in path.read_text()]


def test_a_log_has_no_preview(tmp_path: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(COMMAND, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "preview:" not in done.stdout + done.stderr.replace("the preview came first", "")
    assert "simulated" not in done.stdout
