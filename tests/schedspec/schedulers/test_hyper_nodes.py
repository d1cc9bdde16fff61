"""The racks and spines of a scenario's nodes become HyperNodes."""

from __future__ import annotations

from typing import Any

import pytest

from schedspec.api.errors import HarnessError
from schedspec.schedulers import hyper_nodes


def node(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {f"schedspec.dev/{level}": value for level, value in labels.items()}}}


def members(nodes: list[dict[str, Any]]) -> dict[str, tuple[int, list[str]]]:
    return {
        it["metadata"]["name"]: (
            it["spec"]["tier"],
            [f"{one['type']} {one['selector']['exactMatch']['name']}" for one in it["spec"]["members"]],
        )
        for it in hyper_nodes.of_nodes(nodes)
    }


def test_a_rack_contains_its_nodes_and_a_spine_the_racks_of_its_nodes() -> None:
    nodes = [node("n2", rack="a", spine="s"), node("n1", rack="a", spine="s"), node("n3", rack="b", spine="s")]

    found = members([*nodes, node("n4", spine="s"), node("n5")])

    assert found == {
        "a": (1, ["Node n1", "Node n2"]),
        "b": (1, ["Node n3"]),
        "s": (2, ["HyperNode a", "HyperNode b", "Node n4"]),
    }


def test_nodes_without_racks_make_no_hyper_nodes() -> None:
    assert hyper_nodes.of_nodes([node("n1"), {"metadata": {"name": "n2"}}]) == []


@pytest.mark.parametrize(
    ("nodes", "problem"),
    [
        ([node("n1", rack="a", spine="a")], "is a rack and a spine"),
        ([node("n1", rack="a", spine="s"), node("n2", rack="a", spine="t")], "is in the spines 's' and 't'"),
    ],
    ids=["one name", "two spines"],
)
def test_a_network_that_is_not_a_tree_is_rejected(nodes: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(HarnessError, match=problem):
        hyper_nodes.of_nodes(nodes)
