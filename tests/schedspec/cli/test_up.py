"""`up` prints the cluster's KUBECONFIG, runs with `--reuse-cluster` use the cluster, `down` deletes it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from schedspec import distribution
from schedspec.clusters.programs import binaries

FEATURE = """\
Feature: f
  Scenario: a job runs
    Given the policy "capacity"
    And these nodes:
      | node | cpu | memory |
      | n1   | 2   | 8Gi    |
    And these queues:
      | queue | deserved |
      | team  | cpu 2    |
    When these jobs are submitted:
      | job   | queue | replicas | cpu |
      | train | team  | 2        | 1   |
    Then "train" runs
"""

Call = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def call(tmp_path: Path) -> Iterator[Call]:
    """Yield a function that runs a Python module with its own registry of clusters, which must be empty at the end."""
    environment = {**distribution.environment(), "SCHEDSPEC_STATE": str(tmp_path / "state")}

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=tmp_path,
            env={**environment, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    yield run
    run("schedspec", "down")
    assert run("schedspec", "list").stdout == ""


@pytest.mark.embedded
@pytest.mark.slow
def test_runs_use_the_running_cluster_and_keep_it(call: Call, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "f.feature").write_text(FEATURE)
    up = call("schedspec", "up")
    assert up.returncode == 0, up.stderr
    (line,) = up.stdout.splitlines()  # the input of `eval`
    assert line.startswith("export KUBECONFIG=")
    kubeconfig = line.partition("=")[2]
    for _ in range(2):
        done = call("pytest", "-p", "schedspec.plugin", "-q", "--cluster", "embedded", "--reuse-cluster", "f.feature")
        assert done.returncode == 0, done.stdout
        assert "reusing the running cluster" in done.stdout
        assert "was running already" in done.stdout
    kubectl = binaries.provide(("kubectl",), folder=None, progress=print)["kubectl"].path
    nodes = subprocess.run(
        [kubectl, "get", "nodes"], env={**os.environ, "KUBECONFIG": kubeconfig}, capture_output=True, check=True
    )
    assert b"n1" not in nodes.stdout  # a scenario removes its nodes at its end
    listed = call("schedspec", "list").stdout
    assert "  kept  " in listed
    assert kubeconfig in listed
    down = call("schedspec", "down", listed.split()[0])
    assert (down.returncode, "removed" in down.stderr) == (0, True)
    assert not Path(kubeconfig).exists()
