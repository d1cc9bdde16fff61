"""Measure how long the core takes to reclaim for another queue: single-card jobs for a large gang, gangs for gangs.

The module prints its figures if it is run alone; `benchmarks/core.py` calls `figures`. Seconds are CPU seconds, because
the machine may be shared.
"""

from __future__ import annotations

import gc
import sys
import time

from benchmarks.figure import Figure
from schedspec.scheduler.decide import decide
from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.model import objects as api
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.policy.loader import load_policy

CARD = "nvidia.com/gpu"
CARDS = 8
POLICY = """
actions: "enqueue, allocate, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
"""
WIDE = 1000
GOAL_WIDE, GOAL_GANGS = 2.0, 0.5


def _node(number: int) -> api.Node:
    has = {"cpu": "64", "memory": "512Gi", CARD: str(CARDS), "pods": "110"}
    return api.Node(api.ObjectMeta(name=f"node-{number:04d}"), status=api.NodeStatus(allocatable=has))


def _queue(name: str, deserved: int) -> api.Queue:
    return api.Queue(api.ObjectMeta(name=name), api.QueueSpec(deserved={CARD: deserved}))


def _job(cluster: Cluster, name: str, queue: str, tasks: int, cards: int, node: str = "") -> None:
    phase = "Running" if node else "Inqueue"
    cluster.set_podgroup(
        api.PodGroup(
            api.ObjectMeta(name=name, namespace="bench"),
            api.PodGroupSpec(min_member=tasks, queue=queue),
            api.PodGroupStatus(phase=phase),
        )
    )
    resources = api.Resources(requests={"cpu": str(cards), CARD: str(cards)})
    for number in range(tasks):
        meta = api.ObjectMeta(
            name=f"{name}-{number}",
            namespace="bench",
            uid=f"{name}-{number}",
            annotations={"scheduling.k8s.io/group-name": name},
        )
        spec = api.PodSpec([api.Container(name="c", resources=resources)], node_name=node)
        cluster.set_pod(api.Pod(meta, spec, api.PodStatus(phase="Running" if node else "Pending")))


def cluster_full_of_singles(nodes: int) -> Cluster:
    """Return `nodes` × 8 cards, each held by a single pod of queue a; a gang of half of all cards waits in queue b."""
    cluster = Cluster()
    for number in range(nodes):
        cluster.set_node(_node(number))
    for name in ("a", "b"):
        cluster.set_queue(_queue(name, nodes * CARDS // 2))
    for number in range(nodes * CARDS):
        _job(cluster, f"single-{number:05d}", "a", 1, 1, f"node-{number // CARDS:04d}")
    _job(cluster, "large", "b", nodes // 2, CARDS)
    return cluster


def cluster_with_gangs(nodes: int, gangs: int, size: int) -> Cluster:
    """Return nodes that are each full of a gang of queue a; `gangs` gangs of single cards wait in queue b."""
    cluster = Cluster()
    for number in range(nodes):
        cluster.set_node(_node(number))
    for name in ("a", "b"):
        cluster.set_queue(_queue(name, nodes * CARDS // 2))
    for number in range(nodes):
        _job(cluster, f"old-{number:04d}", "a", CARDS, 1, f"node-{number:04d}")
    for number in range(gangs):
        _job(cluster, f"new-{number:03d}", "b", size, 1)
    return cluster


def _timed(cluster: Cluster) -> tuple[float, Decisions]:
    policy = load_policy(POLICY, "benchmark")
    gc.collect()
    gc.freeze()
    start = time.process_time()
    decisions = decide(cluster, policy, 1_790_000_000.0)
    return time.process_time() - start, decisions


def figures() -> list[Figure]:
    """Return the figures of this module. Exits if the decisions are not the expected ones."""
    found = []
    for part in (4, 2, 1):
        nodes = WIDE // part
        seconds, decisions = _timed(cluster_full_of_singles(nodes))
        right = len(decisions.evictions) == nodes // 2 * CARDS
        name = f"reclaim {nodes // 2} x {CARDS} cards from {nodes} nodes x {CARDS} single-card jobs"
        found.append(_figure(name, seconds, GOAL_WIDE, right=right))
    seconds, decisions = _timed(cluster_with_gangs(100, 25, 8))
    right = len(decisions.evictions) == 200
    found.append(_figure("reclaim 200 cards for 25 gangs of 8 from 100 nodes", seconds, GOAL_GANGS, right=right))
    return found


def _figure(name: str, seconds: float, goal: float, *, right: bool) -> Figure:
    if not right:
        sys.exit(f"{name}: not as many evictions as are needed")
    return Figure(name, round(seconds, 3), "s", goal)


if __name__ == "__main__":
    print("\n".join(figure.line for figure in figures()))
