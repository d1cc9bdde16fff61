"""Kind clusters with real kubelets: advertised cards, the worker image, KWOK nodes beside kubelets, and clean-up."""

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
    """Return the name of the node with cards."""
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


def test_a_pod_with_cards_runs_and_a_kubelet_restart_keeps_the_cards(api: Api, worker: str) -> None:
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
    assert cards() == ("8", "8"), "the new report of the kubelet keeps the cards"


def test_a_pod_finishes_on_command_with_its_exit_code(api: Api, cards: KindCluster, worker: str) -> None:
    kubectl = binaries.provide(["kubectl"], folder=None, progress=print)["kubectl"].path
    with bound_pod(api, "commanded", worker, "--exit", "7") as pod:
        within(lambda: phase(api.get(pod)), lambda seen: seen == "Running")
        command = [kubectl, "--kubeconfig", cards.kubeconfig, "exec", "commanded", "--", "/worker", "finish"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 0, done.stderr
        seen = within(lambda: api.get(pod), lambda seen: phase(seen) == "Failed")
        assert exit_code(seen) == 7


def test_a_deleted_pod_ends_at_once_or_after_its_grace_if_it_ignores_sigterm(api: Api, worker: str) -> None:
    with bound_pod(api, "quick", worker) as quick, bound_pod(api, "stubborn", worker, "--ignore-term") as stubborn:
        for pod in (quick, stubborn):
            within(lambda pod=pod: phase(api.get(pod)), lambda seen: seen == "Running")  # type: ignore[misc]
        for pod in (quick, stubborn):
            api.delete(pod, grace=6)
        within(lambda: api.get(quick), lambda left: left is None)
        assert phase(api.get(stubborn)) == "Running"
        within(lambda: api.get(stubborn), lambda left: left is None)


def test_simulated_nodes_work_beside_real_nodes(api: Api) -> None:
    try:
        api.create("/api/v1/nodes", node("simulated", cpu="64", memory="256Gi", pods="400"))
        within(lambda: condition(api.get("/api/v1/nodes/simulated"), "Ready"), lambda seen: seen == "True")
        with bound_pod(api, "simulated", "simulated") as pod:
            within(lambda: phase(api.get(pod)), lambda seen: seen == "Running")
        time.sleep(1)
        pods = api.call("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dsimulated")["items"]
        assert not pods, "no DaemonSet creates a pod on the node"
    finally:
        api.delete("/api/v1/nodes/simulated")


def test_names_resolve_in_the_cluster(api: Api) -> None:
    """CoreDNS of our own node image is ready only when it reaches the API server through the network of the nodes."""
    path = "/apis/apps/v1/namespaces/kube-system/deployments/coredns"
    within(lambda: api.call("GET", path)["status"].get("readyReplicas"), lambda ready: ready == 2)


@pytest.mark.parametrize("when", [pytest.param("creating", marks=pytest.mark.nightly), "up"])
def test_a_killed_run_leaves_no_cluster_behind(when: str, state: Path) -> None:
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
