"""Draw random trees of HyperNodes, and gangs with topology constraints."""

from __future__ import annotations

import random
from typing import Any

EVICTING = """
actions: "enqueue, allocate, backfill, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: network-topology-aware}, {name: nodeorder}]
"""
POLICIES = [
    EVICTING,
    EVICTING.replace("{name: gang}", "{name: gang, enablePreemptable: false}"),
    EVICTING.replace("preempt", "reclaim, preempt").replace("{name: nodeorder}", "{name: capacity}"),
]


def tree(rng: random.Random) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Draw nodes in two to four racks, and the racks in two spines."""
    nodes, racks = [], []
    for number in range(rng.randint(2, 4)):
        nodes.append({"name": f"r{number}n[1-{rng.randint(1, 3)}]", "has": f"{rng.randint(2, 4)} cpu"})
        racks.append(_hyper_node(f"rack-{number}", 1, "rack", "Node", [{"regexMatch": {"pattern": f"^r{number}n"}}]))
    names = [rack["metadata"]["name"] for rack in racks]
    half = len(names) // 2
    spines = [
        _hyper_node(f"spine-{number}", 2, "spine", "HyperNode", [{"exactMatch": {"name": name}} for name in part])
        for number, part in enumerate((names[:half], names[half:]))
    ]
    return nodes, racks + spines


def _hyper_node(name: str, tier: int, tier_name: str, kind: str, selectors: list[dict[str, Any]]) -> dict[str, Any]:
    members = [{"type": kind, "selector": selector} for selector in selectors]
    return {"metadata": {"name": name}, "spec": {"tier": tier, "tierName": tier_name, "members": members}}


def job(rng: random.Random, number: int, *, late: bool) -> dict[str, Any]:
    """Draw a gang that requires a rack, a spine or nothing, possibly with subgroups or a pod without requests."""
    lines = [f"x: {rng.randint(1, 6)} x {rng.randint(1, 2)} cpu"]
    spec: dict[str, Any] = {}
    if rng.random() < 0.5:
        spec["networkTopology"] = {"mode": "hard", "highestTierName": rng.choice(["rack", "spine"])}
    elif rng.random() < 0.4:
        spec["networkTopology"] = {"mode": "soft"}
    if rng.random() < 0.3:
        lines.append(f"y: {rng.randint(1, 4)} x 1 cpu")
        policy = {"name": "p", "matchLabelKeys": ["volcano.sh/task-spec"], "subGroupSize": rng.randint(1, 2)}
        limit = {"mode": "hard", "highestTierName": "rack"} if rng.random() < 0.5 else {"mode": "soft"}
        spec["subGroupPolicy"] = [{**policy, "minSubGroups": rng.randint(0, 2), "networkTopology": limit}]
    if rng.random() < 0.15:
        lines.append("1 x nothing")
    total = sum(int(line.split(": ")[-1].split(" x ")[0]) for line in lines)
    return {
        "name": f"{'late' if late else 'early'}{number}",
        "queue": rng.choice(["a", "b"]),
        "priority": rng.randint(1, 3) + 5 * late,
        "tasks": lines,
        "min": rng.randint(1, total),
        "podgroup": {"spec": spec},
    }
