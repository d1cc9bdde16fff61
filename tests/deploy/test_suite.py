"""The suite as an Indexed Job: the privileges of its pods, its shards, their collection, and runs on Kind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.images import suite_image
from schedspec import distribution
from schedspec.clusters import Settings, provide
from schedspec.clusters.docker import Docker
from schedspec.clusters.paths import kind_config
from schedspec.clusters.programs import binaries

ROOT = Path(__file__).parents[2]
SUITE = ROOT / "deploy" / "suite"


@pytest.fixture
def job() -> dict[str, Any]:
    spec: dict[str, Any] = yaml.safe_load((SUITE / "job.yaml").read_text("utf-8"))["spec"]
    return spec


@pytest.fixture
def container(job: dict[str, Any]) -> dict[str, Any]:
    (only,) = job["template"]["spec"]["containers"]
    return dict(only)


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}")
    (folder / name).chmod(0o755)


def test_a_shard_is_a_pod_without_any_privilege(job: dict[str, Any], container: dict[str, Any]) -> None:
    pod = job["template"]["spec"]
    assert (pod["securityContext"]["runAsNonRoot"], pod["automountServiceAccountToken"]) == (True, False)
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    assert {kind for volume in pod["volumes"] for kind in volume} == {"name", "emptyDir"}
    namespace = yaml.safe_load((SUITE / "namespace.yaml").read_text("utf-8"))
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_every_shard_is_one_pod(job: dict[str, Any], container: dict[str, Any]) -> None:
    variables = {it["name"]: it["value"] for it in container["env"]}
    assert job["completionMode"] == "Indexed"
    assert str(job["completions"]) == str(job["parallelism"]) == variables["SHARDS"]
    assert job["backoffLimitPerIndex"] == 0


@pytest.mark.parametrize("status", [0, 1])
def test_a_shard_writes_its_status_and_waits_until_its_results_are_fetched(tmp_path: Path, status: int) -> None:
    program(tmp_path, "python3", f'printf "%s " "$@" > "$RESULTS/arguments"\nexit {status}\n')
    variables = {"RESULTS": str(tmp_path), "JOB_COMPLETION_INDEX": "1", "SHARDS": "3", "FEATURES": "features"}
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    shard = subprocess.Popen([SUITE / "shard"], env={"PATH": path, "KEEP_SECONDS": "60", **variables})
    with pytest.raises(subprocess.TimeoutExpired):
        shard.wait(2)
    assert (tmp_path / "status").read_text() == f"{status}\n"
    (tmp_path / "fetched").touch()
    assert shard.wait(30) == status
    assert "schedspec ci --cluster embedded --shard 2/3 --features features" in (tmp_path / "arguments").read_text()


SWEEP_LOAD = """
for: 1h
queues: {red: {rate: 20/h, run_time: {exponential: 10m}}}
"""


def test_each_shard_of_a_sweep_runs_one_seed_and_the_results_are_joined(tmp_path: Path) -> None:
    program(tmp_path, "python3", f'exec {sys.executable} "$@"\n')
    (tmp_path / "load.yaml").write_text(SWEEP_LOAD)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    options = f"--synthetic {tmp_path}/load.yaml --nodes 1x8 --seeds 2"
    for index in (0, 1):
        given = {"RESULTS": f"{tmp_path}/results/{index}", "JOB_COMPLETION_INDEX": str(index), "KEEP_SECONDS": "0"}
        environment = {**distribution.environment(), "PATH": path, "SWEEP": options, **given}
        assert subprocess.run([SUITE / "shard"], env=environment, check=False, timeout=120).returncode == 0
    seeds = [it.name for it in sorted((tmp_path / "results").rglob("*.jsonl"))]
    assert seeds == ["default-seed-1.jsonl", "default-seed-2.jsonl"]
    command = [sys.executable, "-m", "schedspec", "simulate", "--join", tmp_path / "results"]
    done = subprocess.run(command, env=distribution.environment(), capture_output=True, text=True, check=True)
    assert "proportion.yaml: 2 runs" in done.stdout


def test_a_shard_ends_although_its_results_are_not_fetched(tmp_path: Path) -> None:
    program(tmp_path, "python3", "exit 0\n")
    variables = {"RESULTS": str(tmp_path), "JOB_COMPLETION_INDEX": "0", "SHARDS": "1", "FEATURES": "f"}
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [SUITE / "shard"], env={"PATH": path, "KEEP_SECONDS": "1", **variables}, check=False, timeout=60
    )
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("pods", "status", "output"),
    [
        (["true/Running/suite-0-x ", "true/Running/suite-1-x "], 0, "shard 1 of 2, pod suite-1-x: ended with status 0"),
        (["true/Running/suite-0-x ", "true/Running/suite-1-bad "], 1, "pod suite-1-bad: ended with status 1"),
        (["true/Running/suite-0-x ", "false/Failed/suite-1-x "], 1, "shard 1 of 2 ended without results: suite-1-x"),
    ],
)
def test_collect_fetches_available_results_and_fails_for_missing_ones(
    tmp_path: Path, pods: list[str], status: int, output: str
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/junit.xml").write_text("<testsuites/>")
    cases = "\n".join(f"*completion-index={number}*) echo '{pod}' ;;" for number, pod in enumerate(pods))
    program(
        tmp_path,
        "kubectl",
        f'case "$*" in\n*"get job"*) echo {len(pods)} ;;\n{cases}\n'
        f'*"-- tar"*) tar -C {tmp_path}/run -c . ;;\n*bad*"-- cat"*) echo 1 ;;\n*"-- cat"*) echo 0 ;;\n'
        f'*touch*) echo "$*" >> {tmp_path}/touched ;;\nesac\n',
    )
    done = subprocess.run(
        [SUITE / "collect", tmp_path / "out"],
        env={"PATH": os.environ["PATH"], "KUBECTL": str(tmp_path / "kubectl")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, output in done.stdout + done.stderr) == (status, True), done
    fetched = [number for number, pod in enumerate(pods) if "Running" in pod]
    assert [path.parent.name for path in sorted((tmp_path / "out").glob("*/junit.xml"))] == list(map(str, fetched))
    assert len((tmp_path / "touched").read_text().splitlines()) == len(fetched)


def test_the_tag_changes_with_the_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = suite_image.tag()
    assert suite_image.tag() == before
    (tmp_path / "features").mkdir()
    (tmp_path / "features" / "f.feature").write_text("Feature: f\n")
    monkeypatch.setattr(suite_image, "ROOT", tmp_path)
    assert suite_image.tag() != before


def run(folder: Path, *command: str | Path, **variables: str) -> str:
    environment = {**distribution.environment(), **variables}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def collected_on_kind(folder: Path, overlay: dict[str, Any]) -> Path:
    """Run the Job with an overlay in `folder`, on a new Kind cluster; return the folder of the results."""
    cluster = provide(Settings(kind="kind", kind_config=kind_config() / "one-node.yaml"))
    kubectl = binaries.provide(("kubectl",), folder=None, progress=print)["kubectl"].path
    tag, archive = suite_image.archive(Docker(), print)
    base = {"resources": [os.path.relpath(SUITE, folder)], "images": [{"name": suite_image.NAME, "newTag": tag}]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay | base))
    cluster.up(print)
    try:
        environment = {"KUBECTL": str(kubectl), "KUBECONFIG": str(cluster.kubeconfig)}
        cluster.load_image(archive)
        run(folder, kubectl, "apply", "-k", folder, **environment)
        run(folder, SUITE / "collect", folder / "results", **environment)
        completed = ("wait", "job/suite", "--for=condition=Complete", "--timeout=60s")
        run(folder, kubectl, "--namespace", "schedspec-suite", *completed, **environment)
    finally:
        cluster.down()
    return folder / "results"


FEATURES = "features/lifecycle/first_job.feature features/queue_capacity/shares.feature"


@pytest.mark.kind
@pytest.mark.slow
@pytest.mark.nightly
def test_three_shards_run_on_kind_and_are_joined_into_one_report(tmp_path: Path) -> None:
    requests = [
        {"op": "replace", "path": "/spec/template/spec/containers/0/env/1/value", "value": FEATURES},
        # One after the other: a small machine cannot boot three control planes at once in time.
        {"op": "replace", "path": "/spec/parallelism", "value": 1},
    ]
    results = collected_on_kind(tmp_path, {"patches": [{"target": {"kind": "Job"}, "patch": json.dumps(requests)}]})
    assert [len(list(shard.glob("scenarios/*/*.json"))) > 0 for shard in sorted(results.iterdir())] == [True] * 3
    joined = run(tmp_path, sys.executable, "-m", "schedspec", "report", "results")
    assert joined.startswith("report.html: ")
    assert "passed" in run(tmp_path, sys.executable, "-m", "schedspec", "ci", "--join", "results")


@pytest.mark.kind
@pytest.mark.slow
@pytest.mark.nightly
def test_the_documented_sweep_runs_on_kind_and_is_joined_into_one_table(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "simulation.md").read_text("utf-8").split("```yaml\nnamespace: schedspec-suite\n")[1]
    small = text.split("```")[0].replace("value: 40", "value: 4").replace("--seeds 20", "--seeds 2")
    (tmp_path / "load.yaml").write_text(SWEEP_LOAD)
    for name, policy in (("old", "allocate"), ("new", "allocate, reclaim")):
        (tmp_path / f"{name}.yaml").write_text(f'actions: "{policy}"\ntiers: [{{plugins: [{{name: proportion}}]}}]\n')
    results = collected_on_kind(tmp_path, {"namespace": "schedspec-suite", **yaml.safe_load(small)})
    runs = [[path.name for path in shard.rglob("*.jsonl")] for shard in sorted(results.iterdir())]
    assert runs == [[f"{policy}-seed-{seed}.jsonl"] for policy in ("old", "new") for seed in (1, 2)]
    table = run(tmp_path, sys.executable, "-m", "schedspec", "simulate", "--join", results)
    assert ("old.yaml: 2 runs" in table, "new.yaml: 2 runs" in table) == (True, True), table
