"""Steps on nodes: KWOK nodes of any shape, or the cluster's own."""

from __future__ import annotations

from schedspec.gherkin import tables
from schedspec.gherkin.step_decorators import given, makes, refers, table
from schedspec.gherkin.things import ANY_NODES, NODES_OF
from schedspec.scenario import manifests
from schedspec.scenario.world import World
from schedspec.steps.columns import NODES, Beside, nodes_made, with_cards


@given("these nodes:")
@table(NODES)
@makes(nodes_made)
def _(world: World, datatable: tables.Table) -> None:
    """KWOK nodes: node, cpu, memory; also gpus, any resource by its name, card (the product), pods, rack, spine, group.

    Shared cards are `shared gpus` (by memory) or `vgpus` (virtual), each with `card memory`.
    """
    world.add_nodes([with_cards(row) for row in NODES.rows(datatable)])


@given('the nodes of "{file}"')
@refers(file=NODES_OF)
@makes(lambda _values, _rows: ANY_NODES)
def _(world: World, beside: Beside, file: str) -> None:
    """KWOK nodes like those of a manifest (`kubectl get nodes -o yaml`), beside the feature or in the root."""
    world.add_rendered_nodes(manifests.nodes(beside(file)))


@given("the real nodes of the cluster")
@makes(lambda _values, _rows: ANY_NODES)
def _(world: World) -> None:
    """The cluster's own nodes, with kubelets and containers."""
    world.adopt_real_nodes()
