"""Nodes: simulated ones of any shape, or the cluster's own."""

from __future__ import annotations

from schedspec.gherkin import tables
from schedspec.gherkin.step_decorators import given, makes, table
from schedspec.gherkin.things import NODE
from schedspec.scenario.world import World

from .columns import NODES, nodes_made


@given("these nodes:")
@table(NODES)
@makes(nodes_made)
def _(world: World, datatable: tables.Table) -> None:
    """Simulated nodes: node, cpu, memory; also cards and card (the product), pods (how many it takes)."""
    world.add_nodes(NODES.rows(datatable))


@given("the real nodes of the cluster")
@makes(lambda _values, _rows: [(NODE, "*")])
def _(world: World) -> None:
    """The cluster's own nodes, with kubelets and containers."""
    world.adopt_real_nodes()
