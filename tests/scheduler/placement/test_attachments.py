"""Volume attach limits hold on random clusters with random events between cycles."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.core import random_clusters
from tests.support.core.events import happen, policy_of
from tests.support.core.world import World

VOLUMES = 4


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Any]:
    """Draw nodes with and without an attach limit, and jobs of one or two pods that each mount one of four disks."""
    limits = draw(st.lists(st.one_of(st.none(), st.integers(0, 2)), min_size=1, max_size=3))
    disks = range(VOLUMES)
    return {
        "policy": random_clusters.POLICIES["plain"],
        "nodes": [{"name": f"n{i}", "has": f"{draw(st.integers(1, 4))} cpu"} for i in range(len(limits))],
        "queues": [{"name": "default"}],
        "objects": {
            "CSINode": [
                {"metadata": {"name": f"n{i}"}, "spec": {"drivers": [_driver(limit)]}} for i, limit in enumerate(limits)
            ],
            "PersistentVolume": [
                {"metadata": {"name": f"v{i}"}, "spec": {"csi": {"driver": "disk.example", "volumeHandle": f"h{i}"}}}
                for i in disks
            ],
            "PersistentVolumeClaim": [
                {"metadata": {"name": f"c{i}", "namespace": "t"}, "spec": {"volumeName": f"v{i}"}} for i in disks
            ],
        },
        "jobs": [
            {
                "name": f"job{i}",
                "min": 1,
                "tasks": f"{draw(st.integers(1, 2))} x 1 cpu",
                "pod": {"spec": {"volumes": [_mount(f"c{draw(st.integers(0, VOLUMES - 1))}")]}},
            }
            for i in range(draw(st.integers(1, 5)))
        ],
    }


def _driver(limit: int | None) -> dict[str, Any]:
    return {"name": "disk.example", "allocatable": {"count": limit}}


def _mount(claim: str) -> dict[str, Any]:
    return {"name": "v", "persistentVolumeClaim": {"claimName": claim}}


def _claim_of(pod: dict[str, Any]) -> str:
    claim: str = pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]
    return claim


def mounted_on(world: World, node: str) -> set[str]:
    """Return the claims that pods on a node mount."""
    return {
        _claim_of(pod)
        for (kind, _), pod in world.objects.items()
        if kind == "Pod" and pod["spec"].get("nodeName") == node and pod["status"]["phase"] != "Succeeded"
    }


def claims_waiting(world: World) -> set[str]:
    """Return the claims of pods without a node."""
    return {
        _claim_of(pod) for (kind, _), pod in world.objects.items() if kind == "Pod" and not pod["spec"].get("nodeName")
    }


@given(tables(), st.lists(st.lists(random_clusters.events(), max_size=3), max_size=3))
def test_no_node_exceeds_its_attach_limit_and_no_pod_waits_below_it(
    table: dict[str, Any], rounds: list[list[dict[str, Any]]]
) -> None:
    world = World(policy_of(table["policy"]))
    world.load(table)
    limits = {
        item["metadata"]["name"]: item["spec"]["drivers"][0]["allocatable"]["count"]
        for item in table["objects"]["CSINode"]
    }
    for events in ([], *rounds):
        for event in events:
            happen(world, event)
        decisions = world.cycle()
        world.carry_out(decisions)
        world.cluster.nodes.refresh()
        nodes = world.cluster.nodes
        for name, info in nodes.by_name.items():
            limit, mounted = limits[name], mounted_on(world, name)
            assert limit is None or len(mounted) <= limit, f"{name} has {sorted(mounted)} attached"
            has_room = not info.object.spec.unschedulable and nodes.idle[info.row, nodes.dimensions["cpu"]] >= 1000
            if has_room and not decisions.pipelined and not world.cluster.nominated:
                waiting = claims_waiting(world)
                fitting = waiting if limit is None or len(mounted) < limit else waiting & mounted
                assert not fitting, f"pods with {sorted(fitting)} wait although {name} could attach them"
