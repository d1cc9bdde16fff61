"""Evictions let their preemptors start and the system settles, on random clusters whose victims are created again.

`--hypothesis-profile=nightly` selects the long run.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, note
from hypothesis import strategies as st

from schedspec.scheduler.backlog.backlog import backlog_of
from schedspec.scheduler.decide import decide
from schedspec.scheduler.framework.work import UNLIMITED, Budget
from schedspec.scheduler.policy.loader import load_policy
from schedspec.scheduler.reasons import render_victim, render_why
from schedspec.scheduler.recording.events import Decided, apply_input
from tests.scheduler.preemption.ledger import Ledger
from tests.scheduler.preemption.rules import check_evictions
from tests.support.core.random_tables import random_table
from tests.support.core.world import World

NEVER_SETTLED = yaml.safe_load((Path(__file__).parent / "never_settled.yaml").read_text())
CYCLES = 40
"""With static demand the system settles within this number of cycles, or never."""
CUT_CYCLES = 400
"""Maximum number of cycles if cycles are cut, so that each does a part of its work."""


@given(rng=st.randoms(use_true_random=False), delay=st.sampled_from((0, 1, 3)))
def test_preemptors_get_the_room_that_was_freed_for_them_and_the_system_settles(rng: random.Random, delay: int) -> None:
    run_until_settled(random_table(rng), delay)


@given(
    rng=st.randoms(use_true_random=False),
    delay=st.sampled_from((0, 1, 3)),
    steps=st.sampled_from((30, 100, 300, 1000, 3000)),
)
def test_the_system_settles_also_if_cycles_are_cut(rng: random.Random, delay: int, steps: int) -> None:
    run_until_settled(random_table(rng), delay, Budget(steps))


@given(table=st.sampled_from(NEVER_SETTLED), delay=st.sampled_from((0, 1, 3)))
def test_clusters_that_once_failed_to_settle_now_settle(table: dict[str, Any], delay: int) -> None:
    run_until_settled(table, delay)


def run_until_settled(table: dict[str, Any], delay: int, budget: Budget | None = None) -> World:
    """Run cycles until nothing changes; check each cycle by the rules, and all cycles by the ledger.

    Victims are created again after `delay` cycles. With a `budget` cycles may be cut; the memory is then handed on from
    each cycle to the next.
    """
    note(str(table))
    world = World(load_policy(table["policy"], "random policy"))
    world.load(table)
    ledger = Ledger()
    cycles = CYCLES if budget is None else CUT_CYCLES
    for number in range(cycles):
        decisions = decide(world.cluster, world.policy, world.now, budget=budget or UNLIMITED)
        for evict in decisions.evictions:
            note(f"{number}: {evict.task}: {render_victim(evict.reason)}")
        for nominate in decisions.nominations:
            whys = "; ".join(map(render_why, nominate.whys))
            note(f"{number}: {nominate.task} is nominated for {nominate.node or f'no node: {whys}'}")
        for bind in decisions.binds:
            note(f"{number}: {bind.task} to {bind.node}")
        check_evictions(world.cluster, world.policy, decisions)
        ledger.record(number, world.cluster, decisions)
        busy = any((decisions.evictions, decisions.binds, decisions.nominations, world.terminating, decisions.cut))
        if budget is not None:
            apply_input(world.cluster, Decided(0, world.now, decisions, budget))
            world.now += 1.0
        world.carry_out(decisions, f"return after {delay}")
        if not busy and number and not backlog_of(world.cluster).due:
            ledger.close()
            assert not decisions.pipelined, f"{sorted(decisions.pipelined)} wait for room that is not being freed"
            return world
    raise AssertionError(f"after {cycles} cycles pods are still evicted or bound")
