"""Set up live benchmarks and fault tests: start an embedded cluster, and create objects in bulk.

This module measures nothing. Baselines of benchmarks (`bind_all`) use the scheduler's own client, the fastest in the
project.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import yaml

from schedspec.clusters import Settings
from schedspec.clusters.embedded import EmbeddedCluster
from schedspec.scheduler.kube import (
    HYPER_NODES,
    NODES,
    PODGROUPS,
    PODS,
    QUEUES,
    AlreadyExists,
    Client,
    Http,
    KubeError,
    Resource,
    connect,
)
from schedspec.scheduler.model.objects import Node, Object, ObjectMeta, Pod

ROOT = Path(__file__).resolve().parents[3]
IN_FLIGHT = 64
SIZE = 20
"""Default number of pods of a gang."""
Body = dict[str, Any]
R = TypeVar("R")

PROPORTION = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
RECLAIM = """\
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang, enableReclaimable: false}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}]
"""


class _Crd(Object):
    metadata: ObjectMeta


CRDS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", _Crd, namespaced=False
)


@contextlib.contextmanager
def fresh_cluster() -> Iterator[Path]:
    """Start a new embedded cluster and yield its kubeconfig."""
    cluster = EmbeddedCluster(Settings(kind="embedded"))
    cluster.up(lambda _: None)
    try:
        yield cluster.kubeconfig
    finally:
        cluster.down()


@contextlib.asynccontextmanager
async def client_of(kubeconfig: Path) -> AsyncIterator[Client]:
    http = Http(connect(kubeconfig), limit=IN_FLIGHT + 8)
    try:
        yield Client(http)
    finally:
        await http.close()


async def each(items: Iterable[R], work: Callable[[R], Awaitable[Any]], width: int = IN_FLIGHT) -> None:
    """Run `work` for every item, at most `width` at a time."""
    left = iter(items)

    async def worker() -> None:
        for item in left:
            await work(item)

    await asyncio.gather(*(worker() for _ in range(width)))


async def apply_crds(client: Client) -> None:
    """Create the project's CRDs and wait until the API server serves them."""
    for file in sorted((ROOT / "scheduler" / "crds").glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            if document and document["kind"] == "CustomResourceDefinition":
                with contextlib.suppress(AlreadyExists):
                    await client.create(CRDS, document)
    for resource in (QUEUES, PODGROUPS, HYPER_NODES):
        await _once_served(client, resource)


async def prepare(client: Client, nodes: int, queues: Iterable[Body], cpu: str = "32") -> None:
    """Create the CRDs, the queues and the nodes, and wait until all nodes are Ready."""
    await apply_crds(client)
    for item in queues:
        await client.create(QUEUES, item)
    await each(range(nodes), lambda i: _create_node(client, f"node-{i:04}", cpu))
    for _ in range(300):
        if all(map(_is_ready, (await client.list(NODES)).items)):
            await asyncio.sleep(0.5)  # until their taints are removed
            return
        await asyncio.sleep(0.5)
    raise RuntimeError("not all nodes are Ready after 150 s; does KWOK run?")


async def settled_node(client: Client, name: str, cpu: str) -> dict[str, str]:
    """Create a KWOK node, wait until it is Ready, and return its allocatable amounts."""
    amounts = await _create_node(client, name, cpu)
    for _ in range(400):
        if _is_ready(await client.get(NODES, name)):
            return amounts
        await asyncio.sleep(0.05)
    raise RuntimeError(f"node {name} is not Ready after 20 s; does KWOK run?")


async def _create_node(client: Client, name: str, cpu: str) -> dict[str, str]:
    amounts = {"cpu": cpu, "memory": "128Gi", "pods": "256"}
    meta = {
        "name": name,
        "annotations": {"kwok.x-k8s.io/node": "fake"},
        "labels": {"schedspec.dev/world": "true"},
    }
    await client.create(NODES, {"metadata": meta, "status": {"allocatable": amounts, "capacity": amounts}})
    return amounts


def _is_ready(node: Node) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in node.status.conditions or ())


async def _once_served(client: Client, resource: Resource[Any]) -> None:
    for _ in range(400):
        try:
            await client.list(resource)
        except KubeError:
            await asyncio.sleep(0.05)
        else:
            return
    raise RuntimeError(f"{resource.id} is not served after 20 s")


def queue(name: str, **spec: Any) -> Body:
    return {"metadata": {"name": name}, "spec": {"weight": 1, **spec}}


async def gangs(
    client: Client,
    prefix: str,
    count: int,
    size: int,
    queue_name: str,
    *,
    cpu: str = "1",
    namespace: str = "default",
) -> list[Pod]:
    """Create PodGroups `prefix-i` with `size` pods each; return the pods as created."""
    made: list[Pod] = []

    async def group(i: int) -> None:
        body = {"metadata": {"name": f"{prefix}-{i}"}, "spec": {"minMember": size, "queue": queue_name}}
        await client.create(PODGROUPS, body, namespace)

    async def pod(i: int) -> None:
        name = f"{prefix}-{i // size}"
        made.append(await client.create(PODS, pod_body(f"{name}-{i % size}", name, cpu), namespace))

    await each(range(count), group)
    await each(range(count * size), pod)
    return made


async def bind_all(client: Client, pods: Iterable[Pod], nodes: int) -> None:
    """Bind pods of namespace `default` without a scheduler, to `nodes` nodes in turn."""

    async def bind(item: tuple[int, Pod]) -> None:
        number, pod = item
        await client.bind("default", pod.metadata.name, pod.metadata.uid, f"node-{number % nodes:04}")

    await each(enumerate(pods), bind)


def pod_body(name: str, group: str, cpu: str = "1") -> Body:
    container = {"name": "main", "image": "worker", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    # Not 0: the API server deletes a pod without a grace period in two steps. If the caller dies between them, KWOK
    # never removes the pod.
    return {
        "metadata": {"name": name, "annotations": {"scheduling.k8s.io/group-name": group}},
        "spec": {"schedulerName": "schedspec", "containers": [container], "terminationGracePeriodSeconds": 1},
    }
