"""Evictions follow the rules while nodes and quotas change, under random policies, and in large clusters.

`--hypothesis-profile=nightly` selects the long run.
"""

from __future__ import annotations

import random

from hypothesis import given, note, settings
from hypothesis import strategies as st

from schedspec.scheduler.policy.loader import load_policy
from schedspec.scheduler.reasons import render_victim
from tests.scheduler.preemption.rules import check_evictions, evictions_are_in_proportion
from tests.support.core.events import happen
from tests.support.core.random_stories import changing_table, large_table, podless_job, random_events, with_term
from tests.support.core.random_tables import Draw, random_table
from tests.support.core.world import World

CYCLES = 6
VICTIMS = ("leave", "stay", "return", "return after 1", "return after 2", "return after 3")
RANDOM = st.randoms(use_true_random=False)
SEEDS = st.integers(0, 2**32 - 1)
"""Seeds for examples with so many draws that hypothesis would discard half of them; failures are not shrunk."""


def world_of(table: dict[str, object]) -> World:
    note(str(table))
    world = World(load_policy(str(table["policy"]), "random policy"))
    world.load(table)
    return world


@given(seed=SEEDS, victims=st.sampled_from(VICTIMS))
def test_memory_of_earlier_cycles_changes_no_decision_under_any_policy(seed: int, victims: str) -> None:
    """`World.cycle` decides each cycle a second time, on a state built afresh."""
    rng = random.Random(seed)
    table = changing_table(rng)
    world = world_of(table)
    for number in range(CYCLES):
        decisions = world.cycle()
        world.carry_out(decisions, victims)
        world.now += rng.choice((0.0, 1.0, 5.0))
        for event in random_events(rng, table):
            note(f"after {number}: {event}")
            happen(world, event)


@given(seed=SEEDS, victims=st.sampled_from(VICTIMS))
def test_jobs_without_pods_are_decided_as_after_a_restart_beside_pods_with_terms(seed: int, victims: str) -> None:
    draw = Draw(random.Random(seed))
    table = random_table(random.Random(seed))
    table["jobs"] = [with_term(draw, row, table) if draw.often(50) else row for row in table["jobs"]]
    world = world_of(table)
    for _ in range(3):
        table["jobs"].append(podless_job(draw, table))
        world.load({"jobs": table["jobs"][-1:]})
        world.carry_out(world.cycle(), victims)


@given(rng=RANDOM, victims=st.sampled_from(VICTIMS))
def test_evictions_are_in_proportion_while_quotas_and_nodes_change(rng: random.Random, victims: str) -> None:
    table = random_table(rng)
    world = world_of(table)
    for number in range(CYCLES):
        decisions = world.cycle()
        for evict in decisions.evictions:
            note(f"{number}: {evict.task}: {render_victim(evict.reason)}")
        evictions_are_in_proportion(world.cluster, decisions)
        world.carry_out(decisions, victims)
        for event in random_events(rng, table):
            note(f"after {number}: {event}")
            happen(world, event)


# A large cluster takes a hundred times as long as a small one.
@settings(max_examples=max(settings().max_examples // 20, 3))
@given(rng=RANDOM, victims=st.sampled_from(VICTIMS))
def test_every_eviction_follows_the_rules_on_50_nodes(rng: random.Random, victims: str) -> None:
    world = world_of(large_table(rng))
    for number in range(3):
        decisions = world.cycle()
        for evict in decisions.evictions:
            note(f"{number}: {evict.task}: {render_victim(evict.reason)}")
        check_evictions(world.cluster, world.policy, decisions)
        world.carry_out(decisions, victims)
