"""Resources count only where a node or a queue names them, whatever pods request."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.decide import decide
from scheduler.reasons import render_refusal
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


def test_thousands_of_names_are_no_dimensions_and_the_pods_wait_for_the_first() -> None:
    world = world_of(*map(greedy, range(3)), {"name": "good"})
    decisions = decide(world.cluster, world.policy, world.now)
    assert [bind.job for bind in decisions.binds] == ["t/good"]
    assert "no node has example.com/r0-0" in render_refusal(decisions.refusals["t/greedy0"])
    assert len(world.cluster.nodes.dimensions) < 6
    assert all(len(of_queue.requested) < 6 for of_queue in world.cluster.sums().by_queue.values())


def test_a_running_pod_is_counted_in_the_resources_that_exist() -> None:
    job = greedy(0) | {"tasks": "1 x 1 cpu running on n1", "phase": "Running"}
    world = world_of(job)
    decide(world.cluster, world.policy, world.now)
    assert len(world.cluster.nodes.dimensions) < 6
    (job_seen,) = world.cluster.jobs.values()
    assert job_seen.allocated == {"cpu": 1000, "pods": 1}


def test_nothing_is_left_of_names_when_their_node_goes() -> None:
    world = world_of({"name": "good"})
    names = ", ".join(f"1 example.com/x{i}" for i in range(50))
    world.load({"nodes": [{"name": "n3", "has": f"8 cpu, {names}"}], "jobs": []})
    decide(world.cluster, world.policy, world.now)
    assert len(world.cluster.nodes.dimensions) > 50
    world.remove("Node", "n3")
    decide(world.cluster, world.policy, world.now)
    assert len(world.cluster.nodes.dimensions) < 6


@pytest.mark.parametrize("first", ["pod", "node"])
def test_a_resource_that_comes_or_goes_is_counted_as_if_it_had_always_been_so(first: str) -> None:
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
def test_a_pod_that_requests_zero_of_a_resource_equals_one_that_does_not_name_it(kinds: tuple[str, str]) -> None:
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
    """Its pods ask the queue for it, as an autoscaler makes the node afterwards."""
    world = world_of({"name": "card", "pod": requesting("example.com/late")})
    world.change("Queue", "q", {"spec": {"capability": {"example.com/late": "4"}}})
    (task,) = world.cluster.tasks.values()
    assert task.request["example.com/late"] == 1000
    assert "lack example.com/late" in render_refusal(world.cycle().refusals["t/card"])
