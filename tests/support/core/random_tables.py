"""Draw random clusters for the properties across cycles, as tables (`tests.support.core.notation`).

The tables use every feature that policies refer to: selectors, taints, disruption budgets, guarantees, trees of queues
with three levels, cards. Everything is drawn from one `random.Random`: it draws ten thousand clusters in seconds.
Hypothesis is slower, but it can shrink a failing cluster.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from tests.support.core.random_victims import CAPACITY, POLICIES

CARDS = """
actions: "enqueue, allocate, reclaim, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang%s}, {name: conformance}, {name: pdb}]
- plugins:
  - name: predicates
  - {name: capacity-card, arguments: {cardUnlimitedCpuMemory: true, allowServiceTypeByPodOwnerReferences: true}}
  - name: nodeorder
"""
GANG_WITHOUT_VOTES = ", enableReclaimable: false, enablePreemptable: false"
WITH_BUDGETS = {
    name: policy.replace("{name: conformance}]", "{name: conformance}, {name: pdb}]")
    for name, policy in POLICIES.items()
} | {
    "deep": CAPACITY.replace("{name: conformance}]", "{name: conformance}, {name: pdb}]").replace(
        "name: capacity", "name: capacity, enableHierarchy: true, arguments: {ancestorReclaimLevel: 2}"
    ),
    "cards": CARDS % "",
    "cards, single tasks": CARDS % GANG_WITHOUT_VOTES,
}
TREES = {"hierarchy": 2, "ancestors": 2, "deep": 3}
"""Policies with trees of queues → maximum number of levels."""
MODELS = ("A100", "L40")
PERCENT = 100


class Draw:
    """Random choices for one cluster."""

    def __init__(self, rng: random.Random) -> None:
        self.one_of = rng.choice
        self.number = rng.randint

    def often(self, percent: int) -> bool:
        return self.number(1, PERCENT) <= percent


def random_table(rng: random.Random) -> dict[str, Any]:
    """Draw a cluster with running and waiting work, and its policy."""
    draw = Draw(rng)
    policy = draw.one_of(sorted(WITH_BUDGETS))
    cards = policy.startswith("cards")
    sizes = [draw.number(2, 8) for _ in range(draw.number(1, 3))]
    nodes = [_node(draw, f"n{i}", size, cards=cards) for i, size in enumerate(sizes)]
    queues = _tree(draw, TREES[policy]) if policy in TREES else [_queue(draw, f"q{i}", cards=cards) for i in range(3)]
    parents = {queue.get("parent") for queue in queues}
    leaves = [queue["name"] for queue in queues if queue["name"] not in parents]
    models = {node["name"]: node["labels"].get("nvidia.com/gpu.product", "") for node in nodes}
    idle = {node["name"]: size for node, size in zip(nodes, sizes, strict=True)}
    jobs = [_job(draw, f"old{i}", leaves, idle, models) for i in range(draw.number(0, 4))]
    for node, left in idle.items():
        if left:
            row = _job(draw, f"fill{node}", leaves, {node: left}, {node: models[node]}, count=left, cards=1)
            jobs.append({**row, "min": draw.one_of((0, 0, 1, left))})
    jobs += [_job(draw, f"new{i}", leaves, None, models) for i in range(draw.number(1, 4))]
    table = {"policy": WITH_BUDGETS[policy], "nodes": nodes, "queues": queues, "jobs": jobs}
    if draw.often(15):
        table["objects"] = {"PodDisruptionBudget": [_budget(draw.one_of(jobs)["name"], draw.number(0, 2))]}
    return table


def _node(draw: Draw, name: str, size: int, *, cards: bool) -> dict[str, Any]:
    labels = {"zone": draw.one_of("ab")}
    if cards:
        model = draw.one_of(MODELS)
        labels |= {"nvidia.com/gpu.product": model, "nvidia.com/gpu.count": str(size), "nvidia.com/gpu.memory": "24576"}
    row: dict[str, Any] = {"name": name, "has": f"{size} cpu, {size} gpu", "labels": labels}
    if draw.often(10):
        row["taints"] = ["kept:NoSchedule"]
    return row


def _tree(draw: Draw, levels: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"name": "root"}]
    above = ["root"]
    for level in range(1, levels + 1):
        below = []
        for parent in above:
            for i in range(draw.number(1, 2) if level > 1 else 2):
                row = {**_queue(draw, f"{parent.removeprefix('root')}q{i}"), "parent": parent}
                if level < levels:
                    row.pop("guarantee", None)
                found.append(row)
                below.append(row["name"])
        above = below
    return found


def _queue(draw: Draw, name: str, *, cards: bool = False) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "weight": draw.number(1, 3)}
    if draw.often(25):
        row["priority"] = draw.number(0, 2)
    if draw.often(12):
        row["reclaimable"] = False
    if cards:
        quota = ", ".join(f'"{model}": {draw.number(0, 8)}' for model in MODELS)
        return {**row, "annotations": {"volcano.sh/card.quota": f"{{{quota}}}"}}
    guarantee = draw.one_of((0, 0, 0, 1, 2))
    deserved = draw.number(guarantee, 8)
    if guarantee or draw.often(60):
        row["deserved"] = f"{deserved} gpu" + draw.one_of(("", f", {deserved} cpu"))
    if guarantee:
        row["guarantee"] = f"{guarantee} gpu"
    if draw.often(25):
        row["capability"] = f"{draw.number(max(deserved, 1), 12)} gpu"
    return row


def _job(
    draw: Draw,
    name: str,
    leaves: list[str],
    idle: dict[str, int] | None,
    models: dict[str, str],
    *,
    count: int = 0,
    cards: int = 0,
) -> dict[str, Any]:
    """Draw a job that runs on the cards of `idle`, which is reduced; without `idle` the job waits."""
    count, cards = count or draw.number(1, 4), cards or draw.number(1, 3)
    requests = draw.one_of((f"{cards} gpu", f"{cards} gpu, 1 cpu", f"{cards} gpu, {cards} cpu"))
    row: dict[str, Any] = {
        "name": name,
        "queue": draw.one_of(leaves),
        "priority": draw.number(0, 3),
        "min": draw.number(0, count),
        "tasks": [f"{count} x {requests}"],
    }
    pod: dict[str, Any] = {}
    if any(models.values()):
        model = draw.one_of((*sorted(set(models.values())), "|".join(sorted(set(models.values())))))
        row |= {"annotations": {"volcano.sh/card.name": model}, "requests": "none"}
        pod["metadata"] = {"ownerReferences": [{"kind": draw.one_of(("Job", "ReplicaSet"))}]}
        models = {node: has for node, has in models.items() if has in model.split("|")}
    if idle is not None:
        row["tasks"] = _running(draw, count, cards, requests, idle, models)
    else:
        row["phase"] = draw.one_of(("Inqueue", "Pending"))
        if len(row["tasks"]) == 1 and draw.often(25):  # tasks with different requests
            row["tasks"].append(f"{draw.number(1, 2)} x {draw.number(1, 3)} gpu")
    if draw.often(8):
        row["labels"] = {"volcano.sh/preemptable": "false"}
    if draw.often(25):
        pod["spec"] = draw.one_of(_constraints(sorted(models)))
    if count > 1 and draw.often(15):
        row["roles"] = {"": draw.number(0, count)}
    return {**row, "pod": pod} if pod else row


def _constraints(nodes: list[str]) -> tuple[dict[str, Any], ...]:
    return (
        {"priorityClassName": "system-cluster-critical"},
        {"preemptionPolicy": "Never"},
        {"nodeSelector": {"kubernetes.io/hostname": nodes[0] if nodes else "n0"}},
        {"nodeSelector": {"zone": "a"}},
        {"tolerations": [{"key": "kept", "operator": "Exists"}]},
        {"affinity": {"podAntiAffinity": _beside("kubernetes.io/hostname", "old0")}},
        {"affinity": {"podAffinity": _beside("zone", "old1")}},
    )


def _beside(key: str, job: str) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"job": job}}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def _budget(job: str, allowed: int) -> dict[str, Any]:
    return {
        "metadata": {"name": f"budget-{job}", "namespace": "t"},
        "spec": {"selector": {"matchLabels": {"job": job}}},
        "status": {"disruptionsAllowed": allowed},
    }


def _running(
    draw: Draw, count: int, cards: int, requests: str, idle: dict[str, int], models: dict[str, str]
) -> list[str]:
    placed: Counter[str] = Counter()
    for _ in range(count):
        fitting = [node for node, left in idle.items() if left >= cards and node in models]
        if fitting:
            node = draw.one_of(fitting)
            idle[node] -= cards
            placed[node] += 1
    state = draw.one_of(("running", "running", "running", "bound"))
    lines = [f"{number} x {requests} {state} on {node}" for node, number in placed.items()]
    rest = count - placed.total()
    return lines + ([f"{rest} x {requests}"] if rest else [])
