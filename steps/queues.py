"""Queues, priority classes and the policy: who may have what."""

from __future__ import annotations

from harness import tables
from harness.sentences import given
from harness.world import World

_QUEUES: dict[str, tables.Column] = {
    "queue": ("name", str),
    "parent": ("parent", str),
    "weight": ("weight", int),
    "priority": ("priority", int),
    "capability": ("capability", tables.amounts),
    "deserved": ("deserved", tables.amounts),
    "guarantee": ("guarantee", tables.amounts),
    "reclaimable": ("reclaimable", tables.yes),
}
_CLASSES: dict[str, tables.Column] = {"class": ("name", str), "value": ("value", int)}


@given('the policy "{name}"')
def _(world: World, name: str) -> None:
    """The scheduler decides by templates/policies/NAME.yaml."""
    world.use_policy(name)


@given("these queues:")
def _(world: World, datatable: tables.Table) -> None:
    """Queues: queue, parent, weight, priority, capability, deserved, guarantee (`cpu 4, memory 8Gi`), reclaimable."""
    world.apply_all(("queue", row) for row in tables.rows(datatable, _QUEUES, required=("queue",)))


@given("these priority classes:")
def _(world: World, datatable: tables.Table) -> None:
    """Priority classes: class, value."""
    world.apply_all(("priorityclass", row) for row in tables.rows(datatable, _CLASSES, required=("class", "value")))
