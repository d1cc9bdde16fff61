"""Draw random clusters for the properties of evictions, as tables (`tests.support.core.notation`).

A failing cluster can thus be kept as a table.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import strategies as st

CAPACITY = """
actions: "enqueue, allocate, reclaim, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}]
"""
POLICIES = {
    "capacity": CAPACITY,
    "hierarchy": CAPACITY.replace("name: capacity", "name: capacity, enableHierarchy: true"),
    "ancestors": CAPACITY.replace(
        "name: capacity", "name: capacity, enableHierarchy: true, arguments: {ancestorReclaimLevel: 1}"
    ),
    "proportion": CAPACITY.replace("name: capacity", "name: proportion"),
    "single tasks": CAPACITY.replace("name: gang", "name: gang, enableReclaimable: false, enablePreemptable: false"),
    "elastic": CAPACITY.replace("name: gang", "name: gang, enableJobStarving: false"),
    "topology-aware": CAPACITY
    + "configurations: [{name: preempt, arguments: {enableTopologyAwarePreemption: true}}]\n",
    "reclaim first": CAPACITY.replace("allocate, reclaim, preempt", "preempt, reclaim, allocate"),
}
TREES = ("hierarchy", "ancestors")

CONSTRAINTS: tuple[dict[str, Any], ...] = (
    {"priorityClassName": "system-cluster-critical"},
    {"preemptionPolicy": "Never"},
    {"nodeSelector": {"kubernetes.io/hostname": "n0"}},
    {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"job": "old0"}}}
                ]
            }
        }
    },
)
"""Further fields that a job's pods may have."""


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a cluster with running and waiting work."""
    policy = draw(st.sampled_from(sorted(POLICIES)))
    sizes = draw(st.lists(st.integers(2, 8), min_size=1, max_size=3))
    nodes = [{"name": f"n{i}", "has": f"{size} cpu, {size} gpu"} for i, size in enumerate(sizes)]
    queues = draw(trees() if policy in TREES else flat_queues())
    parents = {queue.get("parent") for queue in queues}
    leaves = [queue["name"] for queue in queues if queue["name"] not in parents]
    idle = {node["name"]: size for node, size in zip(nodes, sizes, strict=True)}
    jobs = [draw(job(f"old{i}", leaves, idle)) for i in range(draw(st.integers(0, 5)))]
    jobs += [draw(filler(f"fill{node}", node, left, leaves)) for node, left in idle.items() if left]
    jobs += [draw(job(f"new{i}", leaves, None)) for i in range(draw(st.integers(1, 4)))]
    return {"policy": POLICIES[policy], "nodes": nodes, "queues": queues, "jobs": jobs}


@st.composite
def flat_queues(draw: st.DrawFn) -> list[dict[str, Any]]:
    return [draw(queue(f"q{i}")) for i in range(draw(st.integers(2, 3)))]


@st.composite
def trees(draw: st.DrawFn) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"name": "root"}]
    for i in range(2):
        parent = {**draw(queue(f"d{i}")), "parent": "root"}
        parent.pop("guarantee", None)
        found.append(parent)
        found += [{**draw(queue(f"d{i}q{j}")), "parent": f"d{i}"} for j in range(draw(st.integers(1, 2)))]
    return found


@st.composite
def queue(draw: st.DrawFn, name: str) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "weight": draw(st.integers(1, 3))}
    guarantee = draw(st.sampled_from((0, 0, 1, 2)))
    deserved = draw(st.integers(guarantee, 8))
    if draw(st.booleans()) or guarantee:
        row["deserved"] = f"{deserved} gpu" + draw(st.sampled_from(("", f", {deserved} cpu")))
    if guarantee:
        row["guarantee"] = f"{guarantee} gpu"
    if draw(st.integers(0, 3)) == 0:
        row["capability"] = f"{draw(st.integers(max(deserved, 1), 12))} gpu"
    if draw(st.integers(0, 3)) == 0:
        row["priority"] = draw(st.integers(0, 2))
    if draw(st.integers(0, 7)) == 0:
        row["reclaimable"] = False
    return row


@st.composite
def job(draw: st.DrawFn, name: str, leaves: list[str], idle: dict[str, int] | None) -> dict[str, Any]:
    """Draw a job that runs on the cards of `idle`, which is reduced; without `idle` the job waits."""
    count, cards = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    requests = draw(st.sampled_from((f"{cards} gpu", f"{cards} gpu, 1 cpu", f"{cards} gpu, {cards} cpu")))
    tasks = _running(draw, count, cards, requests, idle) if idle is not None else [f"{count} x {requests}"]
    row: dict[str, Any] = {
        "name": name,
        "queue": draw(st.sampled_from(leaves)),
        "priority": draw(st.integers(0, 3)),
        "min": draw(st.integers(0, count)),
        "tasks": tasks,
    }
    if idle is None:
        row["phase"] = draw(st.sampled_from(("Inqueue", "Pending")))
    if draw(st.integers(0, 9)) == 0:
        row["labels"] = {"volcano.sh/preemptable": "false"}
    if draw(st.integers(0, 4)) == 0:
        row["pod"] = {"spec": draw(st.sampled_from(CONSTRAINTS))}
    if count > 1 and draw(st.integers(0, 4)) == 0:
        row["roles"] = {"": draw(st.integers(0, count))}
    return row


@st.composite
def filler(draw: st.DrawFn, name: str, node: str, left: int, leaves: list[str]) -> dict[str, Any]:
    """Draw a job of small tasks on the remaining cards of a node.

    In three of four draws it uses all of them, so that waiting jobs need victims.
    """
    count = left if draw(st.integers(0, 3)) else draw(st.integers(1, left))
    return {
        "name": name,
        "queue": draw(st.sampled_from(leaves)),
        "priority": draw(st.integers(0, 2)),
        "min": draw(st.sampled_from((0, 0, 1, count))),
        "tasks": f"{count} x 1 gpu, 1 cpu running on {node}",
    }


def _running(draw: st.DrawFn, count: int, cards: int, requests: str, idle: dict[str, int]) -> list[str]:
    placed: Counter[str] = Counter()
    for _ in range(count):
        fitting = [node for node, left in idle.items() if left >= cards]
        if fitting:
            node = draw(st.sampled_from(fitting))
            idle[node] -= cards
            placed[node] += 1
    state = draw(st.sampled_from(("running", "running", "running", "bound")))
    lines = [f"{number} x {requests} {state} on {node}" for node, number in placed.items()]
    rest = count - placed.total()
    return lines + ([f"{rest} x {requests}"] if rest else [])
