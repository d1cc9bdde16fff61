"""Volcano Jobs: submitted, running, their PodGroups."""

from __future__ import annotations

from harness import checks, tables, timeouts
from harness.expect import Expect
from harness.sentences import given, then, when
from harness.world import World

_JOBS: dict[str, tables.Column] = {
    "job": ("name", str),
    "queue": ("queue", str),
    "priority": ("priority", str),
    "task": ("task", str),
    "replicas": ("replicas", int),
    "min available": ("min_available", int),
    "cpu": ("cpu", str),
    "memory": ("memory", str),
    "cards": ("cards", int),
}


def _submit(world: World, datatable: tables.Table) -> list[str]:
    found = tables.rows(datatable, _JOBS, required=("job",))
    world.apply_all(("job", row) for row in found)
    return [str(row["name"]) for row in found]


@when("these jobs are submitted:")
def _(world: World, datatable: tables.Table) -> None:
    """Volcano Jobs of one task: job, queue, priority, task, replicas, min available, cpu, memory, cards."""
    _submit(world, datatable)


@given("these jobs run:")
def _(world: World, expect: Expect, datatable: tables.Table) -> None:
    """The same, and each runs before the next sentence."""
    for name in _submit(world, datatable):
        expect.eventually(checks.runs(name), within=timeouts.RUNS)


@then('the PodGroup of "{name}" is {phase:w}')
def _(expect: Expect, name: str, phase: str) -> None:
    """The workload's PodGroup reaches a phase: Pending, Inqueue, Running, Completed."""
    expect.eventually(checks.podgroup_is(name, phase), within=timeouts.PHASE)
