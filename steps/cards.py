"""Steps on the cards of the cluster: work that requests cards gets the model that the scenario names."""

from __future__ import annotations

import pytest

from schedspec.gherkin import tables
from schedspec.gherkin.step_decorators import given, makes, reads
from schedspec.gherkin.things import CARD, DOMAIN, LABEL, MODEL, NODE, NODE_GROUP, RESOURCE, TAINT
from schedspec.scenario.session import LiveSession
from schedspec.scenario.world import World
from schedspec.steps.columns import Cards

_NODE = "cards-1"
_GPU = (RESOURCE, tables.RESOURCES["cards"])


@pytest.fixture
def schedspec_cards() -> Cards:
    """Return the scenario's model of card."""
    return Cards()


@given('a cluster with {number:d} gpus "{model}"')
@given('a cluster with {number:d} cards "{model}"')
@reads(model=tables.word, number=lambda number: tables.at_least_one(str(number)))
@makes(
    lambda values, _: [
        (MODEL, values["model"]),
        (NODE, _NODE),
        (CARD, values["model"]),
        _GPU,
        *((kind, "*") for kind in (NODE, TAINT, DOMAIN, LABEL, NODE_GROUP)),
    ]
)
def _(world: World, live: LiveSession, cards: Cards, number: int, model: str) -> None:
    """One node with this many cards: the cluster's own node if it has one, else a KWOK node."""
    cards.model = model
    if not live.cluster.simulated and world.adopt_nodes_with_cards(model, number):
        return
    world.add_nodes([{"name": _NODE, "cpu": "64", "memory": "256Gi", "cards": number, "card": model}])
