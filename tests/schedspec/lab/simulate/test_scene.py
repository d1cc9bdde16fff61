"""Nodes by number are read in full: a resource that no node has is refused with the nearest name."""

from __future__ import annotations

import pytest

from schedspec.lab.simulate.errors import InputError
from schedspec.lab.simulate.scene import read_scene

REFUSED = {
    "1x8,cpu=4,memroy=5": "'memroy' is no resource of a node; did you mean memory?",
    "1x8,gpu=4": "'gpu' is no resource of a node",
    "1x8,CPU=4": "'CPU' is no resource of a node; did you mean cpu?",
    "1x8,cpu=4,cpu=8": "has cpu twice",
    "1x8,nvidia.com/gpu=2": "has nvidia.com/gpu twice",
    "1x8,cpu=4 Gi": "4 Gi",
}


@pytest.mark.parametrize(("text", "problem"), REFUSED.items())
def test_a_part_of_the_nodes_that_nothing_reads_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InputError) as refused:
        read_scene([text], [], "nvidia.com/gpu")
    assert problem in str(refused.value)


@pytest.mark.parametrize("more", ["cpu=4", "ephemeral-storage=1Ti", "hugepages-2Mi=1Gi", "amd.com/gpu=2", "pods=30"])
def test_every_resource_that_a_node_can_have_is_read(more: str) -> None:
    (node,) = read_scene([f"1x8,{more}"], [], "nvidia.com/gpu").nodes
    name, _, amount = more.partition("=")
    assert (node.status.allocatable or {})[name] == amount
