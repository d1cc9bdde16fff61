"""Measure the ratio of evicted to requested amounts, in many small random clusters whose nodes are mostly full.

The module prints its figures if it is run alone; `benchmarks/core.py` calls `figures`. The clusters are the same in
every run. No ratio has a goal, because a whole gang on several nodes may be the only possible victim.
"""

from __future__ import annotations

import random

from benchmarks.core_reclaim import CARDS, POLICY, _job, _node, _queue
from benchmarks.figure import Figure
from schedspec.scheduler.decide import decide
from schedspec.scheduler.model import objects as api
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.policy.loader import load_policy

CLUSTERS = 10_000
TWICE = 2.0


def random_cluster(rng: random.Random) -> Cluster:
    """Return one to four nodes of 8 cards, full of gangs and elastic jobs of two queues; a third queue reclaims."""
    cluster = Cluster()
    nodes = rng.randint(1, 4)
    left = {f"node-{number:04d}": CARDS for number in range(nodes)}
    for number in range(nodes):
        cluster.set_node(_node(number))
    for name in ("a", "b", "c"):
        cluster.set_queue(_queue(name, rng.randint(0, nodes * CARDS)))
    for number in range(nodes * 4):
        size, cards = rng.randint(1, 4), rng.randint(1, 4)
        places = [node for node, free in left.items() for _ in range(free // cards)]
        chosen = rng.sample(places, min(size, len(places)))
        for node in chosen:
            left[node] -= cards
        if chosen:
            _running(cluster, f"old-{number}", rng.choice("ab"), chosen, cards, rng.randint(0, len(chosen)))
    for number in range(rng.randint(1, 2)):
        _job(cluster, f"new-{number}", "c", rng.randint(1, 3), rng.randint(1, 4))
    return cluster


def _running(cluster: Cluster, name: str, queue: str, nodes: list[str], cards: int, minimum: int) -> None:
    """Add a job with one pod for each element of `nodes`; a node may occur several times."""
    _job(cluster, name, queue, 0, cards, nodes[0])
    group = cluster.jobs[f"bench/{name}"].group
    assert group is not None
    cluster.set_podgroup(
        api.PodGroup(group.metadata, api.PodGroupSpec(min_member=minimum, queue=queue), api.PodGroupStatus("Running"))
    )
    for number, node in enumerate(nodes):
        resources = api.Resources(requests={"cpu": str(cards), "nvidia.com/gpu": str(cards)})
        key = f"{name}-{number}"
        meta = api.ObjectMeta(name=key, namespace="bench", uid=key, annotations={"scheduling.k8s.io/group-name": name})
        spec = api.PodSpec([api.Container(name="c", resources=resources)], node_name=node)
        cluster.set_pod(api.Pod(meta, spec, api.PodStatus(phase="Running")))


def figures() -> list[Figure]:
    """Return the worst ratio, and the percentage of requests for which more than twice their amount was evicted."""
    policy, rng = load_policy(POLICY, "benchmark"), random.Random(0)
    ratios: list[float] = []
    for _ in range(CLUSTERS):
        ratios += decide(random_cluster(rng), policy, 1_790_000_000.0).evicted_to_requested.values()
    above = 100 * sum(ratio > TWICE for ratio in ratios) / max(len(ratios), 1)
    where = f"of {len(ratios)} requests in {CLUSTERS} random clusters"
    return [
        Figure(f"evicted to requested, the worst {where}", round(max(ratios, default=0.0), 2), "x"),
        Figure(f"evicted to requested, above twice {where}", round(above, 2), "%"),
    ]


if __name__ == "__main__":
    print("\n".join(figure.line for figure in figures()))
