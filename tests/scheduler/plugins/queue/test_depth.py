"""Jobs of queues that are nested too deeply or in a cycle wait with that reason; all other jobs are scheduled."""

from __future__ import annotations

import pytest

from schedspec.scheduler.decide import decide
from schedspec.scheduler.plugins.queue.hierarchy import DEEPEST
from schedspec.scheduler.reasons import render_refusal
from tests.support.core.events import policy_of
from tests.support.core.world import World

TREE = (
    'actions: "enqueue, allocate, reclaim"\n'
    "tiers: [{plugins: [{name: gang}, {name: predicates}, {name: capacity, enableHierarchy: true}]}]"
)


def chain_of(depth: int) -> World:
    """Return a flat queue beside a chain of `depth` queues, with a job in the flat queue and one in the last queue."""
    world = World(policy_of(TREE))
    queues = [{"name": "root"}, {"name": "flat"}, {"name": "d1"}]
    queues += [{"name": f"d{number}", "parent": f"d{number - 1}"} for number in range(2, depth + 1)]
    jobs = [{"name": name, "queue": name, "tasks": "1 x 1 cpu"} for name in ("flat", f"d{depth}")]
    world.load({"nodes": [{"name": "n1", "has": "8 cpu"}], "queues": queues, "jobs": jobs})
    return world


@pytest.mark.parametrize("depth", [DEEPEST, DEEPEST + 1, 330, 5_000])
def test_a_chain_of_queues_is_scheduled_up_to_the_maximum_depth(depth: int) -> None:
    world = chain_of(depth)
    decisions = decide(world.cluster, world.policy, world.now)
    bound = {bind.job for bind in decisions.binds}
    assert "t/flat" in bound
    assert (f"t/d{depth}" in bound) is (depth <= DEEPEST)
    if depth > DEEPEST:
        assert f"nested deeper than {DEEPEST} queues" in render_refusal(decisions.refusals[f"t/d{depth}"])


def test_a_cycle_of_thousands_of_queues_is_reported_and_affects_no_other_queue() -> None:
    world = chain_of(3_000)
    world.change("Queue", "d1", {"spec": {"parent": "d3000"}})
    decisions = decide(world.cluster, world.policy, world.now)
    assert {bind.job for bind in decisions.binds} == {"t/flat"}
    assert "its own ancestor" in render_refusal(decisions.refusals["t/d3000"])
