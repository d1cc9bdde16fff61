"""Evictions for a hard gang are in one domain only: the domain in which they cost least."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.policy.loader import load_policy
from schedspec.scheduler.policy.model import Policy
from schedspec.scheduler.preemption.domain_costs import DomainCosts
from tests.support.core.random_gangs import EVICTING
from tests.support.core.world import World, without_bookkeeping

WITH_GANG = load_policy(EVICTING, "test")
POLICY = load_policy(EVICTING.replace("{name: gang}", "{name: gang, enablePreemptable: false}"), "test")
CPUS, RACKS = 4, range(10)
Pods = list[int]
"""The priorities of the pods in a rack; each pod has one cpu."""
racks = st.lists(st.lists(st.integers(1, 4), max_size=CPUS), min_size=1, max_size=12)


def decide_for_one(pods_by_rack: dict[int, Pods], size: int) -> Decisions:
    """Return the first decisions for a gang of `size` cpus in racks of two nodes on which these pods run."""
    jobs = [
        {"name": f"r{rack}p{number}", "priority": priority, "tasks": f"1 x 1 cpu running on r{rack}n{number % 2 + 1}"}
        for rack, pods in pods_by_rack.items()
        for number, priority in enumerate(pods)
    ]
    return decide_for(1, size, pods_by_rack, jobs, POLICY)


def decide_for(gangs: int, size: int, racks: Iterable[int], jobs: list[dict[str, Any]], policy: Policy) -> Decisions:
    """Return the first decisions for equal gangs of `size` cpus in racks of two nodes on which these jobs run."""
    nodes, hyper_nodes = [], []
    for rack in racks:
        nodes.append({"name": f"r{rack}n[1-2]", "has": f"{CPUS // 2} cpu"})
        member = {"type": "Node", "selector": {"regexMatch": {"pattern": f"^r{rack}n"}}}
        spec = {"tier": 1, "tierName": "rack", "members": [member]}
        hyper_nodes.append({"metadata": {"name": f"rack-{rack:02}"}, "spec": spec})
    limit = {"spec": {"networkTopology": {"mode": "hard", "highestTierName": "rack"}}}
    new = {"priority": 9, "tasks": f"{size} x 1 cpu", "phase": "Inqueue", "podgroup": limit}
    jobs = [*jobs, *({"name": f"new{number}", **new} for number in range(gangs))]
    world = World(policy)
    world.load({"nodes": nodes, "queues": [{"name": "default"}], "objects": {"HyperNode": hyper_nodes}, "jobs": jobs})
    return world.cycle()


def cost(priorities: Iterable[int]) -> tuple[int, int]:
    """Return the highest priority that is evicted, and how many pods have it; ages are ignored."""
    return max(Counter(priorities).items())


@given(racks, st.integers(1, CPUS))
def test_the_domain_with_the_cheapest_victims_is_freed(racks: list[Pods], size: int) -> None:
    found = decide_for_one(dict(enumerate(racks)), size)

    victims = [it.task.removeprefix("t/r").removesuffix("-0").split("p") for it in found.evictions]
    assert len({rack for rack, _ in victims}) <= 1
    if any(CPUS - len(pods) >= size for pods in racks):
        assert len(found.binds) == size
        assert not victims
    else:
        cheapest = min(cost(sorted(pods)[: size - CPUS + len(pods)]) for pods in racks)
        assert cost(racks[int(rack)][int(number)] for rack, number in victims) == cheapest


@st.composite
def jobs_on_racks(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw jobs that fill all cpus of the racks; each job has one priority, pods in any racks and maybe spare pods."""
    owners: dict[int, list[str]] = {}
    for rack in RACKS:
        for number in range(CPUS):
            owners.setdefault(draw(st.integers(0, 19)), []).append(f"1 x 1 cpu running on r{rack}n{number % 2 + 1}")
    return [
        {"name": f"old{owner}", "priority": owner % 3, "tasks": tasks, "min": draw(st.integers(1, len(tasks)))}
        for owner, tasks in owners.items()
    ]


@settings(max_examples=settings().max_examples // 4)  # two cycles of five gangs each
@given(jobs_on_racks(), st.integers(2, 5), st.integers(1, CPUS), st.sampled_from([POLICY, WITH_GANG]))
def test_cached_costs_of_equal_gangs_change_no_decision(
    jobs: list[dict[str, Any]], gangs: int, size: int, policy: Policy
) -> None:
    found = decide_for(gangs, size, RACKS, jobs, policy)
    with mock.patch.object(DomainCosts, "known", return_value=None):
        assert without_bookkeeping(found) == without_bookkeeping(decide_for(gangs, size, RACKS, jobs, policy))


def test_a_rack_near_the_end_of_the_list_is_freed_if_it_costs_least() -> None:
    racks: dict[int, Pods] = {number: [3] * CPUS for number in range(30)}
    racks[27] = [3, 1, 1, 1]

    found = decide_for_one(racks, 3)

    assert sorted(eviction.task for eviction in found.evictions) == ["t/r27p1-0", "t/r27p2-0", "t/r27p3-0"]
