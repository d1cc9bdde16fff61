"""Nightly: Kueue and Volcano in a Kind cluster, started by the harness or installed by their users."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from schedspec.clusters import Settings
from schedspec.clusters.kind.cluster import KindCluster
from schedspec.clusters.paths import kind_config
from schedspec.clusters.programs import binaries
from tests.support import installations

pytestmark = [pytest.mark.kind, pytest.mark.slow, pytest.mark.nightly]
ROOT = Path(__file__).parents[2]
FEATURES = ("features/lifecycle/first_job.feature", "features/queue_weights/four_steps.feature")
"""Two features; the second has a policy with fair sharing."""


def verdicts(out: Path, *arguments: str, **environment: str) -> dict[str, list[str]]:
    """Run the features and return the scenarios by verdict."""
    command = [sys.executable, "-m", "pytest", *FEATURES, "--runs", "1", "-q", "--out", str(out), *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=900, check=False
    )
    assert (out / "results.json").is_file(), done.stdout + done.stderr
    found: dict[str, list[str]] = {}
    for row in json.loads((out / "results.json").read_text())["results"]:
        found.setdefault(row["verdict"], []).append(row["feature"])
    assert done.returncode == 0, done.stdout + done.stderr
    return found


@pytest.mark.parametrize("scheduler", ["kueue", "volcano"])
def test_the_harness_runs_it_in_pods_with_images_of_its_programs(scheduler: str, tmp_path: Path) -> None:
    found = verdicts(tmp_path / "out", "--scheduler", scheduler, "--scheduler-in-cluster")
    assert found.keys() <= {"passed", "known", "lacks"}
    assert found["passed"]


@pytest.fixture
def empty() -> Iterator[KindCluster]:
    """Yield a Kind cluster in which a user can install a scheduler."""
    cluster = KindCluster(Settings(kind="kind", kind_config=kind_config() / "one-node.yaml"))
    cluster.up(print)
    yield cluster
    cluster.down()


def state(cluster: KindCluster, namespace: str, kinds: str) -> Any:
    """Return what a run must not change: the objects of the user's scheduler, and the names of all other objects."""
    kubectl = binaries.provide(("kubectl",), folder=None, progress=print)["kubectl"].path

    def get(*what: str) -> Any:
        command = [kubectl, "--kubeconfig", cluster.kubeconfig, "get", *what, "--output", "json"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["items"]

    specs = {item["metadata"]["uid"]: item.get("spec") for item in get("deployments", "--namespace", namespace)}
    for spec in specs.values():
        spec["template"]["metadata"].pop("annotations", None)  # a restart with the restored policy leaves one
    data = {item["metadata"]["uid"]: item["data"] for item in get("configmaps", "--namespace", namespace)}
    everything = get(f"{kinds},crd,nodes,priorityclasses,namespaces")
    names = sorted(f"{item['kind']} {item['metadata']['name']}" for item in everything)
    return specs, data, names


OF_KUEUE = "clusterqueues,cohorts,resourceflavors,topologies,workloadpriorityclasses"


def test_an_installed_kueue_is_used_and_not_changed(empty: KindCluster, tmp_path: Path) -> None:
    installations.kueue(empty.kubeconfig, empty.name)
    before = state(empty, "kueue-system", OF_KUEUE)
    context = ("--cluster", "existing", "--kube-context", empty.context)
    found = verdicts(tmp_path / "out", "--scheduler", "kueue", *context, KUBECONFIG=str(empty.kubeconfig))
    assert found.keys() <= {"passed", "known", "lacks"}
    assert FEATURES[1] in found["lacks"], "fair sharing is not configured in this Kueue"
    assert FEATURES[0] in found["passed"]
    assert state(empty, "kueue-system", OF_KUEUE) == before


def test_the_policy_of_an_installed_volcano_is_restored(empty: KindCluster, tmp_path: Path) -> None:
    installations.volcano(empty.kubeconfig, empty.name)
    before = state(empty, "volcano-system", "queues.scheduling.volcano.sh")
    context = ("--cluster", "existing", "--kube-context", empty.context, "-k", "first_job")
    found = verdicts(tmp_path / "out", "--scheduler", "volcano", *context, KUBECONFIG=str(empty.kubeconfig))
    assert found.keys() <= {"passed", "known", "lacks"}
    assert found["passed"]
    assert state(empty, "volcano-system", "queues.scheduling.volcano.sh") == before
