"""No hard gang runs across domains: random trees of domains, gangs, evictions and restarts."""

from __future__ import annotations

import random

import pytest

from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.model.task import HOLDING, READY
from schedspec.scheduler.policy.loader import load_policy
from schedspec.scheduler.topology.closeness import ClosenessOfJobs
from schedspec.scheduler.topology.subgroups import SubGroups
from tests.support.core.random_gangs import POLICIES, job, tree
from tests.support.core.world import World

CYCLES = 6


def check_domains(cluster: Cluster) -> None:
    """Check that every hard gang runs in one of the domains that it may use."""
    cluster.nodes.refresh()
    requests = ClosenessOfJobs(cluster)
    for one in cluster.jobs.values():
        closeness = requests.of(one)
        rows = [cluster.nodes.by_name[task.node].row for task in one.having(HOLDING)]
        if closeness is not None and closeness.is_hard and rows:
            assert closeness.around(rows), f"{one.key}: {[(task.key, task.node) for task in one.having(HOLDING)]}"


def check_subgroups(cluster: Cluster, decisions: Decisions) -> None:
    """Check that every subgroup of which a pod is bound has enough pods with nodes."""
    groups, bound = SubGroups(), {bind.task for bind in decisions.binds}
    for key in {cluster.tasks[task].job for task in bound}:
        for group in groups.of(cluster.jobs[key]).values():
            if group.name and any(task.key in bound for task in group.tasks):
                number = sum(task.key in bound for task in group.tasks)
                assert number + group.count(READY) >= group.size, f"{key}: {group.name}"


@pytest.mark.parametrize("seed", [*range(40), 2472])  # 2472: a rack without candidates gets candidates
def test_no_hard_gang_runs_across_domains(seed: int) -> None:
    rng = random.Random(seed)
    world = World(load_policy(rng.choice(POLICIES), "random"))
    nodes, hyper_nodes = tree(rng)
    queues = [{"name": name, "deserved": f"{rng.randint(0, 8)} cpu"} for name in "ab"]
    early = [job(rng, number, late=False) for number in range(rng.randint(1, 5))]
    world.load({"nodes": nodes, "queues": queues, "objects": {"HyperNode": hyper_nodes}, "jobs": early})
    for number in range(CYCLES):
        if number == 1:
            world.load({"jobs": [job(rng, it, late=True) for it in range(rng.randint(1, 4))]})
        world.now += 30
        decisions = world.cycle()
        check_subgroups(world.cluster, decisions)
        world.carry_out(decisions, rng.choice(["leave", "return", "return after 1"]))
        check_domains(world.cluster)
        running = [key for (kind, key), pod in world.objects.items() if kind == "Pod" and pod["spec"].get("nodeName")]
        if running and rng.random() < 0.3:
            world.end(rng.choice(running), again=rng.random() < 0.5)
