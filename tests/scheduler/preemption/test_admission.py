"""With `enqueue` the same jobs run in the end as without it, where the policy frees capacity for them."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, note
from hypothesis import strategies as st

from tests.support.core.events import policy_of
from tests.support.core.world import World

POLICY = """
actions: "{enqueue}allocate, {action}, backfill"
tiers:
- plugins: [{{name: priority}}, {{name: gang, enablePreemptable: false, enableReclaimable: false}}]
- plugins: [{{name: predicates}}, {{name: capacity, enableHierarchy: true}}]
"""
CYCLES = 25


@given(seed=st.integers(0, 2**32 - 1), action=st.sampled_from(("reclaim", "preempt")))
def test_a_single_job_runs_with_enqueue_if_it_runs_without(seed: int, action: str) -> None:
    """One job waits, with pods or without: no other job competes for what is evicted for it."""
    rng = random.Random(seed)
    table = full_tree(rng)
    note(str(table))
    with_pods, pods = rng.random() < 0.5, table["jobs"][-1]["tasks"]
    runs = [settles(table, POLICY.format(enqueue="", action=action), pods)]
    runs.append(settles(table, POLICY.format(enqueue="enqueue, ", action=action), pods, created_late=not with_pods))
    assert runs[0] == runs[1], f"{action} without enqueue, with enqueue"


def full_tree(rng: random.Random) -> dict[str, Any]:
    """Draw a department at its capability, whose teams borrow from each other, and a job of one team.

    The memory of a pod does not follow its cpu.
    """
    size = rng.randint(3, 8)
    parts = [rng.randint(1, size) for _ in range(2)]
    queues = [{"name": "dept", "capability": f"{size} cpu"}]
    queues += [
        {"name": name, "parent": "dept", "deserved": f"{cpu} cpu"} for name, cpu in zip("ab", parts, strict=True)
    ]
    jobs, left = [], size
    while left > 0:
        cpu = rng.randint(1, min(left, 3))
        left -= cpu
        tasks = f"1 x {cpu} cpu, {rng.randint(0, 3)} memory running on n1"
        jobs.append({"name": f"old{left}", "queue": rng.choice("ab"), "priority": rng.choice((0, 5)), "tasks": tasks})
    pods = rng.randint(1, 2)
    mine = {"name": "mine", "queue": rng.choice("ab"), "priority": rng.choice((0, 5, 9)), "min": pods}
    tasks = f"{pods} x {rng.randint(1, 3)} cpu, {rng.randint(0, 3)} memory"
    nodes = [{"name": "n1", "has": f"{size + 8} cpu, 64 memory"}]
    return {"queues": queues, "nodes": nodes, "jobs": [*jobs, {**mine, "tasks": tasks}]}


def settles(table: dict[str, Any], policy: str, pods: str, *, created_late: bool = False) -> bool:
    """Run cycles; return whether all pods of the last job run in the end."""
    world = World(policy_of(policy))
    world.load(table)
    created = {key: item for key, item in world.objects.items() if key[0] == "Pod" and "/mine-" in key[1]}
    for _, key in created if created_late else ():
        world.remove("Pod", key)
    for _ in range(CYCLES):
        decisions = world.cycle()
        world.carry_out(decisions, "return")
        if created_late and "t/mine" in decisions.phases:
            created_late = False
            for (kind, _), item in created.items():
                world.put(kind, item)
    return all(world.objects["Pod", key]["spec"].get("nodeName") for key in world.pods_of("mine")) and bool(
        world.pods_of("mine")
    )
