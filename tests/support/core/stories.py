"""Run cycles with events between them, and return which jobs a cycle tries."""

from __future__ import annotations

import random
from collections.abc import Callable

from hypothesis import note

from schedspec.scheduler.decide import decide
from schedspec.scheduler.recording.events import Decided, apply_input
from tests.support.core.events import happen, policy_of
from tests.support.core.random_stories import Event, Table
from tests.support.core.world import World


def tried(world: World) -> list[str]:
    """Decide, carry out the decisions, and return the jobs that the cycle tried."""
    world.cluster.last_cycle = None
    decisions = decide(world.cluster, world.policy, world.now)
    found = {*decisions.memory.waiting, *decisions.memory.forgotten, *(bind.job for bind in decisions.binds)}
    apply_input(world.cluster, Decided(0, world.now, decisions))
    world.carry_out(decisions)
    return sorted(key.removeprefix("t/") for key in found)


def settle(world: World) -> None:
    """Run cycles until a cycle tries no job."""
    while tried(world):
        pass


def run_story(
    rng: random.Random,
    table: Table,
    event_of: Callable[[random.Random, Table, int], Event],
    *,
    victims: str,
    cycles: int,
) -> None:
    """Run this many cycles on a table, with up to two events and some time after each cycle.

    `World.cycle` decides each cycle a second time, on a new state without the last cycle's memory.
    """
    note(str(table))
    world = World(policy_of(table["policy"]))
    world.load(table)
    for number in range(cycles):
        world.carry_out(world.cycle(), victims)
        world.now += rng.choice((0.0, 1.0, 40.0))
        for event in [event_of(rng, table, number) for _ in range(rng.randint(0, 2))]:
            note(f"after {number}: {event}")
            happen(world, event)
