"""The backlog's memory of an object ends with the object."""

from __future__ import annotations

from typing import Any

from scheduler.backlog.backlog import Backlog, backlog_of
from scheduler.decide import decide
from scheduler.recording.events import Decided, apply_input
from tests.support.core.events import policy_of
from tests.support.core.world import World

ROUNDS = 20


def entries(kept: Any) -> int:
    """Count the keys of all containers of an object, those within them included."""
    if isinstance(kept, dict):
        return len(kept) + sum(entries(value) for value in kept.values())
    if isinstance(kept, set | list | tuple):
        return len(kept)
    return sum(map(entries, vars(kept).values())) if hasattr(kept, "__dict__") else 0


def test_queues_and_gangs_that_come_and_go_leave_nothing_behind() -> None:
    world = World(policy_of("capacity"))
    world.load({"nodes": [{"name": "n1", "has": "8 cpu"}]})
    most = 0
    for number in range(ROUNDS):
        queue, gang = f"q{number}", f"g{number}"
        world.load({"queues": [{"name": queue, "capability": "1 cpu"}]})
        world.load({"jobs": [{"name": gang, "queue": queue, "tasks": "2 x 1 cpu", "min": 2, "phase": "Inqueue"}]})
        apply_input(world.cluster, Decided(0, world.now, decide(world.cluster, world.policy, world.now)))
        most = max(most, entries(backlog_of(world.cluster)))
        for kind, key in list(world.objects):
            if kind != "Node":
                world.remove(kind, key)
        apply_input(world.cluster, Decided(0, world.now, decide(world.cluster, world.policy, world.now)))
        world.now += 1.0
    assert most > entries(Backlog()), "no gang was refused"
    assert entries(backlog_of(world.cluster)) == entries(Backlog())
