"""The state keeps no names from deleted objects, so memory does not grow with the number of names ever used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from schedspec.scheduler.decide import decide
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.model.names import TOPOLOGY_KEY
from schedspec.scheduler.model.nodes import FEW_SHAPES
from schedspec.scheduler.recording.events import Decided, apply_input
from tests.support.core.events import policy_of
from tests.support.core.world import World

MANY = FEW_SHAPES + 32
POLICY = """
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}]
- plugins: [{name: predicates}, {name: capacity, enableHierarchy: true}, {name: nodeorder}]
- plugins: [{name: network-topology-aware}]
"""
SHAPES = {"_vectors", "feasible", "'empty'"}


def containers(value: Any, path: str = "", seen: set[int] | None = None) -> dict[str, int]:
    """Return the length of each container within an object, by its path."""
    seen = set() if seen is None else seen
    if id(value) in seen or isinstance(value, str | bytes | int | float | np.ndarray):
        return {}
    seen.add(id(value))
    found: dict[str, int] = {}
    if isinstance(value, dict):
        found[path] = len(value)
        for key, inner in value.items():
            found |= containers(inner, f"{path}.{key}", seen)
    elif isinstance(value, set | frozenset | list | tuple):
        found[path] = len(value)
    else:
        names = [*getattr(value, "__dict__", ()), *getattr(value, "__slots__", ())]
        for name in names:
            found |= containers(getattr(value, name, None), f"{path}.{name}", seen)
    return found


def job(number: int, **more: Any) -> dict[str, Any]:
    return {"name": f"g{number}", "queue": "q", "tasks": "1 x 1 cpu", "phase": "Inqueue", **more}


def with_spec(spec: dict[str, Any]) -> dict[str, Any]:
    return {"pod": {"spec": spec}}


KINDS: dict[str, Any] = {
    "shapes that fit": lambda i: job(i, tasks=f"1 x {1 + i}m cpu"),
    "shapes that do not fit": lambda i: job(i, **with_spec({"nodeSelector": {"shape": f"s{i}"}})),
    "nodes that do not exist": lambda i: job(i, **with_spec({"nodeName": f"nowhere-{i}"})),
    "queues that do not exist": lambda i: job(i, queue=f"nowhere-{i}"),
    "priority classes that do not exist": lambda i: job(i, podgroup={"spec": {"priorityClassName": f"nobody-{i}"}}),
    "labels": lambda i: job(i, pod={"metadata": {"labels": {f"key-{i}": f"value-{i}"}}}),
    "topology keys": lambda i: job(
        i,
        **with_spec(
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": f"t{i}", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
                ]
            }
        ),
    ),
    "domains of a label": lambda i: job(i, annotations={TOPOLOGY_KEY: f"rack-{i}"}),
    "images": lambda i: job(i, **with_spec({"containers": [{"name": "main", "image": f"image-{i}"}]})),
}


def cycle(world: World) -> None:
    apply_input(world.cluster, Decided(0, world.now, decide(world.cluster, world.policy, world.now)))
    world.now += 1.0


def add_and_delete(world: World, body: dict[str, Any]) -> None:
    world.load({"jobs": [body]})
    cycle(world)
    for kind, key in list(world.objects):
        if kind in ("Pod", "PodGroup"):
            world.remove(kind, key)
    cycle(world)


@pytest.mark.parametrize("kind", KINDS)
def test_memory_does_not_grow_with_the_names_in_deleted_objects(kind: str) -> None:
    world = World(policy_of(POLICY))
    world.load({"nodes": [{"name": "n1", "has": "8 cpu"}], "queues": [{"name": "q"}]})
    for number in range(3):
        add_and_delete(world, KINDS[kind](number))
    before = sizes(world.cluster)
    for number in range(3, MANY):
        add_and_delete(world, KINDS[kind](number))
    grown = {path: size for path, size in sizes(world.cluster).items() if size > before.get(path, 0)}
    assert not {path: size for path, size in grown.items() if size > FEW_SHAPES or not shapes_only(path)}


def sizes(cluster: Cluster) -> dict[str, int]:
    cluster.last_cycle = None
    return containers(cluster)


def shapes_only(path: str) -> bool:
    """Whether a container is a cache by shape, which may have a few entries."""
    return any(name in path for name in SHAPES)
