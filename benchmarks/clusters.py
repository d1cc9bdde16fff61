"""Build the cluster states on which the core is measured."""

from __future__ import annotations

from typing import Any

import msgspec

from schedspec.scheduler.model import objects
from schedspec.scheduler.model.cluster import Cluster

GROUP = "scheduling.k8s.io/group-name"
CREATED = "2026-09-01T00:00:00Z"


def _node(number: int, allocatable: dict[str, str]) -> objects.Node:
    return msgspec.convert(
        {
            "metadata": {"name": f"node-{number:05}", "labels": {"kubernetes.io/hostname": f"node-{number:05}"}},
            "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
        },
        objects.Node,
    )


def _queue(name: str, **spec: Any) -> objects.Queue:
    return msgspec.convert({"metadata": {"name": name}, "spec": spec, "status": {"state": "Open"}}, objects.Queue)


def _gang(
    cluster: Cluster,
    name: str,
    queue: str,
    size: int,
    requests: dict[str, str],
    *,
    node: str = "",
    phase: str = "Pending",
    labels: dict[str, str] | None = None,
    affinity: dict[str, Any] | None = None,
) -> None:
    """Add a PodGroup and its pods: running on `node` if it is given, else pending, with the PodGroup in `phase`."""
    head = {"namespace": "bench", "creationTimestamp": CREATED}
    spec = {"minMember": size, "queue": queue}
    group = {"metadata": {"name": name, **head}, "spec": spec, "status": {"phase": "Running" if node else phase}}
    cluster.set_podgroup(msgspec.convert(group, objects.PodGroup))
    container = {"name": "c", "image": "worker:1", "resources": {"requests": requests}}
    for index in range(size):
        key = f"{name}-{index}"
        meta = {"name": key, "uid": key, "annotations": {GROUP: name}, "labels": labels, **head}
        wanted = {"affinity": affinity, "containers": [container], "nodeName": node}
        pod = {"metadata": meta, "spec": wanted, "status": {"phase": "Running" if node else "Pending"}}
        cluster.set_pod(msgspec.convert(pod, objects.Pod))


def backlog(pods: int, nodes: int, gang: int = 20, *, full: bool = False) -> Cluster:
    """Return pending gangs in ten queues, and nodes with room for all gangs or, if `full`, for none."""
    cluster = Cluster()
    for number in range(nodes):
        cluster.set_node(_node(number, {"cpu": "1" if full else "32", "memory": "256Gi", "pods": "110"}))
    for number in range(10):
        cluster.set_queue(_queue(f"queue-{number}", weight=number % 3 + 1))
    for number in range(pods // gang):
        _gang(cluster, f"job-{number:05}", f"queue-{number % 10}", gang, {"cpu": "2", "memory": "4Gi"})
    return cluster


def busy(waiting: int, shapes: int, *, small: bool = True) -> Cluster:
    """Return 1,000 nodes with 5,000 running pods of one queue, and gangs of 20 in eight queues that do not fit.

    Args:
        waiting: Number of gangs that do not fit; they are admitted.
        shapes: Number of different requests of these gangs.
        small: Add one new pod of a tenth queue; it fits.
    """
    cluster = Cluster()
    for number in range(1_000):
        cluster.set_node(_node(number, {"cpu": "12", "memory": "256Gi", "pods": "110"}))
    for number in range(10):
        cluster.set_queue(_queue(f"queue-{number}", deserved={"cpu": "12000"}))
    for number in range(5_000):
        requests = {"cpu": "2", "memory": "4Gi"}
        _gang(cluster, f"run-{number:05}", "queue-0", 1, requests, node=f"node-{number % 1_000:05}")
    for number in range(waiting):
        requests = {"cpu": str(4 + number % shapes), "memory": "4Gi"}
        _gang(cluster, f"wait-{number:05}", f"queue-{1 + number % 8}", 20, requests, phase="Inqueue")
    if small:
        add_small(cluster)
    return cluster


def apart(pods: int) -> Cluster:
    """Return 1,000 nodes and running pods that each keep another application off their node; one new pod fits."""
    cluster = backlog(0, 1_000)
    for number in range(pods):
        selector = {"matchLabels": {"application": f"{number + 1}"}}
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        node = f"node-{number % 1_000:05}"
        relabel(cluster, number, str(number), node=node, affinity=affinity)
    add_small(cluster)
    return cluster


def relabel(cluster: Cluster, number: int, application: str, **more: Any) -> None:
    """Add a running pod of an application, or change its label."""
    labels = {"application": application}
    _gang(cluster, f"run-{number:05}", "queue-0", 1, {"cpu": "1m"}, labels=labels, **more)


def add_small(cluster: Cluster) -> None:
    """Add a pod in a queue of its own; it fits."""
    _gang(cluster, "small", "queue-9", 1, {"cpu": "1"})
