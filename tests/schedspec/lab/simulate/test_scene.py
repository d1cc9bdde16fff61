"""Nodes by number are read in full: a resource that no node has is refused with the nearest name."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedspec.lab.simulate.columns import InputError
from schedspec.lab.simulate.inputs import read_scene

REFUSED = {
    "99999999999x8": "'99999999999x8' has 99999999999 nodes; name at most 100000",
    "100001x8": "has 100001 nodes; name at most 100000",
    "1x1001": "has 1001 cards of a node; name at most 1000",
    "1x8,cpu=4,memroy=5": "'memroy' is no resource of a node; did you mean memory?",
    "1x8,gpu=4": "'gpu' is no resource of a node",
    "1x8,CPU=4": "'CPU' is no resource of a node; did you mean cpu?",
    "1x8,cpu=4,cpu=8": "has cpu twice",
    "1x8,nvidia.com/gpu=2": "has nvidia.com/gpu twice",
    "1x8,cpu=4 Gi": "cpu=4 Gi is not a quantity",
    "1x8,cpu=-4": "cpu=-4 is below 0",
    "1x8,memory=768": "memory=768 is an amount of bytes, which is hardly meant; write a unit",
    "1x8,ephemeral-storage=100": "ephemeral-storage=100 is an amount of bytes",
    "1x8,hugepages-2Mi=512k": "hugepages-2Mi=512k is an amount of bytes",
}


@pytest.mark.parametrize(("text", "problem"), REFUSED.items())
def test_a_part_of_the_nodes_that_nothing_reads_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InputError) as refused:
        read_scene([text], [], "nvidia.com/gpu")
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("cell", "problem"), [("64", "is an amount of bytes"), ("-1", "is below 0"), ("4x", "is not a quantity")]
)
def test_an_amount_in_a_list_of_nodes_is_refused_at_its_line(tmp_path: Path, cell: str, problem: str) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text(f"name,cards,memory\na,8,64Gi\nb,8,{cell}\n")
    with pytest.raises(InputError) as refused:
        read_scene([str(path)], [], "nvidia.com/gpu")
    assert f"nodes.csv:3: column memory: {cell!r} {problem}" in str(refused.value)


@pytest.mark.parametrize("more", ["cpu=4", "ephemeral-storage=1Ti", "hugepages-2Mi=1Gi", "amd.com/gpu=2", "pods=30"])
def test_every_resource_that_a_node_can_have_is_read(more: str) -> None:
    (node,) = read_scene([f"1x8,{more}"], [], "nvidia.com/gpu").nodes
    name, _, amount = more.partition("=")
    assert (node.status.allocatable or {})[name] == amount
