"""What holds across cycles while victims take their time to go and come back, on random clusters
(`--hypothesis-profile=nightly` for the long run).
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, note
from hypothesis import strategies as st

from scheduler.backlog.backlog import backlog_of
from scheduler.decide import decide
from scheduler.framework.work import UNLIMITED, Budget
from scheduler.policy.loader import load_policy
from scheduler.reasons import render_victim, render_why
from scheduler.recording.events import Decided, apply_input
from tests.scheduler.preemption.ledger import Ledger
from tests.scheduler.preemption.rules import check_evictions
from tests.support.core.random_tables import random_table
from tests.support.core.world import World

NEVER_AT_REST = yaml.safe_load((Path(__file__).parent / "never_at_rest.yaml").read_text())
CYCLES = 40
"""With static demand the system is at rest after so many cycles, or never."""
CUT_CYCLES = 400
"""Maximum cycles if cycles are cut, each of which does a part of one."""


@given(rng=st.randoms(use_true_random=False), delay=st.sampled_from((0, 1, 3)))
def test_freed_room_goes_to_whom_it_was_freed_for_and_all_comes_to_rest(rng: random.Random, delay: int) -> None:
    story(random_table(rng), delay)


@given(
    rng=st.randoms(use_true_random=False),
    delay=st.sampled_from((0, 1, 3)),
    steps=st.sampled_from((30, 100, 300, 1000, 3000)),
)
def test_the_same_holds_of_cycles_that_are_cut(rng: random.Random, delay: int, steps: int) -> None:
    story(random_table(rng), delay, Budget(steps))


@given(table=st.sampled_from(NEVER_AT_REST), delay=st.sampled_from((0, 1, 3)))
def test_what_never_came_to_rest_once_does(table: dict[str, Any], delay: int) -> None:
    story(table, delay)


def story(table: dict[str, Any], delay: int, budget: Budget | None = None) -> World:
    """Cycles until nothing happens any more; victims come back after `delay` cycles. Each cycle is judged, and all
    of them together. With a `budget` they may be cut, and what is remembered goes from one to the next.
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
        ledger.note(number, world.cluster, decisions)
        busy = any((decisions.evictions, decisions.binds, decisions.nominations, world.terminating, decisions.cut))
        if budget is not None:
            apply_input(world.cluster, Decided(0, world.now, decisions, budget))
            world.now += 1.0
        world.carry_out(decisions, f"return after {delay}")
        if not busy and number and not backlog_of(world.cluster).due:
            ledger.close()
            assert not decisions.pipelined, f"{sorted(decisions.pipelined)} wait for room that nobody is freeing"
            return world
    raise AssertionError(f"after {cycles} cycles pods still come and go")
