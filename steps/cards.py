"""The cards of the cluster: workloads that ask for cards ask for the model that the scenario has named."""

from __future__ import annotations

import pytest

from schedspec.gherkin.step_decorators import given, makes
from schedspec.gherkin.things import MODEL, NODE
from schedspec.scenario.session import LiveSession
from schedspec.scenario.world import World

from .columns import Cards

_NODE = "cards-1"


@pytest.fixture
def cards() -> Cards:
    """What this scenario has said of its cards."""
    return Cards()


@given('a cluster with {number:d} cards "{model}"')
@makes(lambda values, _: [(MODEL, values["model"]), (NODE, _NODE), (NODE, "*")])
def _(world: World, live: LiveSession, cards: Cards, number: int, model: str) -> None:
    """One node with so many cards: the cluster's own node where it has one, else a simulated one."""
    cards.model = model
    if not live.cluster.simulated and world.adopt_nodes_with_cards(model, number):
        return
    world.add_nodes([{"name": _NODE, "cpu": "64", "memory": "256Gi", "cards": number, "card": model}])
