"""Namespaces share the budget of inter-pod terms fairly: none uses up the share of another namespace."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.scheduler.decide import decide
from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.framework.work import Budget
from schedspec.scheduler.placement import pod_index
from schedspec.scheduler.placement.pod_index import fair_share
from schedspec.scheduler.reasons import TooCostly
from tests.support.core.events import policy_of
from tests.support.core.notation import merged
from tests.support.core.world import World

HOSTNAME = "kubernetes.io/hostname"
NODES = 10


@given(st.lists(st.integers(1, 100), min_size=1, max_size=8), st.integers(1, 300))
def test_a_fair_share_uses_up_the_total_unless_it_suffices_for_all(wanted: list[int], total: int) -> None:
    share = fair_share(wanted, total)
    if sum(wanted) <= total:
        assert share == math.inf
    else:
        assert sum(min(amount, share) for amount in wanted) == pytest.approx(total)


def test_a_namespace_with_few_terms_starts_pods_after_others_used_up_the_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pod_index, "MAX_TERMS", 400)
    world = world_with({f"taken{number}": 60 for number in range(10)})
    decisions = with_jobs(world, small=terms(20), large=terms(50))
    assert {bind.job for bind in decisions.binds} == {"t/small"}
    assert list(decisions.refusals["t/large"].items) == [TooCostly("allocate", "spec.affinity")]


@pytest.mark.parametrize("namespaces", [5, 40])
def test_terms_beyond_the_share_of_their_namespace_are_not_matched(
    namespaces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_index, "MAX_TERMS", 100)
    monkeypatch.setattr(pod_index, "MAX_TERMS_MATCHED", 500)
    world = world_with({f"taken{number}": 60 for number in range(namespaces)})
    everywhere = [{"topologyKey": HOSTNAME, "namespaceSelector": {}, "labelSelector": {}}]
    world.put("Pod", pod_on_node("few", 1, everywhere))
    decisions = with_jobs(world, good=[])
    assert {bind.job for bind in decisions.binds} == {"t/good"}
    assert decisions.binds[0].node != "n1", "the term of a namespace with few terms is matched"
    assert decisions.steps < 4 * 500 + 500


def test_preferences_of_pods_on_nodes_do_not_use_up_the_step_budget_of_a_job() -> None:
    def decide_with(job: int) -> Decisions:
        world = world_with({})
        pod = pod_on_node("few", 1, [])
        preferred = [
            {"weight": 1, "podAffinityTerm": {"topologyKey": f"k{i}", "namespaceSelector": {}, "labelSelector": {}}}
            for i in range(60)
        ]
        terms = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
        world.put("Pod", merged(pod, {"spec": {"affinity": terms}}))
        world.load({"jobs": [{"name": "good", "queue": "q", "tasks": "3 x 0.1 cpu", "phase": "Inqueue"}]})
        return decide(world.cluster, world.policy, world.now, budget=Budget(cycle=300_000, job=job))

    steps = decide_with(1_200_000).steps
    assert steps > 6_000, "each of 60 topologies is counted for each of three pods"
    assert [bind.job for bind in decide_with(steps - 300).binds] == ["t/good"] * 3
    why = TooCostly("allocate", "the affinity terms of pods on nodes")
    assert list(decide_with(steps // 2).refusals["t/good"].items) == [why]


def terms(number: int) -> list[dict[str, Any]]:
    """Return anti-affinity terms that match no pod."""
    return [
        {"topologyKey": HOSTNAME, "namespaceSelector": {}, "labelSelector": {"matchLabels": {f"k{i}": "v"}}}
        for i in range(number)
    ]


def spec_with(anti_affinity: list[dict[str, Any]]) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": anti_affinity}}}


def pod_on_node(namespace: str, node: int, anti_affinity: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a pod of another scheduler on a node."""
    containers = [{"name": "c", "resources": {"requests": {"cpu": "1m"}}}]
    return {
        "metadata": {"name": "pod", "namespace": namespace, "uid": namespace, "labels": {"in": namespace}},
        "spec": {"nodeName": f"n{node}", "containers": containers, **spec_with(anti_affinity)},
        "status": {"phase": "Running"},
    }


def world_with(terms_on_nodes: dict[str, int]) -> World:
    """Return a cluster with one pod on a node for each namespace; the pod has the given number of terms."""
    world = World(policy_of("plain"))
    nodes = [{"name": f"n{i}", "has": "1 cpu" if i != 1 else "32 cpu"} for i in range(NODES)]
    world.load({"nodes": nodes, "queues": [{"name": "q"}]})
    for number, (namespace, count) in enumerate(terms_on_nodes.items()):
        world.put("Pod", pod_on_node(namespace, number % NODES, terms(count)))
    return world


def with_jobs(world: World, **jobs: list[dict[str, Any]]) -> Decisions:
    """Decide for jobs of one pod, each with the given anti-affinity terms."""
    rows = [
        {"name": name, "queue": "q", "tasks": "1 x 0.1 cpu", "phase": "Inqueue", "pod": {"spec": spec_with(own)}}
        for name, own in jobs.items()
    ]
    world.load({"jobs": rows})
    return decide(world.cluster, world.policy, world.now, budget=Budget(cycle=300_000, job=1_200_000))
