"""Draw random clusters for the properties of evictions, as tables (`tests.support.core.notation`).

The tables use every feature that policies refer to: selectors, taints, disruption budgets, guarantees, trees of queues
with three levels, cards. Each amount of each resource is drawn on its own: a pod may hold much of one resource and
nothing of another, and a queue may lack one resource and exceed its share of another. Everything is drawn from one
`random.Random`: it draws ten thousand clusters in seconds. `tables` is slower, but it can shrink a failing cluster.
"""

from __future__ import annotations

import random
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
RESOURCES = {"cpu": "", "gpu": "", "memory": "Gi"}
"""Resource → its unit."""
Amounts = dict[str, int]
"""Resource → amount, without the resources of which there is none."""


class Draw:
    """Random choices for one cluster."""

    def __init__(self, rng: random.Random) -> None:
        self.one_of = rng.choice
        self.number = rng.randint

    def often(self, percent: int) -> bool:
        return self.number(1, PERCENT) <= percent

    def amounts(self, least: int, most: int, percent: int = PERCENT) -> Amounts:
        """Draw an amount of each resource on its own; each is named in `percent` of the draws."""
        return {name: self.number(least, most) for name in RESOURCES if self.often(percent)}


def random_table(rng: random.Random) -> dict[str, Any]:
    """Draw a cluster with running and waiting work, and its policy."""
    draw = Draw(rng)
    policy = draw.one_of(sorted(WITH_BUDGETS))
    cards = policy.startswith("cards")
    idle = {f"n{i}": draw.amounts(2, 8) for i in range(draw.number(1, 3))}
    nodes = [_node(draw, name, has, cards=cards) for name, has in idle.items()]
    queues = _tree(draw, TREES[policy]) if policy in TREES else [_queue(draw, f"q{i}", cards=cards) for i in range(3)]
    parents = {queue.get("parent") for queue in queues}
    leaves = [queue["name"] for queue in queues if queue["name"] not in parents]
    models = {node["name"]: node["labels"].get("nvidia.com/gpu.product", "") for node in nodes}
    jobs = [_job(draw, f"old{i}", leaves, idle, models) for i in range(draw.number(0, 4))]
    for node, left in idle.items():
        for i in range(draw.number(1, 2)):
            shape = random_shape(draw, cards=cards)
            if count := min(left[name] // amount for name, amount in shape.items()):
                row = _job(draw, f"fill{i}{node}", leaves, {node: left}, {node: models[node]}, count=count, shape=shape)
                jobs.append({**row, "min": draw.one_of((0, 0, 1, count))})
    jobs += [_job(draw, f"new{i}", leaves, None, models) for i in range(draw.number(1, 4))]
    table = {"policy": WITH_BUDGETS[policy], "nodes": nodes, "queues": queues, "jobs": jobs}
    if draw.often(15):
        table["objects"] = {"PodDisruptionBudget": [_budget(draw.one_of(jobs)["name"], draw.number(0, 2))]}
    return table


def tables() -> st.SearchStrategy[dict[str, Any]]:
    """Draw clusters that hypothesis can shrink."""
    return st.randoms(use_true_random=False).map(random_table)


def text(amounts: Amounts) -> str:
    return ", ".join(f"{amount}{RESOURCES[name]} {name}" for name, amount in amounts.items()) or "nothing"


def random_shape(draw: Draw, *, cards: bool = False) -> Amounts:
    """Draw what one pod requests: of some resources nothing, of the others 1 to 3."""
    amounts = {name: draw.one_of((0, 1, 1, 2, 3)) for name in RESOURCES}
    amounts["gpu"] = max(amounts["gpu"], int(cards or not any(amounts.values())))
    return {name: amount for name, amount in amounts.items() if amount}


def _node(draw: Draw, name: str, has: Amounts, *, cards: bool) -> dict[str, Any]:
    labels = {"zone": draw.one_of("ab")}
    if cards:
        model, count = draw.one_of(MODELS), str(has["gpu"])
        labels |= {"nvidia.com/gpu.product": model, "nvidia.com/gpu.count": count, "nvidia.com/gpu.memory": "24576"}
    row: dict[str, Any] = {"name": name, "has": text(has), "labels": labels}
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
    if draw.often(75):
        row["deserved"] = text(draw.amounts(0, 8, percent=70))
    if draw.often(30):
        row["guarantee"] = text(draw.amounts(0, 2, percent=60))
    if draw.often(25):
        row["capability"] = text(draw.amounts(1, 12, percent=60))
    return row


def _job(
    draw: Draw,
    name: str,
    leaves: list[str],
    idle: dict[str, Amounts] | None,
    models: dict[str, str],
    *,
    count: int = 0,
    shape: Amounts | None = None,
) -> dict[str, Any]:
    """Draw a job that runs on what is `idle`, which is reduced; without `idle` the job waits."""
    cards = any(models.values())
    count, shape = count or draw.number(1, 4), shape or random_shape(draw, cards=cards)
    row: dict[str, Any] = {
        "name": name,
        "queue": draw.one_of(leaves),
        "priority": draw.number(0, 3),
        "min": draw.number(0, count),
        "tasks": [f"{count} x {text(shape)}"],
    }
    pod: dict[str, Any] = {}
    if cards:
        model = draw.one_of((*sorted(set(models.values())), "|".join(sorted(set(models.values())))))
        row |= {"annotations": {"volcano.sh/card.name": model}, "requests": "none"}
        pod["metadata"] = {"ownerReferences": [{"kind": draw.one_of(("Job", "ReplicaSet"))}]}
        models = {node: has for node, has in models.items() if has in model.split("|")}
    if idle is not None:
        row["tasks"] = _running(draw, count, shape, idle, models)
    else:
        row["phase"] = draw.one_of(("Inqueue", "Pending"))
        if draw.often(25):  # tasks with different requests
            row["tasks"].append(f"{draw.number(1, 2)} x {text(random_shape(draw, cards=cards))}")
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
        {"affinity": {"podAntiAffinity": beside("kubernetes.io/hostname", "old0")}},
        {"affinity": {"podAffinity": beside("zone", "old1")}},
    )


def beside(key: str, job: str) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"job": job}}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def _budget(job: str, allowed: int) -> dict[str, Any]:
    return {
        "metadata": {"name": f"budget-{job}", "namespace": "t"},
        "spec": {"selector": {"matchLabels": {"job": job}}},
        "status": {"disruptionsAllowed": allowed},
    }


def _running(draw: Draw, count: int, shape: Amounts, idle: dict[str, Amounts], models: dict[str, str]) -> list[str]:
    placed: Counter[str] = Counter()
    for _ in range(count):
        fitting = [node for node, left in idle.items() if node in models and fits(shape, left)]
        if fitting:
            node = draw.one_of(fitting)
            for name, amount in shape.items():
                idle[node][name] -= amount
            placed[node] += 1
    state = draw.one_of(("running", "running", "running", "bound"))
    lines = [f"{number} x {text(shape)} {state} on {node}" for node, number in placed.items()]
    rest = count - placed.total()
    return lines + ([f"{rest} x {text(shape)}"] if rest else [])


def fits(shape: Amounts, left: Amounts) -> bool:
    return all(left[name] >= amount for name, amount in shape.items())
