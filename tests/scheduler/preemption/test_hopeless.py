"""A search for victims in vain is not repeated for jobs of other sizes, and no reason changes because of that."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.scheduler.decide import decide
from schedspec.scheduler.model.nodes import NodeInfo
from schedspec.scheduler.model.task import Task
from schedspec.scheduler.preemption.cycle_cache import Hopeless
from schedspec.scheduler.preemption.eligibility import VictimFilter
from tests.support.core.events import policy_of
from tests.support.core.world import World, without_bookkeeping

POLICY = """
actions: "{actions}"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}, {{name: predicates}}, {{name: {queues}}}]
"""


def world_of(jobs: list[dict[str, Any]], queues: list[dict[str, Any]], policy: str) -> World:
    world = World(policy_of(policy))
    world.load({"nodes": [{"name": f"n{at}", "has": "8 cpu, 4 gpu"} for at in range(4)], "queues": queues})
    world.load({"jobs": jobs})
    return world


@pytest.mark.parametrize("waiting", [1, 20])
def test_only_the_first_of_jobs_of_many_sizes_and_queues_examines_the_candidates(
    waiting: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes: list[str] = []
    candidates = VictimFilter.candidates

    def counted(self: VictimFilter, preemptor: Task, node: NodeInfo) -> list[Task]:
        nodes.append(node.name)
        return candidates(self, preemptor, node)

    monkeypatch.setattr(VictimFilter, "candidates", counted)
    runs = [{"name": f"r{at}", "queue": "a", "tasks": f"2 x 2 cpu running on n{at % 4}"} for at in range(8)]
    waits = [
        {"name": f"w{at}", "queue": "bcd"[at % 3], "phase": "Inqueue", "tasks": f"1 x {1000 + at}m cpu"}
        for at in range(waiting)
    ]
    queues = [{"name": name, "deserved": "32 cpu"} for name in "abcd"]
    world = world_of([*runs, *waits], queues, POLICY.format(actions="allocate, reclaim", queues="capacity"))
    decisions = decide(world.cluster, world.policy, world.now)
    assert len(decisions.refusals) == waiting
    assert sorted(nodes) == ["n0", "n1", "n2", "n3"]


@given(seed=st.integers(0, 2**32 - 1))
def test_decisions_and_reasons_are_those_of_a_search_for_each_job(seed: int) -> None:
    rng = random.Random(seed)
    queues: list[dict[str, Any]] = [
        {"name": name, "deserved": f"{rng.randint(0, 20)} cpu, {rng.randint(0, 9)} gpu"} for name in "abcde"
    ]
    for queue in rng.sample(queues, rng.randrange(3)):
        queue.update(rng.choice(({"guarantee": "2 cpu"}, {"reclaimable": False}, {"capability": "9 cpu"})))
    amounts = ("1 cpu", "2 cpu", "3 cpu", "1 gpu", "2 gpu", "1 cpu, 1 gpu", "3 cpu, 2 gpu")
    jobs = [
        {"name": f"r{at}", "queue": rng.choice("abc"), "min": 1, "priority": rng.randrange(3),
         "tasks": f"{rng.randint(1, 2)} x {rng.choice(amounts)} running on n{rng.randrange(4)}"}
        for at in range(rng.randint(2, 10))
    ] + [
        {"name": f"w{at}", "queue": rng.choice("abcde"), "phase": "Inqueue", "priority": rng.randrange(3),
         "tasks": f"{rng.randint(1, 3)} x {rng.choice(amounts)}"}
        for at in range(rng.randint(2, 8))
    ]  # fmt: skip
    actions = rng.choice(("allocate, reclaim", "reclaim, allocate", "allocate, reclaim, preempt"))
    policy = POLICY.format(actions=actions, queues=rng.choice(("capacity", "proportion")))
    found = []
    for shares in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not shares:
                patch.setattr(Hopeless, "of", lambda *_: None)
            world = world_of(jobs, queues, policy)
            found.append(without_bookkeeping(decide(world.cluster, world.policy, world.now), set()))
    assert found[0] == found[1]
