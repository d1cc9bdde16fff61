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
actions: "{actions}"
tiers:
- plugins: [{{name: priority}}, {{name: gang{gang}}}]
- plugins: [{{name: predicates}}, {{name: {plugin}}}]
"""
PLUGINS = ("capacity", "capacity, enableHierarchy: true", "proportion", "capacity-card")
EVICTING = ("allocate, reclaim, backfill", "allocate, preempt, backfill", "allocate, reclaim, preempt, backfill")
CYCLES = 5


@given(seed=st.integers(0, 2**32 - 1), victims=st.sampled_from(("leave", "return", "return after 1")))
def test_no_start_uses_what_is_guaranteed_to_other_queues(seed: int, victims: str) -> None:
    rng = random.Random(seed)
    table = guaranteed(rng, EVICTING)
    note(str(table))
    world = World(policy_of(table["policy"]))
    world.load(table)
    for number in range(CYCLES):
        world.restart()  # what is remembered about waiting jobs is tested with the backlog
        world.carry_out(world.cycle(), victims)
        if number == 2:
            world.load({"jobs": [{"name": f"late{at}", **job(rng, table["leaves"])} for at in range(2)]})


@given(seed=st.integers(0, 2**32 - 1))
def test_under_proportion_a_job_learns_of_what_the_first_work_of_others_leaves(seed: int) -> None:
    """`World.cycle` decides each cycle a second time, on a state without memory of waiting jobs."""
    rng = random.Random(seed)
    busy = [{"name": f"busy{at}", "weight": rng.randint(1, 3)} for at in range(2)]
    kept = [
        {"name": f"kept{at}", "weight": rng.randint(1, 3), "guarantee": f"{rng.randint(1, 4)} cpu"} for at in (0, 1)
    ]
    nodes = [{"name": "n0", "has": f"{rng.randint(6, 12)} cpu"}]
    jobs = [{"name": f"j{at}", "queue": f"busy{at % 2}", "tasks": f"1 x {rng.randint(1, 5)} cpu"} for at in range(4)]
    table = {"queues": busy + kept, "nodes": nodes, "jobs": jobs}
    note(str(table))
    world = World(policy_of(POLICY.format(plugin="proportion", gang="", actions="allocate, backfill")))
    world.load(table)
    for at in range(3):
        for _ in range(2):  # all jobs that can start have started
            world.carry_out(world.cycle())
        if at < 2:
            world.load({"jobs": [{"name": f"first{at}", "queue": f"kept{at}", "tasks": "1 x 1 cpu"}]})


def guaranteed(rng: random.Random, actions: tuple[str, ...]) -> dict[str, Any]:
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
    policy = POLICY.format(plugin=plugin, gang=gang, actions=rng.choice(actions))
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
