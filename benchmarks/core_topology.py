"""Measure the cost of a topology in a cycle: 200 gangs of 32 in racks, beside the same gangs without a topology.

The cluster has 1,000 nodes of 8 cards in 125 racks and 8 spines. It is idle; or gangs of lower priority fill it, and 20
waiting gangs evict 20 of them. The cycles with and without a topology alternate in one run, so that the load of the
machine affects both. `benchmarks/core.py` calls `figures`.
"""

from __future__ import annotations

import time

from benchmarks.figure import Figure
from schedspec import distribution
from schedspec.scheduler.decide import decide
from schedspec.scheduler.model import objects as api
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.policy.loader import load_policy
from schedspec.scheduler.policy.model import Policy

NODES, RACK, RACKS_A_SPINE, GANGS, GANG, CARDS = 1_000, 8, 16, 200, 32, 8
POLICY = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}, {name: network-topology-aware}]
"""
PREEMPT = distribution.folder("templates") / "policies" / "gangs.yaml"
PREEMPTORS = 20
ROUNDS = 5
MAX = 2.0


def cluster(*, close: bool, full: bool = False) -> Cluster:
    """Return nodes with HyperNodes, and waiting gangs; if `close`, each of them requires one rack.

    If `full`, gangs of lower priority run on all cards, two in each rack.
    """
    found = Cluster()
    for name, value in (("low", 10), ("high", 1000)):
        found.set_priority_class(api.PriorityClass(api.ObjectMeta(name=name), value=value))
    for number in range(NODES):
        has = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(CARDS)}
        meta = api.ObjectMeta(name=f"node-{number:04d}", labels={"rack": f"r{number // RACK}"})
        found.set_node(api.Node(meta, status=api.NodeStatus(allocatable=has)))
    racks = NODES // RACK
    for number in range(racks):
        labels = api.LabelSelector(match_labels={"rack": f"r{number}"})
        member = api.HyperNodeMember("Node", api.MemberSelector(label_match=labels))
        _hyper_node(found, f"rack-{number:03d}", 1, "rack", [member])
    for number in range(0, racks, RACKS_A_SPINE):
        inner = [f"rack-{rack:03d}" for rack in range(number, min(number + RACKS_A_SPINE, racks))]
        exact = [api.HyperNodeMember("HyperNode", api.MemberSelector(api.ExactMatch(name))) for name in inner]
        _hyper_node(found, f"spine-{number // RACKS_A_SPINE}", 2, "spine", exact)
    found.set_queue(api.Queue(api.ObjectMeta(name="q"), status=api.QueueStatus(state="Open")))
    topology = api.NetworkTopology("hard", highest_tier_name="rack") if close else None
    for number in range(NODES * CARDS // GANG if full else 0):
        _gang(found, f"low-{number:03d}", number, "low", None, number * GANG // CARDS)
    for number in range(PREEMPTORS if full else GANGS):
        _gang(found, f"gang-{number:03d}", number, "high", topology, None)
    return found


def _gang(
    found: Cluster, name: str, number: int, priority: str, topology: api.NetworkTopology | None, first: int | None
) -> None:
    """Add a gang: it waits, or runs on all cards of the nodes from number `first` on."""
    spec = api.PodGroupSpec(min_member=GANG, queue="q", network_topology=topology, priority_class_name=priority)
    meta = api.ObjectMeta(name=name, namespace="bench", creation_timestamp=f"2026-01-01T00:{number // 60:02}:00Z")
    found.set_podgroup(api.PodGroup(meta, spec, api.PodGroupStatus("Inqueue" if first is None else "Running")))
    for member in range(GANG):
        key = f"{name}-{member}"
        of_group = {"scheduling.k8s.io/group-name": name}
        meta = api.ObjectMeta(name=key, namespace="bench", uid=key, annotations=of_group)
        resources = api.Resources(requests={"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"})
        pod = api.PodSpec([api.Container(name="c", resources=resources)], priority=found.priority_of(priority))
        status = api.PodStatus()
        if first is not None:
            pod.node_name, status.phase = f"node-{first + member // CARDS:04d}", "Running"
        found.set_pod(api.Pod(meta, pod, status))


def _hyper_node(found: Cluster, name: str, tier: int, tier_name: str, members: list[api.HyperNodeMember]) -> None:
    found.set_hyper_node(api.HyperNode(api.ObjectMeta(name=name), api.HyperNodeSpec(tier, tier_name, members)))


def figures() -> list[Figure]:
    """Return the times of cycles with and without racks and their ratios. Fails if a gang did not get its places."""
    on = f"on {NODES} nodes in {NODES // RACK} racks"
    found = _compared(load_policy(POLICY, "benchmark"), f"{GANGS} gangs of {GANG} {on}", full=False)
    evicting = f"{PREEMPTORS} gangs of {GANG} that evict as many {on}"
    return found + _compared(load_policy(PREEMPT.read_text("utf-8"), "gangs"), evicting, full=True)


def _compared(policy: Policy, what: str, *, full: bool) -> list[Figure]:
    plain, close = cluster(close=False, full=full), cluster(close=True, full=full)
    spent: dict[int, list[float]] = {id(plain): [], id(close): []}
    for _ in range(ROUNDS):
        for state in (plain, close):
            state.last_cycle = None
            begin = time.process_time()
            decisions = decide(state, policy, 1_790_000_000.0)
            spent[id(state)].append(time.process_time() - begin)
            if full:
                assert len(decisions.evictions) == PREEMPTORS * GANG, "not each gang evicted as many pods as it needs"
            else:
                assert len(decisions.binds) == GANGS * GANG, "a gang did not start"
    best = min(spent[id(plain)]), min(spent[id(close)])
    return [
        Figure(f"a cycle without topology, {what}", round(1000 * best[0], 1), "ms"),
        Figure(f"a cycle with a rack for each gang, {what}", round(1000 * best[1], 1), "ms"),
        Figure(f"with to without topology, {what}", round(best[1] / best[0], 2), "x", MAX),
    ]


if __name__ == "__main__":
    print("\n".join(figure.line for figure in figures()))
