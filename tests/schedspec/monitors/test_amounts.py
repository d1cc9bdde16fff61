"""Amounts that monitors, checks and sentences compare with."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from schedspec.api.kinds import WORLD
from schedspec.monitors import amounts


def node(*, cpu: str, marked: bool) -> dict[str, Any]:
    return {"metadata": {"labels": {WORLD: "true"} if marked else {}}, "status": {"allocatable": {"cpu": cpu}}}


NODES = {
    "a scenario beside Kind's own nodes": ([("4", True), ("2", False), ("4", True)], 8),
    "a recording of a cluster without scenarios": ([("4", False), ("2", False)], 6),
    "a scenario whose nodes have nothing left": ([("0", True), ("2", False)], 0),
    "no nodes": ([], 0),
}


@pytest.mark.parametrize(("nodes", "cpu"), NODES.values(), ids=NODES)
def test_the_cluster_is_what_the_scheduler_under_test_may_use(nodes: list[tuple[str, bool]], cpu: int) -> None:
    found = amounts.of_world(node(cpu=size, marked=marked) for size, marked in nodes)
    assert found.get("cpu", 0) == Decimal(cpu)


def test_the_request_of_a_pod_replaces_those_of_its_containers() -> None:
    containers = [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]
    spec = {"resources": {"requests": {"cpu": "4"}}, "containers": containers}
    assert amounts.of_pod({"spec": spec}) == {"cpu": 4, "memory": 2**30, "pods": 1}
