"""A gang whose queue may not reclaim for all its tasks is refused before victims are sought; nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.scheduler.decide import decide
from schedspec.scheduler.policy.loader import load_policy
from schedspec.scheduler.preemption import preemptor
from schedspec.scheduler.preemption.cost import Pricing
from schedspec.scheduler.reasons import NotEntitled, NoVictims
from tests.support.core.events import policy_of
from tests.support.core.random_tables import tables
from tests.support.core.world import World

POLICY = """
actions: "enqueue, allocate, backfill, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
"""


def cluster_with_a_loan(*, waiting: list[str]) -> World:
    """Return a full cluster: queue a, which deserves 2 of 4 cards, has lent one of them to queue b."""
    world = World(policy_of(POLICY))
    world.load(
        {
            "nodes": [{"name": "n", "has": "16 cpu, 4 gpu"}],
            "queues": [{"name": "a", "deserved": "8 cpu, 2 gpu"}, {"name": "b", "deserved": "8 cpu, 2 gpu"}],
            "jobs": [
                {"name": "own", "queue": "a", "min": 1, "phase": "Running", "tasks": "1 x 1 gpu running on n"},
                {"name": "loan", "queue": "b", "min": 1, "phase": "Running", "tasks": "3 x 1 gpu running on n"},
                {"name": "gang", "queue": "a", "min": 2, "tasks": waiting, "phase": "Inqueue"},
            ],
        }
    )
    return world


def test_no_node_is_priced_for_a_gang_that_is_entitled_only_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pricing, "bounds", lambda *_: pytest.fail("a node was priced"))
    refusal = cluster_with_a_loan(waiting=["2 x 1 gpu"]).cycle().refusals["t/gang"]
    [why] = [why for why in refusal.items if isinstance(why, NotEntitled)]
    assert (why.allocated, why.requested, why.deserved) == (1000, 2000, 2000)


def test_victims_are_sought_for_a_gang_that_may_choose_a_smaller_task() -> None:
    refusal = cluster_with_a_loan(waiting=["2 x 1 gpu", "1 x 1 cpu"]).cycle().refusals["t/gang"]
    assert any(isinstance(why, NoVictims) for why in refusal.items)


@given(table=tables(), victims=st.sampled_from(("leave", "return", "stay")))
def test_the_early_refusal_changes_no_decision(table: dict[str, Any], victims: str) -> None:
    policy = load_policy(table["policy"], "random policy")
    world = World(policy)
    world.load(table)
    for _ in range(3):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(preemptor, "_why_gang_not_entitled", lambda *_: None)
            late = decide(world.fresh(), policy, world.now)
        early = decide(world.fresh(), policy, world.now)
        for decisions in (early, late):
            decisions.refusals.clear()
            decisions.memory.waiting.clear()
        early.steps = late.steps
        assert early == late
        world.carry_out(world.cycle(), victims)
