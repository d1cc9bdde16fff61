"""A job refused by a quota is retried only when the quota may have room; decisions are as if it always were."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.core.events import happen, policy_of
from tests.support.core.random_stories import random_policy
from tests.support.core.stories import run_story, settle, tried
from tests.support.core.world import World

ENQUEUE = "enqueue, allocate"
RECLAIM = "allocate, reclaim"
POLICY = """
actions: "{actions}"
tiers: [{{plugins: [{{name: priority}}, {{name: gang}}, {{name: predicates}}, {{name: capacity}}]}}]
"""
SIZES = range(2, 12)


def full_queue(actions: str, phase: str, **shares: str) -> World:
    """Return a queue that holds 8 cpu, with waiting jobs of different sizes; pods of another queue run too."""
    world = World(policy_of(POLICY.format(actions=actions)))
    running = {"queue": "q", "min": 1, "phase": "Running"}
    world.load(
        {
            "nodes": [{"name": "n", "has": "12 cpu" if shares.get("deserved") else "80 cpu"}],
            "queues": [{"name": "q", **shares}, {"name": "other", "deserved": "4 cpu"}],
            "jobs": [
                {**running, "name": "a", "tasks": "1 x 2 cpu running on n"},
                {**running, "name": "b", "tasks": "1 x 6 cpu running on n"},
                {**running, "name": "c", "tasks": "1 x 1 cpu running on n", "queue": "other"},
                {**running, "name": "d", "tasks": "1 x 3 cpu running on n", "queue": "other"},
                *(
                    {"name": f"j{at:02}", "queue": "q", "tasks": f"1 x {at} cpu", "phase": phase, "min": 1}
                    for at in SIZES
                ),
            ],
        }
    )
    settle(world)
    return world


KINDS = {
    "admission": (ENQUEUE, "Pending", {"capability": "8 cpu"}),
    "capability": ("allocate", "Inqueue", {"capability": "8 cpu"}),
    "deserved": (RECLAIM, "Inqueue", {"deserved": "8 cpu", "capability": "8 cpu"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_room_in_a_quota_wakes_the_jobs_that_fit_into_it(kind: str) -> None:
    actions, phase, shares = KINDS[kind]
    world = full_queue(actions, phase, **shares)
    assert len(world.core.backlog.entries) == len(SIZES)
    happen(world, {"finish": "a"})
    assert tried(world) == ["j02"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_pod_of_another_queue_that_ends_wakes_no_job_refused_by_a_quota(kind: str) -> None:
    actions, phase, shares = KINDS[kind]
    world = full_queue(actions, phase, **shares)
    happen(world, {"finish": "c"})
    assert tried(world) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_higher_quota_wakes_all_jobs_refused_by_it(kind: str) -> None:
    actions, phase, shares = KINDS[kind]
    world = full_queue(actions, phase, **shares)
    happen(world, {"change": {"Queue q": {"spec": {"capability": {"cpu": "60"}}}}})
    assert len(tried(world)) == len(SIZES)


def test_room_in_a_quota_is_tried_by_one_equal_job_more_than_it_has_room_for() -> None:
    world = World(policy_of(POLICY.format(actions="allocate")))
    running = {"queue": "q", "min": 1, "phase": "Running", "tasks": "1 x 3 cpu running on n"}
    waiting = {"queue": "q", "min": 1, "phase": "Inqueue"}
    world.load(
        {
            "nodes": [{"name": "n", "has": "80 cpu"}],
            "queues": [{"name": "q", "capability": "6 cpu"}],
            "jobs": [
                *({"name": name, **running} for name in ("a", "b")),
                *({"name": f"w{at}", "priority": 9 - at, "tasks": "1 x 2 cpu", **waiting} for at in range(4)),
                {"name": "z", "priority": 1, "tasks": "1 x 1 cpu", **waiting},
            ],
        }
    )
    settle(world)
    happen(world, {"finish": "a"})
    assert tried(world) == ["w0", "w1", "z"], "there is room for 3 cpu: for w0 and z"
    happen(world, {"finish": "b"})
    assert tried(world) == ["w1", "w2"]


def test_a_gang_woken_by_room_in_its_quota_gets_its_spare_pods_too() -> None:
    world = World(policy_of(POLICY.format(actions="allocate")))
    running = {"name": "a", "min": 1, "phase": "Running", "tasks": "1 x 6 cpu running on n"}
    gang = {"name": "gang", "min": 2, "phase": "Inqueue", "tasks": "3 x 2 cpu"}
    queues = [{"name": "q", "capability": "6 cpu"}]
    jobs = [{**row, "queue": "q"} for row in (running, gang)]
    world.load({"nodes": [{"name": "n", "has": "80 cpu"}], "queues": queues, "jobs": jobs})
    settle(world)
    happen(world, {"finish": "a"})
    assert [bind.job for bind in world.cycle().binds] == ["t/gang"] * 3


def test_an_eviction_wakes_no_job_without_room_in_its_share_or_without_admission() -> None:
    world = World(policy_of(POLICY.format(actions="enqueue, allocate, reclaim").replace("capacity", "proportion")))
    waiting = {"queue": "q", "min": 1}
    world.load(
        {
            "nodes": [{"name": "n", "has": "8 cpu"}],
            "queues": [{"name": "q"}, {"name": "owner"}],
            "jobs": [
                {"name": "lender", "queue": "q", "min": 1, "phase": "Running", "tasks": "4 x 2 cpu running on n"},
                *({"name": f"p{at}", "phase": "Pending", "tasks": f"1 x {at + 1} cpu", **waiting} for at in range(3)),
                *({"name": f"w{at}", "phase": "Inqueue", "tasks": f"1 x {at + 1} cpu", **waiting} for at in range(3)),
            ],
        }
    )
    settle(world)
    world.load({"jobs": [{"name": "claim", "queue": "owner", "min": 1, "phase": "Inqueue", "tasks": "1 x 2 cpu"}]})
    assert tried(world) == [], "the freed room is kept for the claim"
    assert world.core.backlog.claims == {"t/claim-0": "n"}


@example(seed=2488, victims="leave")  # sla lets a gang keep room for a part of its tasks
@example(seed=2076, victims="leave")  # gang does not vote on a part of its tasks
@example(seed=1213010, victims="leave")  # one pod of a job requests zero cards, another one names no cards
@example(seed=2759450097, victims="leave")  # a lost claim frees room in a deserved share
@example(seed=47811, victims="return after 2")  # after a bind, drf serves another job before the one with the claim
@example(seed=4199464852, victims="return after 2")  # a skipped job loses pods, and its phase changes
@example(seed=23207, victims="return")  # a pod that alone frees enough quota is protected once a smaller one is evicted
@example(seed=452, victims="return")  # another job gets the capacity kept for a job, and a third gets what is left
@example(seed=55476, victims="leave")  # a preemption asks which other jobs would reclaim, and records nothing for them
@given(seed=st.integers(0, 2**32 - 1), victims=st.sampled_from(("leave", "stay", "return", "return after 2")))
def test_waiting_for_room_in_a_quota_changes_no_decision(seed: int, victims: str) -> None:
    """`World.cycle` decides each cycle a second time, on a state without a backlog."""
    rng = random.Random(seed)
    run_story(rng, crowd(rng), event_of, victims=victims, cycles=8)


def crowd(rng: random.Random) -> dict[str, Any]:
    """Return queues with small quotas on nodes with much room, and jobs of different shapes."""
    tree = rng.random() < 0.4
    queues = [{"name": f"q{at}", **shares(rng)} for at in range(rng.randint(1, 4))]
    for queue in queues[1:] if tree else ():
        if rng.random() < 0.5:
            queue["parent"] = "top"
    if tree:
        queues.append({"name": "top", **shares(rng)})
    leaves = [queue["name"] for queue in queues if queue["name"] != "top"]
    nodes = [{"name": f"n{at}", "has": f"{rng.choice((8, 16))} cpu, {rng.choice((4, 8))} gpu"} for at in range(2)]
    jobs = [{"name": f"j{at:02}", **job_of(rng, leaves)} for at in range(rng.randint(4, 14))]
    return {"policy": random_policy(rng, tree=tree), "queues": queues, "nodes": nodes, "jobs": jobs, "leaves": leaves}


def shares(rng: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {"weight": rng.randint(1, 3)}
    for field, probability in (("deserved", 0.6), ("capability", 0.7), ("guarantee", 0.2)):
        if rng.random() < probability:
            most = 2 if field == "guarantee" else 8
            found[field] = f"{rng.randint(1, most)} cpu, {rng.randint(1, most)} gpu"
    return found


def job_of(rng: random.Random, leaves: list[str]) -> dict[str, Any]:
    pods = rng.choice((1, 1, 2, 3))
    tasks = [f"{pods} x {rng.randint(1, 4)} cpu, {rng.randint(0, 3)} gpu"]
    if rng.random() < 0.3:
        tasks.append(f"1 x {rng.randint(1, 3)} cpu")
    found = {
        "queue": rng.choice(leaves),
        "tasks": tasks,
        "min": rng.randint(1, pods),
        "phase": rng.choice(("", "Inqueue", "Inqueue")),
        "priority": rng.choice((0, 0, 5)),
    }
    return {**found, "requests": "none"} if rng.random() < 0.3 else found


def event_of(rng: random.Random, table: dict[str, Any], number: int) -> dict[str, Any]:
    kind, job = rng.random(), rng.choice(table["jobs"])["name"]
    if kind < 0.2:
        return {"add": {"jobs": [{"name": f"k{number}{rng.randrange(10**6)}", **job_of(rng, table["leaves"])}]}}
    if kind < 0.3:
        queue = rng.choice(table["queues"])["name"]
        amount = {"cpu": str(rng.randint(1, 12)), "nvidia.com/gpu": str(rng.randint(1, 12))}
        return {"change": {f"Queue {queue}": {"spec": {rng.choice(("capability", "deserved")): amount}}}}
    if kind < 0.5:
        return {"leave": f"{job}-0"}
    return rng.choice(({"finish": job}, {"delete": {"job": job}}, {"recreate": job}, {"delete": {"pod": f"{job}-1"}}))
