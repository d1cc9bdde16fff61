"""The step of `action.yml` that plans a pull request, run as a runner does; the workflow of `init` uses its inputs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from schedspec import distribution
from schedspec.cli import init
from tests.schedspec.lab.plan.test_plan import team

ROOT = Path(__file__).parents[4]
__all__ = ["team"]


@pytest.fixture(scope="module")
def action() -> Any:
    return yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))


@pytest.mark.parametrize(
    "arguments",
    [
        "--model --max-age 100000d --fail-on evictions>0",
        "--model\n--max-age 100000d\n--fail-on 'evictions>0'\n",
        '--model --max-age "100000d" --fail-on "evictions>0"',
    ],
    ids=["words", "lines", "quotes"],
)
def test_the_step_finds_the_change_of_a_pull_request(action: Any, team: Path, arguments: str) -> None:
    (step,) = (step for step in action["runs"]["steps"] if '/schedspec" plan' in step.get("run", ""))
    command = team / "temp" / "schedspec" / "bin" / "schedspec"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m schedspec "$@"\n')
    command.chmod(0o755)
    (command.parent / "python").symlink_to(sys.executable)
    given = {
        "SCHEDSPEC_PLAN_STATE": "state.json",
        "SCHEDSPEC_PLAN_ARGUMENTS": arguments,
        "SCHEDSPEC_PLAN_BASE": "main~1",
        "SCHEDSPEC_PLAN_SCHEDULER": "",
    }
    assert given.keys() == step["env"].keys()
    summary = {"RUNNER_TEMP": str(team / "temp"), "GITHUB_STEP_SUMMARY": str(team / "summary.md")}
    environment = {**distribution.environment(), **given, **summary}
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]],
        cwd=team, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "* Queue a: deserved nvidia.com/gpu 1 → nvidia.com/gpu 2" in (team / "summary.md").read_text("utf-8")
    assert (team / "out" / "schedspec" / "plan" / "plan.html").is_file()


@pytest.mark.parametrize(
    ("plan", "comment", "arguments", "refused"),
    [
        ("false", "false", "", ""),
        ("true", "true", "--model", ""),
        ("true", "false", "", ""),
        *((word, "false", "", f"plan: {word} is neither") for word in ("yes", "True", "1", "", "on", "true false")),
        *(("true", word, "", f"plan-comment: {word} is neither") for word in ("yes", "True", "")),
        ("tr\nue", "false", "", "plan: tr ue is neither"),
        ("false", "true", "", "plan-comment: true does nothing without plan: true"),
        ("false", "false", "--model", "plan-arguments do nothing without plan: true"),
    ],
)
def test_inputs_of_a_plan_that_nothing_reads_are_refused(
    action: Any, plan: str, comment: str, arguments: str, refused: str
) -> None:
    step = action["runs"]["steps"][0]
    given = dict(zip(("PLAN", "COMMENT", "ARGUMENTS"), (plan, comment, arguments), strict=True))
    assert given.keys() == step["env"].keys()
    command = ["bash", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2 if refused else 0, "")
    assert done.stdout.startswith(f"::error title=schedspec::{refused}" if refused else "")
    assert len(done.stdout.splitlines()) == bool(refused)


def test_the_workflow_of_init_names_inputs_of_the_action(action: Any) -> None:
    text = (Path(init.__file__).parent / "beginning" / "workflow-action.yml").read_text("utf-8")
    shown = re.findall(r"^ +# ((?:plan|state)[a-z-]*): ", text, re.MULTILINE)
    assert {"plan", "state", "plan-arguments"} <= {*shown}
    assert {*shown} <= action["inputs"].keys()
