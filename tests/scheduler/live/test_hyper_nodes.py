"""HyperNodes on a live cluster: a fault is reported once and delays no job, and the cluster may lack the CRD."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from schedspec.scheduler.kube import EVENTS, HYPER_NODES, PODGROUPS, PODS, NotFound
from tests.support.live.api_objects import CRDS, apply_crds, pod_body
from tests.support.live.status_queries import EVENTS as RECORDED
from tests.support.live.status_queries import conditions, eventually
from tests.support.live.target_cluster import NAMESPACE, TargetCluster

pytestmark = pytest.mark.embedded

POLICY = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: network-topology-aware}]
"""
DEFINITION = "hypernodes.topology.volcano.sh"


def rack(name: str, *members: tuple[str, dict[str, Any]], tier: int = 1) -> dict[str, Any]:
    found = [{"type": kind, "selector": selector} for kind, selector in members]
    return {"metadata": {"name": name}, "spec": {"tier": tier, "tierName": f"tier-{tier}", "members": found}}


def named(kind: str, name: str) -> tuple[str, dict[str, Any]]:
    return (kind, {"exactMatch": {"name": name}})


def pattern(text: str) -> tuple[str, dict[str, Any]]:
    return ("Node", {"regexMatch": {"pattern": text}})


async def create(target: TargetCluster, *hyper_nodes: dict[str, Any]) -> None:
    """Create HyperNodes in this order."""
    for body in hyper_nodes:
        await target.client.create(HYPER_NODES, body)


async def remove_all(target: TargetCluster) -> None:
    for found in (await target.client.list(HYPER_NODES)).items:
        with contextlib.suppress(NotFound):
            await target.client.delete(HYPER_NODES, found.metadata.name)
    await target.client.http.request("DELETE", EVENTS.path("default"))


async def close_gang(target: TargetCluster, name: str, size: int) -> None:
    """Create a gang that requires one HyperNode of tier 1."""
    topology = {"mode": "hard", "highestTierAllowed": 1}
    spec = {"minMember": size, "queue": "default", "networkTopology": topology}
    await target.client.create(PODGROUPS, {"metadata": {"name": name}, "spec": spec}, NAMESPACE)
    for number in range(size):
        await target.client.create(PODS, pod_body(f"{name}-{number}", name), NAMESPACE)


async def malformed(target: TargetCluster) -> dict[str, list[str]]:
    """Return the messages of all `Malformed` events about HyperNodes, by HyperNode."""
    found: dict[str, list[str]] = {}
    for event in (await target.client.list(RECORDED, "default")).items:
        if event.reason == "Malformed" and event.involved_object.kind == HYPER_NODES.kind:
            found.setdefault(event.involved_object.name, []).append(event.message)
    return found


FAULTS = {
    "gone": "used without this part: spec.members[1]: there is no HyperNode nowhere; correct or remove it",
    "missing": "used without this part: spec.members[0].selector: there is no node node-9; correct or remove it",
    "circle-a": "used without this part: spec.members[0]: cyclic dependency: circle-a is below its member circle-b; "
    "remove one",
    "circle-b": "used without this part: spec.members[0]: cyclic dependency: circle-b is below its member circle-a; "
    "remove one",
    "parent-2": "used without this part: spec.members[0]: HyperNode good already has the parent parent-1; remove one",
    "overlap": "used without this part: spec.members: node node-0 is in HyperNode good already; remove one",
    "bad-pattern": "used without this part: spec.members[0].selector.regexMatch.pattern: missing ): (; correct it",
}


@pytest.mark.deadline(120)
async def test_each_faulty_hyper_node_gets_one_event_and_delays_no_job(target: TargetCluster) -> None:
    async with target.scenario(nodes=4):
        await remove_all(target)
        await create(
            target,
            rack("good", pattern("^node-[01]$")),
            rack("parent-1", named("HyperNode", "good"), tier=2),
            rack("parent-2", named("HyperNode", "good"), tier=2),
            rack("gone", named("Node", "node-2"), named("HyperNode", "nowhere"), tier=2),
            rack("missing", named("Node", "node-9")),
            rack("overlap", pattern("^node-[03]$")),
            rack("circle-a", named("HyperNode", "circle-b"), tier=2),
            rack("circle-b", named("HyperNode", "circle-a"), tier=3),
            rack("bad-pattern", pattern("(")),
        )
        scheduler = target.start(policy=POLICY)
        await target.ready(scheduler)
        await target.gang("free", 2)
        await close_gang(target, "close", 6)
        await target.bound(8)

        async def are_reported() -> bool:
            return (await malformed(target)).keys() == FAULTS.keys()

        await eventually("an event about each faulty HyperNode", are_reported)
        await target.assert_settled()
        assert await malformed(target) == {name: [message] for name, message in FAULTS.items()}
        history = target.history
        assert {history.pods[key].spec.node_name for key in history.bound("close")} == {"node-0", "node-1"}
        await remove_all(target)


@pytest.mark.deadline(180)
async def test_a_cluster_without_the_crd_is_treated_as_one_without_hyper_nodes(target: TargetCluster) -> None:
    async with target.scenario(nodes=2):
        await remove_all(target)
        await target.client.delete(CRDS, DEFINITION)
        try:
            scheduler = target.start(policy=POLICY)
            await target.ready(scheduler)
            await target.gang("free", 2)
            await target.bound(2)
            await close_gang(target, "close", 2)

            async def has_reason() -> bool:
                found = await conditions(target.client, PODGROUPS, "close", NAMESPACE)
                return "there is no HyperNode with nodes" in getattr(found.get("Unschedulable"), "message", "")

            await eventually("the reason why the gang `close` waits", has_reason)
        finally:
            await apply_crds(target.client)
        await create(target, rack("rack", pattern("^node-")))
        await target.bound(4)
        await remove_all(target)
