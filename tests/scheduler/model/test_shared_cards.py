"""Pods' requests for shared cards, and the annotations that name a pod's cards to the device plugins."""

from __future__ import annotations

import gc
import sys
from functools import partial
from typing import Any

import msgspec
import pytest

from schedspec.scheduler.model import objects
from schedspec.scheduler.model.card_demand import CardPart, demand_of
from schedspec.scheduler.model.card_notation import Card, Share, cards_of, shares_of, written
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.model.footprint import kept_of_pod
from schedspec.scheduler.recording.events import Assumed, PolicyLoaded, apply_input, read_line, write_line
from schedspec.scheduler.recording.segments import checkpoint_of
from tests.support.core.device_plugins import decode_pod_devices, next_container

VGPU = "volcano.sh/vgpu-"


def pod_of(*limits: dict[str, str], **annotations: str) -> objects.Pod:
    containers = [{"name": f"c{number}", "resources": {"limits": it}} for number, it in enumerate(limits)]
    meta = {"name": "p", "namespace": "t", "uid": "u", "annotations": annotations}
    return msgspec.convert({"metadata": meta, "spec": {"containers": containers}}, objects.Pod)


def node_of(register: str = "", **capacity: str) -> objects.Node:
    annotations = {"volcano.sh/node-vgpu-register": register} if register else {}
    found: dict[str, Any] = {"metadata": {"name": "n", "annotations": annotations}, "status": {"capacity": capacity}}
    return msgspec.convert(found, objects.Node)


def test_the_vgpu_device_plugin_finds_the_cards_of_each_container() -> None:
    pod = pod_of({"cpu": "1"}, {f"{VGPU}number": "2", f"{VGPU}memory": "4000", f"{VGPU}cores": "30"})
    demand = demand_of(pod)
    assert demand is not None
    shares = ((), (Share("GPU-a", 4000, 30), Share("GPU-b", 4000, 30)))

    annotations = written(demand, shares, "n", 1_700_000_000.5)

    ids = annotations["volcano.sh/devices-to-allocate"]
    assert decode_pod_devices(ids) == [[], [("GPU-a", "NVIDIA", 4000, 30), ("GPU-b", "NVIDIA", 4000, 30)]]
    assert next_container(ids) == 1
    assert annotations["volcano.sh/vgpu-node"] == "n"
    assert annotations["volcano.sh/bind-phase"] == "allocating"
    assert annotations["volcano.sh/bind-time"] == annotations["volcano.sh/vgpu-time"] == "1700000000"
    assert shares_of(annotations, demand, ()) == shares[1]


def test_the_device_plugin_of_parts_finds_the_index_of_the_card() -> None:
    demand = demand_of(pod_of({"volcano.sh/gpu-memory": "4000"}))
    assert demand is not None

    annotations = written(demand, ((Share("3", 4000),),), "n", 1.5)

    assert annotations == {"volcano.sh/gpu-index": "3", "volcano.sh/predicate-time": "1500000000"}
    cards = cards_of(node_of(**{"volcano.sh/gpu-memory": "32000", "volcano.sh/gpu-number": "4"}), "memory")
    assert shares_of(annotations, demand, cards) == (Share("3", 4000),)


@pytest.mark.parametrize(
    ("limits", "part"),
    [
        ({f"{VGPU}memory": "4000"}, CardPart(1, 4000)),
        ({f"{VGPU}number": "2"}, CardPart(2, 0, 100)),
        ({f"{VGPU}number": "1", f"{VGPU}memory": "9", f"{VGPU}memory-percentage": "50"}, CardPart(1, 0, 50)),
        ({f"{VGPU}number": "1", f"{VGPU}memory": "9", f"{VGPU}cores": "7"}, CardPart(1, 9, 0, 7)),
        ({f"{VGPU}number": "0"}, None),
    ],
    ids=["memory alone", "cards alone", "percent replaces memory", "cores", "nothing"],
)
def test_limits_of_a_container_become_its_demand(limits: dict[str, str], part: CardPart | None) -> None:
    demand = demand_of(pod_of(limits))
    assert (None if demand is None else demand.parts[0]) == part


def test_memory_and_cores_count_for_all_cards_of_a_pod() -> None:
    cluster = Cluster()
    cluster.set_node(
        msgspec.convert(
            {"metadata": {"name": "n"}, "status": {"allocatable": {f"{VGPU}{it}": "9" for it in ("number", "memory")}}},
            objects.Node,
        )
    )
    cluster.set_pod(pod_of({f"{VGPU}number": "2", f"{VGPU}memory": "4", f"{VGPU}memory-percentage": "50"}))
    task = cluster.tasks["t/p"]
    assert (task.request[f"{VGPU}number"], task.request[f"{VGPU}memory"], task.missing) == (2000, 8000, "")


def vgpu_node(name: str, *memories: int, unit: int = 1) -> objects.Node:
    register = "".join(f"GPU-{name}{number},10,{it},NVIDIA,true,:" for number, it in enumerate(memories))
    has = {f"{VGPU}number": "20", f"{VGPU}memory": str(sum(memories) // unit)} if memories else {"cpu": "9"}
    meta = {"name": name, "annotations": {"volcano.sh/node-vgpu-register": register}}
    return msgspec.convert({"metadata": meta, "status": {"allocatable": has}}, objects.Node)


@pytest.mark.parametrize(
    ("limits", "of_smallest"),
    [
        ({f"{VGPU}number": "2", f"{VGPU}memory-percentage": "50"}, 1.0),
        ({f"{VGPU}number": "1"}, 1.0),
        ({f"{VGPU}number": "1", f"{VGPU}memory": "7", f"{VGPU}memory-percentage": "10"}, 0.1),
    ],
    ids=["percent", "no memory", "percent replaces memory"],
)
@pytest.mark.parametrize("pod_first", [True, False])
def test_a_share_in_percent_counts_as_a_share_of_the_clusters_smallest_card(
    limits: dict[str, str], of_smallest: float, pod_first: bool
) -> None:
    def memory() -> float:
        return cluster.tasks["t/p"].request.get(f"{VGPU}memory", 0) / 1000

    cluster = Cluster()
    nodes = [vgpu_node("plain"), vgpu_node("large", 24000, 24000), vgpu_node("small", 48000, 8000)]
    changes = [partial(cluster.set_node, it) for it in nodes]
    changes.insert(0 if pod_first else 2, partial(cluster.set_pod, pod_of(limits)))
    for change in changes:
        change()
    assert memory() == of_smallest * 8000
    cluster.delete_node("small")
    assert memory() == of_smallest * 24000
    cluster.set_node(vgpu_node("large", 24000, unit=10))
    assert memory() == of_smallest * 2400
    cluster.set_node(vgpu_node("large"))
    assert cluster.tasks["t/p"].missing


@pytest.mark.parametrize(
    "register",
    [
        "GPU-a,10,8000:",
        "GPU-a,x,8000,NVIDIA,true,hami-core:",
        f"GPU-a,10,{'9' * 5000},NVIDIA,true,hami-core:",
        "GPU-a,1,8,NVIDIA,true,:GPU-a,1,8,NVIDIA,true,:",
        "GPU-a",
    ],
    ids=["too few fields", "no number", "a number of 5000 digits", "a card twice", "no card"],
)
def test_an_unreadable_list_of_cards_announces_no_cards(register: str) -> None:
    assert cards_of(node_of(register), "vgpu") == ()


def test_unhealthy_cards_and_mig_cards_are_not_usable() -> None:
    register = "GPU-a,10,8,NVIDIA-A10,false,hami-core:GPU-b,10,8,NVIDIA-A100,true,mig:GPU-c,10,8,NVIDIA-L4,true,:"
    assert [card.is_usable for card in cards_of(node_of(register), "vgpu")] == [False, False, True]


def test_cards_of_a_bind_in_flight_are_in_the_checkpoint_until_the_bind_is_refused() -> None:
    cluster = Cluster()
    cluster.set_pod(pod_of({"volcano.sh/gpu-memory": "4000"}))
    assumed = Assumed("t/p", "u", "n", {"volcano.sh/gpu-index": "1"})
    apply_input(cluster, read_line(write_line(assumed)))
    assert cluster.tasks["t/p"].placed_with == {"volcano.sh/gpu-index": "1"}

    cluster.set_pod(pod_of({"volcano.sh/gpu-memory": "4000"}, **{"volcano.sh/preemptable": "true"}))
    assert cluster.tasks["t/p"].placed_with == {"volcano.sh/gpu-index": "1"}

    copy = Cluster()
    for given in checkpoint_of(cluster, PolicyLoaded("conf", "")):
        apply_input(copy, given)
    assert copy.tasks["t/p"].placed_with == {"volcano.sh/gpu-index": "1"}

    cluster.revert("t/p", "u")
    assert cluster.tasks["t/p"].placed_with == {}


def test_a_pod_that_is_too_large_keeps_its_cards() -> None:
    pod = pod_of({"volcano.sh/gpu-memory": "4000"}, **{"volcano.sh/gpu-index": "1", "volcano.sh/x": "y" * 600_000})
    pod.spec.node_name = "n"
    kept = kept_of_pod(pod, 700_000, ())
    assert (kept.metadata.annotations or {})["volcano.sh/gpu-index"] == "1"
    demand = demand_of(kept)
    assert demand is not None
    assert demand.parts == (CardPart(1, 4000),)


def test_lists_of_cards_of_deleted_pods_use_bounded_memory() -> None:
    demand = demand_of(pod_of({f"{VGPU}number": "1"}))
    assert demand is not None

    def read(first: int, most: int) -> None:
        for number in range(first, most):
            text = "".join(f"GPU-{number}-{card},NVIDIA,{1000 + card},30:" for card in range(300))
            shares_of({f"{VGPU}ids-new": text}, demand, ())

    read(0, 500)
    gc.collect()
    before = sys.getallocatedblocks()
    read(500, 600)
    gc.collect()
    assert sys.getallocatedblocks() - before < 1_000


def test_a_too_long_list_of_cards_names_no_cards() -> None:
    demand = demand_of(pod_of({f"{VGPU}number": "1"}))
    assert demand is not None
    assert shares_of({f"{VGPU}ids-new": "GPU-a,NVIDIA,1000,30:" * 600}, demand, ()) == ()


def test_annotations_of_a_pod_permit_and_exclude_models_of_cards() -> None:
    card = Card("GPU-a", 8, model="NVIDIA-A100-SXM")
    demand = demand_of(pod_of({f"{VGPU}number": "1"}, **{"nvidia.com/use-gputype": "a100, H100"}))
    other = demand_of(pod_of({f"{VGPU}number": "1"}, **{"nvidia.com/nouse-gputype": "a100"}))
    assert demand is not None
    assert other is not None
    assert (demand.permits(card.name, card.model), other.permits(card.name, card.model)) == (True, False)
