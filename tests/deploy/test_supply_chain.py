"""External dependencies are pinned by content: actions by commit, images by digest, packages by hash."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
DIGEST = re.compile(r"@sha256:[0-9a-f]{64}")


def steps(workflow: Path) -> Iterator[dict[str, Any]]:
    for job in yaml.safe_load(workflow.read_text("utf-8"))["jobs"].values():
        yield from job["steps"]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit_with_the_version_as_a_comment(workflow: Path) -> None:
    used = re.findall(r"uses: (?!\./)(\S+)(.*)", workflow.read_text("utf-8"))  # ./ is the Action of this repository
    assert [name for name, _ in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name)] == []
    assert [name for name, comment in used if not re.fullmatch(r" # v\d+\.\d+\.\d+", comment)] == []


def test_the_action_installs_packages_only_by_hash() -> None:
    installs = [
        command
        for step in yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["runs"]["steps"]
        for command in step.get("run", "").replace("\\\n", " ").splitlines()
        if "pip" in command and " install " in command
    ]
    own = [command for command in installs if "--no-deps" in command and "--no-build-isolation" in command]
    assert [command for command in installs if command not in own and "--require-hashes" not in command] == []
    assert len(own) == 1


def test_the_build_system_is_pinned_to_one_version() -> None:
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    assert [it for it in requires if "==" not in it] == []


def test_all_workflows_use_an_action_at_the_same_commit() -> None:
    found: dict[str, set[str]] = {}
    for workflow in WORKFLOWS:
        for step in steps(workflow):
            if "uses" in step and not step["uses"].startswith("./"):
                name, _, commit = step["uses"].partition("@")
                found.setdefault(name, set()).add(commit)
    assert {name: commits for name, commits in found.items() if len(commits) > 1} == {}


def test_the_version_of_go_is_that_of_the_tools() -> None:
    setups = [step["with"] for path in WORKFLOWS for step in steps(path) if "setup-go" in step.get("uses", "")]
    assert setups
    assert {with_["go-version-file"] for with_ in setups} == {"kind-config/tools/kubernetes/go.mod"}
    assert (ROOT / "kind-config/tools/kubernetes/go.mod").is_file()


def test_images_are_pinned_by_digest() -> None:
    nodes = re.findall(r"kindest/node:\S+", (ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
    base = re.findall(r"^ARG BASE=(\S+)", (ROOT / "deploy/Dockerfile").read_text("utf-8"), re.MULTILINE)
    assert len(nodes) == 2
    assert [image for image in (*nodes, *base) if not DIGEST.search(image)] == []


def test_a_release_has_attestations_of_its_build_and_its_contents() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text("utf-8"))
    for job in workflow["jobs"].values():
        attested = [step["with"] for step in job["steps"] if step.get("uses", "").startswith("actions/attest@")]
        assert ["sbom-path" in with_ for with_ in attested] == [False, True]
        assert job["permissions"]["id-token"] == job["permissions"]["attestations"] == "write"


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_job_of_a_workflow_has_only_the_permissions_that_it_declares(workflow: Path) -> None:
    text = yaml.safe_load(workflow.read_text("utf-8"))
    assert text["permissions"] == {}
    assert all("permissions" in job for job in text["jobs"].values())
