"""No start uses what is guaranteed to other queues and unused, whatever the queues hold, request and reclaim.

`World.cycle` checks the rule after each cycle (`tests.support.core.invariants`), with its own sums.
"""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, note
from hypothesis import strategies as st

from tests.support.core.events import policy_of
from tests.support.core.world import World

POLICY = """
actions: "allocate, {action}, backfill"
tiers:
- plugins: [{{name: priority}}, {{name: gang{gang}}}]
- plugins: [{{name: predicates}}, {{name: {plugin}}}]
"""
PLUGINS = ("capacity", "capacity, enableHierarchy: true", "proportion", "capacity-card")
CYCLES = 5


@given(seed=st.integers(0, 2**32 - 1), victims=st.sampled_from(("leave", "return", "return after 1")))
def test_no_start_uses_what_is_guaranteed_to_other_queues(seed: int, victims: str) -> None:
    rng = random.Random(seed)
    table = guaranteed(rng)
    note(str(table))
    world = World(policy_of(table["policy"]))
    world.load(table)
    for number in range(CYCLES):
        world.restart()  # what is remembered about waiting jobs is tested with the backlog
        world.carry_out(world.cycle(), victims)
        if number == 2:
            world.load({"jobs": [{"name": f"late{at}", **job(rng, table["leaves"])} for at in range(2)]})


def guaranteed(rng: random.Random) -> dict[str, Any]:
    """Draw queues of which most are guaranteed something, and jobs whose memory does not follow their cpu."""
    plugin = rng.choice(PLUGINS)
    queues = [{"name": f"q{at}", **amounts(rng)} for at in range(rng.randint(2, 4))]
    leaves = [queue["name"] for queue in queues]
    if "Hierarchy" in plugin:
        queues += [{"name": top, **amounts(rng)} for top in ("left", "right")]
        for queue in queues[:-2]:
            queue["parent"] = rng.choice(("left", "right"))
        leaves += [top for top in ("left", "right") if not any(queue.get("parent") == top for queue in queues)]
    gang = rng.choice(("", ", enableReclaimable: false, enablePreemptable: false, enableJobStarving: false"))
    policy = POLICY.format(plugin=plugin, gang=gang, action=rng.choice(("reclaim", "preempt", "reclaim, preempt")))
    nodes = [{"name": f"n{at}", "has": f"{rng.randint(2, 8)} cpu, {rng.randint(2, 8)} memory"} for at in range(2)]
    jobs = [{"name": f"j{at}", **job(rng, leaves)} for at in range(rng.randint(2, 7))]
    return {"policy": policy, "queues": queues, "nodes": nodes, "jobs": jobs, "leaves": leaves}


def amounts(rng: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {"weight": rng.randint(1, 3)}
    for field, most, probability in (("guarantee", 3, 0.7), ("deserved", 6, 0.7), ("capability", 9, 0.3)):
        if rng.random() < probability:
            found[field] = f"{rng.randint(1, most)} cpu, {rng.randint(0, most)} memory"
    return found


def job(rng: random.Random, leaves: list[str]) -> dict[str, Any]:
    pods = rng.choice((1, 1, 2, 3))
    return {
        "queue": rng.choice(leaves),
        "tasks": [f"{pods} x {rng.randint(1, 5)} cpu, {rng.randint(0, 5)} memory"],
        "min": rng.randint(1, pods),
        "priority": rng.choice((0, 0, 5)),
    }
