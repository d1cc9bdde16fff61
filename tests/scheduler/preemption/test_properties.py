"""Every eviction follows the rules, on random clusters (`--hypothesis-profile=nightly` for the long run)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, note
from hypothesis import strategies as st

from schedspec.scheduler.decide import decide
from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.policy.loader import load_policy
from schedspec.scheduler.reasons import render_refusal, render_victim
from tests.scheduler.preemption.rules import check_evictions
from tests.support.core.random_tables import POLICIES, tables
from tests.support.core.world import World

FOUND = yaml.safe_load((Path(__file__).parent / "found.yaml").read_text())

CYCLES = 24
"""With static demand the system settles within this number of cycles, or never."""


def world_of(table: dict[str, Any]) -> World:
    world = World(load_policy(table["policy"], "random policy"))
    world.load(table)
    return world


@pytest.mark.parametrize("table", FOUND, ids=lambda table: table["name"])
def test_evictions_on_clusters_that_failed_once_follow_the_rules(table: dict[str, Any]) -> None:
    decisions = run_cycles(world_of({**table, "policy": POLICIES[table["policy"]]}), table["victims"], print)
    assert any(cycle.evictions for cycle in decisions)


@given(table=tables(), victims=st.sampled_from(("leave", "return", "stay")))
def test_every_eviction_follows_the_rules(table: dict[str, Any], victims: str) -> None:
    run_cycles(world_of(table), victims, note)


def run_cycles(world: World, victims: str, log: Callable[[str], None]) -> list[Decisions]:
    """Run three cycles and check each by the rules."""
    found = []
    for number in range(3):
        decisions = world.cycle()
        for evict in decisions.evictions:
            log(f"{number}: {evict.task}: {render_victim(evict.reason)}")
        check_evictions(world.cluster, world.policy, decisions)
        world.carry_out(decisions, victims)
        found.append(decisions)
    return found


@given(table=tables())
def test_with_static_demand_the_system_settles(table: dict[str, Any]) -> None:
    world = world_of(table)
    for number in range(CYCLES):
        decisions = decide(world.cluster, world.policy, world.now)
        for evict in decisions.evictions:
            note(f"{number}: {evict.task}: {render_victim(evict.reason)}")
        for bind in decisions.binds:
            note(f"{number}: {bind.task} to {bind.node}")
        if number == 0:
            for job, refusal in decisions.refusals.items():
                note(f"{number}: {job}: {render_refusal(refusal)}")
        if not decisions.evictions and not decisions.binds and not decisions.pipelined and number:
            return
        world.carry_out(decisions, "return")
    raise AssertionError(f"after {CYCLES} cycles pods are still evicted or bound")
