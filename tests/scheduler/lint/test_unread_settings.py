"""What lint calls unread is unread, and what a plugin declares as read changes decisions.

The oracle is the scheduler: a setting of a queue is read if decisions on some random cluster change with it.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from schedspec.scheduler.lint import unread_settings
from schedspec.scheduler.lint.queue_rules import SETTINGS
from schedspec.scheduler.model import names
from schedspec.scheduler.policy.loader import load_policy
from schedspec.scheduler.policy.model import Policy
from tests.support.core.world import World

TIERS = """
actions: "enqueue, allocate, backfill, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang, enableJobStarving: false}, {name: conformance}]
- plugins: [{name: predicates}, %s]
"""
POLICIES = {
    "capacity": TIERS % "{name: capacity}",
    "a tree": TIERS % "{name: capacity, enableHierarchy: true}",
    "an order of queues that is off": TIERS % "{name: capacity, enableQueueOrder: false}",
    "without reclaim": (TIERS % "{name: capacity}").replace(", reclaim", ""),
    "proportion": TIERS % "{name: proportion}",
    "cards": TIERS % "{name: capacity-card, arguments: {allowServiceTypeByPodOwnerReferences: true}}",
    "no queue plugin": TIERS % "{name: nodeorder}",
    "node groups": TIERS % "{name: proportion}, {name: nodegroup, arguments: {strict: false}}",
    "a tree of node groups": TIERS
    % "{name: proportion}, {name: nodegroup, enableHierarchy: true, arguments: {strict: false}}",
}
ANY_GROUP = {"nodeGroupAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": ["g0", "g1"]}}
GROUP = {"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["g0"]}}
VALUES: dict[str, Any] = {
    "parent": "p",
    "weight": 9,
    "deserved": "3 cpu",
    "capability": "2 cpu",
    "guarantee": "3 cpu",
    "priority": 7,
    "reclaimable": False,
    "card quota": {names.CARD_QUOTA: '{"A100": 1}'},
    "affinity": GROUP,
    **{f"pods of {field}": "1" for field in ("deserved", "capability", "guarantee")},
}
CLUSTERS = 80


def cluster(rng: Random) -> dict[str, Any]:
    """Draw full nodes with cards, two queues below or beside `p` of which one holds most, and work that waits."""
    cards = {"nvidia.com/gpu.product": "A100", "nvidia.com/gpu.count": "2", "nvidia.com/gpu.memory": "81920"}
    nodes = [
        {
            "name": f"n{number}",
            "has": f"{rng.randint(2, 5)} cpu, 64Gi memory, 2 gpu",
            "labels": {names.NODE_GROUP: f"g{number}", **cards},
        }
        for number in range(2)
    ]
    queues = [{"name": "root"}, {"name": "p", "capability": f"{rng.randint(2, 6)} cpu"}]
    queues += [{"name": name, "deserved": f"{rng.randint(1, 3)} cpu"} for name in ("q0", "q1")]
    lender = rng.choice(("q0", "q1"))
    with_cards = rng.random() < 0.5
    jobs = []
    for number, node in enumerate(nodes):
        size = int(node["has"].split()[0]) - (rng.random() < 0.3)
        card = ", 1 gpu" if with_cards else ""
        jobs.append(
            _job(
                f"old{number}",
                lender,
                f"{min(size, 2) if card else size} x 1 cpu{card} running on {node['name']}",
                "Job",
            )
        )
    for number in range(rng.randint(1, 3)):
        queue, card = rng.choice(("q0", "q1")), ", 1 gpu" if with_cards else ""
        jobs.append(
            _job(f"new{number}", queue, f"{rng.randint(1, 2)} x 1 cpu{card}", rng.choice(("ReplicaSet", "Job")))
        )
    return {"nodes": nodes, "queues": queues, "jobs": jobs}


def _job(name: str, queue: str, tasks: str, owner: str) -> dict[str, Any]:
    metadata = {
        "annotations": {names.CARD_NAME: "A100"} if "gpu" in tasks else {},
        "ownerReferences": [{"apiVersion": "v1", "kind": owner, "name": name, "uid": name, "controller": True}],
    }
    priority = 10 if name.startswith("new") else 1
    return {"name": name, "queue": queue, "min": 1, "priority": priority, "tasks": tasks, "pod": {"metadata": metadata}}


def decided(policy: Policy, seed: int, setting: str, *, bare: bool = False) -> Any:
    """Return the decisions of a cycle on the cluster of this seed; unless `bare`, q1 has the setting's value.

    Under nodegroup the queues may use any group; for `parent`, q1 has the groups of its ancestors alone.
    """
    world = World(policy)
    table = cluster(Random(seed))
    for kind, item in world.notation.objects(table):
        name = item["metadata"]["name"] if kind == "Queue" else ""
        if policy.plugin("nodegroup") and (name == "q0" or (name == "q1" and setting != "parent")):
            item["spec"]["affinity"] = ANY_GROUP
        if policy.plugin("nodegroup") and name == "p":
            item["spec"]["affinity"] = GROUP
        world.put(kind, _with(item, setting) if name == "q1" and setting and not bare else item)
    decisions = world.core.decide(world.policy, world.now)
    return [decisions.binds, decisions.evictions, decisions.refusals]


def _with(queue: dict[str, Any], setting: str) -> dict[str, Any]:
    value = VALUES[setting]
    if setting == "card quota":
        return {**queue, "metadata": {**queue["metadata"], "annotations": value}}
    resource, _, field = setting.rpartition(" of ")
    if field in ("deserved", "capability", "guarantee"):
        kept = queue["spec"].get(field, {}) if resource else {}
        setting, amounts = field, {**kept, resource or "cpu": value.split()[0]}
        value = {"resource": amounts} if field == "guarantee" else amounts
    return {**queue, "spec": {**queue["spec"], setting: value}}


def changes(text: str, setting: str) -> bool:
    """Whether the setting changes the decisions on some random cluster."""
    policy = load_policy(text, "policy")
    pairs = ((decided(policy, seed, setting, bare=True), decided(policy, seed, setting)) for seed in range(CLUSTERS))
    return any(before != after for before, after in pairs)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", POLICIES)
def test_a_setting_is_unread_exactly_where_it_changes_no_decision(name: str, setting: str) -> None:
    policy = POLICIES[name]
    if setting == "affinity" and setting in unread_settings(policy):
        assert changes(policy, setting), "lint says that no job of such a queue is scheduled"
    else:
        assert changes(policy, setting) != (setting in unread_settings(policy))


NETWORK = {"required", "preferred", "partition required"}
AWARE = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: network-topology-aware%s}]}]\n"


@pytest.mark.parametrize(
    ("policy", "unread"),
    [
        (AWARE % "", False),
        (AWARE % ", enabledHyperNodeGradient: false", True),
        ("actions: allocate\ntiers: [{plugins: [{name: gang}]}]\n", True),
    ],
    ids=["the plugin", "the plugin without its hook", "no plugin"],
)
def test_levels_of_the_network_are_unread_where_their_jobs_wait(policy: str, unread: bool) -> None:
    assert NETWORK & unread_settings(policy).keys() == (NETWORK if unread else set())
