"""Metrics of shared cards: memory, cores and shares of bound pods on each announced card, under Volcano's names."""

from __future__ import annotations

from typing import Any

from tests.scheduler.live.metrics_setup import MetricsSetup, lines

POLICY = """
actions: "allocate"
tiers: [{plugins: [{name: gang}, {name: predicates}, {name: deviceshare, arguments: {deviceshare.%s: true}}]}]
"""
VGPU, SHARING = POLICY % "VGPUEnable", POLICY % "GPUSharingEnable"
NODE = {
    "name": "n1",
    "has": "8 cpu, 20 volcano.sh/vgpu-number, 16000 volcano.sh/vgpu-memory, 200 volcano.sh/vgpu-cores",
    "annotations": {
        "volcano.sh/node-vgpu-register": "GPU-a,10,8000,NVIDIA-A10,true,hami-core:GPU-b,10,8000,NVIDIA-L4,true,mig:"
    },
}
REQUEST = "volcano.sh/vgpu-number, 1000 volcano.sh/vgpu-memory, 30 volcano.sh/vgpu-cores"


def setup(policy: str, node: dict[str, Any], *jobs: dict[str, Any]) -> MetricsSetup:
    return MetricsSetup(policy, {"nodes": [node], "queues": [{"name": "default"}], "jobs": [*jobs]})


def of_cards(given: MetricsSetup, what: str) -> dict[str, float]:
    """Return the samples of a metric of cards, by card."""
    values = given.values(f"volcano_vgpu_device_{what}")
    return {labels.split('"')[3]: value for labels, value in values.items()}


def test_a_card_shows_the_memory_cores_and_shares_of_bound_pods() -> None:
    given = setup(VGPU, NODE, {"name": "new", "tasks": f"2 x 1 {REQUEST}", "phase": "Inqueue"})

    decisions = given.cycle()

    assert lines(given.metrics, "volcano_vgpu_device_memory_limit") == [
        'volcano_vgpu_device_memory_limit{NodeName="n1",devID="GPU-a"} 8000.0',
        'volcano_vgpu_device_memory_limit{NodeName="n1",devID="GPU-b"} 8000.0',
    ]
    assert of_cards(given, "allocated_memory") == {"GPU-a": 0, "GPU-b": 0}

    given.bind(decisions, at=0.0)

    assert of_cards(given, "allocated_memory") == {"GPU-a": 2000, "GPU-b": 0}
    assert of_cards(given, "allocated_cores") == {"GPU-a": 60, "GPU-b": 0}
    assert of_cards(given, "shared_number") == {"GPU-a": 2, "GPU-b": 0}

    given.world.remove("Pod", "t/new-0")

    assert of_cards(given, "shared_number") == {"GPU-a": 1, "GPU-b": 0}


def test_cards_shared_by_memory_are_shown_by_their_index() -> None:
    node = {"name": "n1", "has": "8 cpu, 16000 volcano.sh/gpu-memory, 2 volcano.sh/gpu-number"}
    given = setup(SHARING, node, {"name": "new", "tasks": "1 x 3000 volcano.sh/gpu-memory", "phase": "Inqueue"})

    given.bind(given.cycle(), at=0.0)

    assert of_cards(given, "allocated_memory") == {"0": 3000, "1": 0}


def test_a_card_has_no_series_before_the_first_cycle_or_after_its_node_was_deleted() -> None:
    given = setup(VGPU, NODE)

    assert not of_cards(given, "memory_limit")

    given.cycle()
    given.world.remove("Node", "n1")

    assert not of_cards(given, "memory_limit")
