"""The backlog keeps nothing about deleted objects."""

from __future__ import annotations

from typing import Any

from schedspec.scheduler.backlog.backlog import Backlog, backlog_of
from schedspec.scheduler.decide import decide
from schedspec.scheduler.recording.events import Decided, apply_input
from tests.support.core.events import policy_of
from tests.support.core.world import World

ROUNDS = 20


def entries(value: Any) -> int:
    """Count the elements of all containers in an object, nested dictionaries included."""
    if isinstance(value, dict):
        return len(value) + sum(entries(inner) for inner in value.values())
    if isinstance(value, set | list | tuple):
        return len(value)
    return sum(map(entries, vars(value).values())) if hasattr(value, "__dict__") else 0


def test_deleted_queues_and_gangs_leave_no_entries() -> None:
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
