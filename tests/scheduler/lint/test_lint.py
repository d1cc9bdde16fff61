"""The warnings of lint, as a table (`lint.yaml`), and the output of its command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from schedspec.scheduler.__main__ import main
from schedspec.scheduler.lint import lint
from schedspec.scheduler.policy.loader import load_policy

CASES = yaml.safe_load((Path(__file__).parent / "lint.yaml").read_text())


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_lint_reports_exactly_the_expected_warnings(case: dict[str, Any]) -> None:
    manifests = [("queues", case["queues"])] if "queues" in case else []
    findings = lint(case["policy"], "conf", manifests)
    texts = [finding.render().replace("warning: ", "").partition(":")[2] for finding in findings]
    assert len(texts) == len(case["warnings"]), "\n".join(texts)
    for text, expected in zip(texts, case["warnings"], strict=True):
        assert text.startswith(expected), f"expected a warning that begins with\n{expected}\nbut found\n{text}"
        assert "; " in text, "a warning names a remedy"


def write(directory: Path, **files: str) -> list[str]:
    paths = []
    for name, text in files.items():
        (directory / name).write_text(text)
        paths.append(str(directory / name))
    return paths


def test_the_command_reports_every_error_and_warning_and_fails_on_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, queues = write(
        tmp_path,
        policy="actions: alocate\ntiers:\n- plugins: [{name: gangg}]\n",
        queues="{kind: Queue, apiVersion: scheduling.volcano.sh/v1beta1, metadata: {name: a},"
        " spec: {deserved: {cpu: 3}, capability: {cpu: 2}}}",
    )
    remedy = "lower deserved or raise capability"
    assert main(["lint", bad, "--queues", queues]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{bad}:1: error: actions: 'alocate': no such action; did you mean allocate?",
        f"{bad}:3: error: tiers[0].plugins[0].name: 'gangg': no such plugin; did you mean gang?",
        f"{queues}:1: error: Queue a.spec.deserved: is more than spec.capability: cpu 3 > 2; {remedy}",
        "3 errors, 0 warnings",
    ]


def test_warnings_fail_only_with_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = write(tmp_path, policy="actions: allocate\ntiers:\n- plugins: [{name: predicates}]\n")
    assert main(["lint", path]) == 0
    assert main(["lint", path, "--strict"]) == 1
    assert "without backfill" in capsys.readouterr().out


def test_queues_and_nodes_may_be_in_several_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy, queues, nodes = write(
        tmp_path,
        policy="actions: allocate, backfill\ntiers:\n- plugins: [{name: predicates}, {name: capacity}]\n",
        queues="{kind: Queue, apiVersion: scheduling.volcano.sh/v1beta1, metadata: {name: a},"
        " spec: {deserved: {cpu: 3}}}",
        nodes="{kind: Node, apiVersion: v1, metadata: {name: n}, status: {allocatable: {cpu: 2}}}",
    )
    assert main(["lint", policy, "--queues", queues, "--queues", nodes]) == 0
    assert "a: 3 cpu of deserved together, the nodes have 2 cpu" in capsys.readouterr().out


def test_a_manifest_that_cannot_be_read_is_an_error_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy, queues = write(
        tmp_path,
        policy="actions: allocate, backfill\ntiers:\n- plugins: [{name: predicates}]\n",
        queues="---\nkind: Node\nmetadata: {name: n}\n---\nkind: Queue\napiVersion: scheduling.volcano.sh/v1beta1\n"
        "metadata: {name: a}\nspec: {deserved: {cpu: four}}\n",
    )
    assert main(["lint", policy, "--queues", queues]) == 1
    assert f"{queues}:8: error: Queue a.spec.deserved.cpu: 'four' is not a quantity" in capsys.readouterr().out


def test_a_manifest_that_is_not_yaml_is_an_error_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy, queues = write(
        tmp_path, policy="actions: allocate\ntiers:\n- plugins: [{name: predicates}]\n", queues="kind: Queue\na: [1\n"
    )
    assert main(["lint", policy, "--queues", queues]) == 1
    assert f"{queues}:3: error: file: not YAML: " in capsys.readouterr().out


def test_a_yaml_tag_in_a_manifest_is_an_error_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy, queues = write(
        tmp_path,
        policy="actions: allocate\ntiers:\n- plugins: [{name: predicates}]\n",
        queues="---\nkind: Node\nmetadata: {name: n}\n---\nkind: Queue\nspec: !foo {weight: 1}\n",
    )
    assert main(["lint", policy, "--queues", queues]) == 1
    assert f"{queues}:5: error: file: not an object: " in (out := capsys.readouterr().out)
    assert "!foo" in out


@pytest.mark.parametrize("content", [None, b"actions: \xff"])
@pytest.mark.parametrize("option", [(), ("--queues",)])
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, option: tuple[str, ...]
) -> None:
    (policy,) = write(tmp_path, policy="actions: allocate\n")
    file = tmp_path / "nothing"
    if content is not None:
        file.write_bytes(content)
    assert main(["lint", *([policy, *option] if option else ()), str(file)]) == 2
    assert f"cannot read {file}: " in capsys.readouterr().err


def test_preempt_without_priority_fails_lint_but_can_be_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "actions: allocate, backfill, preempt\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n"
    (path,) = write(tmp_path, policy=text)
    assert main(["lint", path]) == 1
    assert f"{path}:1: error: actions: without the plugin priority preempt never ends" in capsys.readouterr().out
    assert load_policy(text, path).actions == ("allocate", "backfill", "preempt")
