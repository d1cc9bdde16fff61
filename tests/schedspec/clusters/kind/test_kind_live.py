"""Real nodes: cards that stay, pods that run and end as told, KWOK's nodes beside them, and nothing left afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from schedspec.clusters.docker import Docker
from schedspec.clusters.images import worker_image
from schedspec.clusters.kind.cluster import KindCluster
from schedspec.clusters.programs import binaries
from schedspec.clusters.registry import Registry
from tests.support.cluster_api import Api, Object, condition, heartbeat, node, phase, within

pytestmark = pytest.mark.kind
ROOT = Path(__file__).parents[4]


@pytest.fixture
def worker(cards: KindCluster) -> str:
    """The name of the node with cards."""
    return f"{cards.name}-worker"


@contextmanager
def bound_pod(api: Api, name: str, to: str, *arguments: str, cards: int = 0) -> Iterator[str]:
    """Create a pod of the worker image that the test binds; yield its path."""
    resources = {"limits": {"nvidia.com/gpu": str(cards)}} if cards else {}
    container = {"name": "worker", "image": worker_image.NAME, "args": ["run", *arguments], "resources": resources}
    spec: Object = {"schedulerName": "nobody", "restartPolicy": "Never", "containers": [container]}
    api.create(api.pods, {"metadata": {"name": name}, "spec": spec})
    api.bind(name, to)
    path = f"{api.pods}/{name}"
    yield path
    if api.get(path):
        api.delete(path, grace=0)
    within(lambda: api.get(path), lambda left: left is None)


def exit_code(pod: Object | None) -> Any:
    statuses = ((pod or {}).get("status") or {}).get("containerStatuses") or [{}]
    return statuses[0].get("state", {}).get("terminated", {}).get("exitCode")


def test_a_pod_that_wants_cards_runs_where_they_are_and_they_stay(api: Api, worker: str) -> None:
    def cards() -> tuple[str, str]:
        status = api.call("GET", f"/api/v1/nodes/{worker}")["status"]
        return status["capacity"].get("nvidia.com/gpu"), status["allocatable"].get("nvidia.com/gpu")

    assert cards() == ("8", "8")
    labels = api.call("GET", f"/api/v1/nodes/{worker}")["metadata"]["labels"]
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-GeForce-RTX-4090"
    with bound_pod(api, "with-cards", worker, cards=8) as pod:
        within(lambda: phase(api.get(pod)), lambda seen: seen == "Running")
    before = heartbeat(api, worker)
    subprocess.run(["docker", "exec", worker, "systemctl", "restart", "kubelet"], check=True)
    within(lambda: heartbeat(api, worker), lambda seen: seen > before)
    assert cards() == ("8", "8"), "a kubelet that reports anew leaves them"


def test_a_pod_finishes_with_its_code_when_it_is_told_to(api: Api, cards: KindCluster, worker: str) -> None:
    kubectl = binaries.provide(["kubectl"], folder=None, progress=print)["kubectl"].path
    with bound_pod(api, "told", worker, "--exit", "7") as pod:
        within(lambda: phase(api.get(pod)), lambda seen: seen == "Running")
        command = [kubectl, "--kubeconfig", cards.kubeconfig, "exec", "told", "--", "/worker", "finish"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 0, done.stderr
        seen = within(lambda: api.get(pod), lambda seen: phase(seen) == "Failed")
        assert exit_code(seen) == 7


def test_a_pod_leaves_at_once_and_one_that_ignores_termination_stays_for_its_grace(api: Api, worker: str) -> None:
    with bound_pod(api, "leaves", worker) as leaves, bound_pod(api, "stays", worker, "--ignore-term") as stays:
        for pod in (leaves, stays):
            within(lambda pod=pod: phase(api.get(pod)), lambda seen: seen == "Running")  # type: ignore[misc]
        for pod in (leaves, stays):
            api.delete(pod, grace=6)
        within(lambda: api.get(leaves), lambda left: left is None)
        assert phase(api.get(stays)) == "Running"
        within(lambda: api.get(stays), lambda left: left is None)


def test_simulated_nodes_stand_beside_real_ones(api: Api) -> None:
    try:
        api.create("/api/v1/nodes", node("simulated", cpu="64", memory="256Gi", pods="400"))
        within(lambda: condition(api.get("/api/v1/nodes/simulated"), "Ready"), lambda seen: seen == "True")
        with bound_pod(api, "simulated", "simulated") as pod:
            within(lambda: phase(api.get(pod)), lambda seen: seen == "Running")
        time.sleep(1)
        there = api.call("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dsimulated")["items"]
        assert not there, "no DaemonSet puts a pod on it"
    finally:
        api.delete("/api/v1/nodes/simulated")


def test_names_resolve_in_the_cluster(api: Api) -> None:
    """CoreDNS of our own node image, and the network between nodes, work: it is ready only when it reaches the API."""
    path = "/apis/apps/v1/namespaces/kube-system/deployments/coredns"
    within(lambda: api.call("GET", path)["status"].get("readyReplicas"), lambda ready: ready == 2)


@pytest.mark.parametrize("when", [pytest.param("creating", marks=pytest.mark.nightly), "up"])
def test_nothing_outlives_a_run_that_is_killed(when: str, state: Path) -> None:
    script = """
        import time
        from schedspec.clusters import Settings, provide
        cluster = provide(Settings(kind="kind"))
        cluster.up(lambda line: print(line, flush=True))
        print("up", flush=True)
        time.sleep(60)
    """
    docker = Docker()
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "SCHEDSPEC_STATE": str(state)},
    ) as run:
        assert run.stdout is not None
        next(line for line in run.stdout if line == "up\n" or (when == "creating" and ": creating (" in line))
        record = within(lambda: next(iter(Registry().records()), None))
        if when == "creating":
            within(lambda: _containers(docker, record.name))
        run.send_signal(signal.SIGKILL)
    within(lambda: not Registry().records())
    assert not _containers(docker, record.name)
    assert not docker.succeeds("network", "inspect", record.name)
    assert not record.home.exists()


def _containers(docker: Docker, name: str) -> list[str]:
    return docker.call("ps", "--all", "--quiet", "--filter", f"label=io.x-k8s.kind.cluster={name}").split()
