"""The tables that more than one sentence takes, and what a scenario has said of its cards.

Modules in `steps/` never import each other: pytest loads each of them by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from schedspec.gherkin import tables
from schedspec.gherkin.step_decorators import Thing
from schedspec.gherkin.things import MODEL, NODE, QUEUE

_MODEL = 'name the model, or say before: a cluster with N cards "MODEL"'


def cards_without_model(row: tables.Row) -> Iterator[tuple[str, str]]:
    """Work that asks for cards says of which model, or its scenario has said it."""
    if row.get("cards") and "card" not in row:
        yield MODEL, f"{row['cards']} cards of no model: {_MODEL}"


def _node_without_model(row: tables.Row) -> Iterator[tuple[str, str]]:
    if row.get("cards") and "card" not in row:
        yield "", f"{row['cards']} cards of no model: name it in the column card"


def _quota_without_model(row: tables.Row) -> Iterator[tuple[str, str]]:
    if isinstance(row.get("card_quota"), int):
        yield MODEL, f"a quota of {row['card_quota']} cards of no model: {_MODEL}"


NODES = tables.Shape(
    {
        "node": ("name", tables.name),
        "cpu": ("cpu", tables.quantity),
        "memory": ("memory", tables.quantity),
        "cards": ("cards", tables.count),
        "card": ("card", tables.word),
        "pods": ("pods", tables.count),
    },
    required=("node", "cpu", "memory"),
    judge=_node_without_model,
)


def card_quota(text: str) -> int | dict[str, int]:
    """`8` of the scenario's model, or `NVIDIA-A100 2, NVIDIA-L40 4`. Raises ValueError."""
    if text.isdecimal():
        return int(text)
    return {model: tables.count(number) for model, number in tables.claims(text).items()}


QUEUES = tables.Shape(
    {
        "queue": ("name", tables.name),
        "parent": ("parent", tables.name),
        "weight": ("weight", tables.whole),
        "priority": ("priority", tables.whole),
        "capability": ("capability", tables.amounts),
        "deserved": ("deserved", tables.amounts),
        "guarantee": ("guarantee", tables.amounts),
        "reclaimable": ("reclaimable", tables.yes),
        "card quota": ("card_quota", card_quota),
    },
    required=("queue",),
    judge=_quota_without_model,
)
QUEUE_CHANGES = replace(QUEUES, refers={"queue": QUEUE})
_CLAIMS = {name: (name, tables.claims) for name in ("capability", "deserved", "guarantee")}
QUEUE_CLAIMS = replace(QUEUES, columns={**QUEUES.columns, **_CLAIMS})
"""A queue that the API server may refuse: its amounts need be none."""


def nodes_made(_: Mapping[str, Any], rows: Sequence[tables.Row]) -> list[Thing]:
    """The nodes of a table."""
    return [(NODE, str(row.get("name", "*"))) for row in rows]


def queues_made(_: Mapping[str, Any], rows: Sequence[tables.Row]) -> list[Thing]:
    """The queues of a table."""
    return [(QUEUE, str(row.get("name", "*"))) for row in rows]


@dataclass
class Cards:
    """The model of card of this scenario's cluster; empty where no sentence has named one."""

    model: str = ""
