"""A resource counts only if a node or a queue names it, whatever pods request."""

from __future__ import annotations

from typing import Any

import pytest

from schedspec.scheduler.decide import decide
from schedspec.scheduler.reasons import render_refusal
from tests.support.core.events import policy_of
from tests.support.core.invariants import snapshot
from tests.support.core.world import World

NAMES = 3_000


def requesting(*names: str) -> dict[str, Any]:
    requests = {"cpu": "1", **dict.fromkeys(names, "1")}
    return {"spec": {"containers": [{"name": "main", "image": "worker", "resources": {"requests": requests}}]}}


def world_of(*jobs: dict[str, Any]) -> World:
    world = World(policy_of("plain"))
    nodes = [{"name": "n1", "has": "8 cpu"}, {"name": "n2", "has": "8 cpu, 2 example.com/card"}]
    found = [{"queue": "q", "tasks": "1 x 1 cpu", "phase": "Inqueue", **job} for job in jobs]
    world.load({"nodes": nodes, "queues": [{"name": "q"}], "jobs": found})
    return world


def greedy(number: int) -> dict[str, Any]:
    names = (f"example.com/r{number}-{i}" for i in range(NAMES))
    return {"name": f"greedy{number}", "pod": requesting(*names)}


def test_thousands_of_requested_unknown_resources_add_no_dimensions() -> None:
    world = world_of(*map(greedy, range(3)), {"name": "good"})
    decisions = decide(world.cluster, world.policy, world.now)
    assert [bind.job for bind in decisions.binds] == ["t/good"]
    assert "no node has example.com/r0-0" in render_refusal(decisions.refusals["t/greedy0"])
    assert len(world.cluster.nodes.dimensions) < 6
    assert all(len(of_queue.requested) < 6 for of_queue in world.cluster.sums().by_queue.values())


def test_only_known_resources_of_a_running_pod_count() -> None:
    job = greedy(0) | {"tasks": "1 x 1 cpu running on n1", "phase": "Running"}
    world = world_of(job)
    decide(world.cluster, world.policy, world.now)
    assert len(world.cluster.nodes.dimensions) < 6
    (job_seen,) = world.cluster.jobs.values()
    assert job_seen.allocated == {"cpu": 1000, "pods": 1}


def test_a_deleted_node_leaves_no_dimensions() -> None:
    world = world_of({"name": "good"})
    names = ", ".join(f"1 example.com/x{i}" for i in range(50))
    world.load({"nodes": [{"name": "n3", "has": f"8 cpu, {names}"}], "jobs": []})
    decide(world.cluster, world.policy, world.now)
    assert len(world.cluster.nodes.dimensions) > 50
    world.remove("Node", "n3")
    decide(world.cluster, world.policy, world.now)
    assert len(world.cluster.nodes.dimensions) < 6


@pytest.mark.parametrize("first", ["pod", "node"])
def test_the_state_does_not_depend_on_when_a_resource_became_known_or_unknown(first: str) -> None:
    job = {"name": "card", "pod": requesting("example.com/late"), "queue": "q", "tasks": "1 x 1 cpu"}
    job["phase"] = "Inqueue"
    node = {"name": "n3", "has": "8 cpu, 1 example.com/late"}
    world = world_of()
    if first == "pod":
        world.load({"jobs": [job]})
        assert "no node has example.com/late" in render_refusal(world.cycle().refusals["t/card"])
        world.load({"nodes": [node]})
    else:
        world.load({"nodes": [node]})
        world.load({"jobs": [job]})
    assert snapshot(world.cluster) == snapshot(world.fresh())
    assert [bind.node for bind in decide(world.cluster, world.policy, world.now).binds] == ["n3"]
    world.remove("Node", "n3")
    assert snapshot(world.cluster) == snapshot(world.fresh())
    refusal = decide(world.cluster, world.policy, world.now).refusals["t/card"]
    assert "no node has example.com/late" in render_refusal(refusal)


@pytest.mark.parametrize("kinds", [("nodes", "jobs"), ("jobs", "nodes")], ids=["nodes first", "pods first"])
def test_a_pod_with_a_zero_request_equals_a_pod_without_that_request(kinds: tuple[str, str]) -> None:
    world = World(policy_of("plain"))
    table: dict[str, Any] = {
        "nodes": [{"name": "n1", "has": "8 cpu, 2 gpu"}],
        "jobs": [{"name": "j", "tasks": ["1 x 1 cpu, 0 gpu", "1 x 1 cpu"]}],
    }
    for kind in kinds:
        world.load({kind: table[kind]})
    zero, unnamed = world.cluster.tasks.values()
    assert zero.request == unnamed.request == {"cpu": 1000, "pods": 1}
    assert zero.shape == unnamed.shape


def test_a_queue_names_a_resource_before_any_node_has_it() -> None:
    """Pods request the resource from the queue first, and an autoscaler creates the node afterwards."""
    world = world_of({"name": "card", "pod": requesting("example.com/late")})
    world.change("Queue", "q", {"spec": {"capability": {"example.com/late": "4"}}})
    (task,) = world.cluster.tasks.values()
    assert task.request["example.com/late"] == 1000
    assert "lack example.com/late" in render_refusal(world.cycle().refusals["t/card"])
