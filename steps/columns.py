"""The columns that more than one sentence takes, and what a scenario has said of its cards.

Modules in `steps/` never import each other: pytest loads each of them by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from schedspec.gherkin import tables

NODES: dict[str, tables.Column] = {
    "node": ("name", tables.name),
    "cpu": ("cpu", tables.quantity),
    "memory": ("memory", tables.quantity),
    "cards": ("cards", int),
    "card": ("card", tables.word),
    "pods": ("pods", int),
}


def card_quota(text: str) -> int | dict[str, int]:
    """`8` of the scenario's model, or `NVIDIA-A100 2, NVIDIA-L40 4`. Raises ValueError."""
    if text.isdecimal():
        return int(text)
    return {model: int(number) for model, number in tables.amounts(text).items()}


QUEUES: dict[str, tables.Column] = {
    "queue": ("name", tables.name),
    "parent": ("parent", tables.name),
    "weight": ("weight", int),
    "priority": ("priority", int),
    "capability": ("capability", tables.amounts),
    "deserved": ("deserved", tables.amounts),
    "guarantee": ("guarantee", tables.amounts),
    "reclaimable": ("reclaimable", tables.yes),
    "card quota": ("card_quota", card_quota),
}


@dataclass
class Cards:
    """The model of card of this scenario's cluster; empty where no sentence has named one."""

    model: str = ""
