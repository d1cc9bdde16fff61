"""Evictions end: jobs that run for ever arrive one by one in a random tree of queues, and the cluster settles."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from schedspec.scheduler.policy.loader import load_policy
from schedspec.virtual import Arrival, OnEviction, Settings, Simulation, Workload, node
from schedspec.virtual.outcomes import Evicted, Submitted
from tests.support.core.virtual import CARDS, START, queue

POLICY = """
actions: "{actions}"
tiers:
- plugins: [{{name: priority}}, {{name: conformance}}{first}]
- plugins:
  - {{name: predicates}}{second}
  - {{name: capacity, enableHierarchy: true, arguments: {{ancestorReclaimLevel: 2}}}}
"""
GANG = ", {name: gang}"
TIERS = ((GANG, ""), (", {name: gang, enableReclaimable: false}", ""), ("", "\n  - {name: gang}"))
OFTEN = 5
"""Evictions of a job since the last arrival, per pod, that count as endless."""


class NeverSettlesError(Exception):
    """A job is evicted again and again."""


@pytest.mark.nightly
@given(rng=st.randoms(use_true_random=False))
def test_jobs_in_a_tree_of_queues_settle(rng: random.Random) -> None:
    first, second = rng.choice(TIERS)
    actions = rng.choice(("allocate, reclaim", "allocate, reclaim, preempt"))
    policy = load_policy(POLICY.format(actions=actions, first=first, second=second), "random policy")
    nodes = {f"n{i}": {CARDS: str(rng.choice((4, 6, 8))), "cpu": str(rng.choice((8, 12, 16)))} for i in (0, 1)}
    total = {name: sum(int(has[name]) for has in nodes.values()) for name in (CARDS, "cpu")}
    queues, leaves = _tree(rng, total)
    owner = rng.choice((OnEviction.RESTART, OnEviction.REPLACE))
    jobs = [_job(rng, f"j{i:02}", rng.choice(leaves), owner) for i in range(rng.randint(8, 16))]
    note(f"{actions}{first}{second}; {nodes}; {queues}; {jobs}")
    pods, evicted = {job.key: job.pods for job in jobs}, Counter[str]()

    def watch(outcome: Any) -> None:
        if isinstance(outcome, Submitted):
            evicted.clear()
        elif isinstance(outcome, Evicted):
            evicted[outcome.job] += 1
            if evicted[outcome.job] > OFTEN * pods[outcome.job]:
                raise NeverSettlesError(evicted)

    simulation = Simulation(policy, emit=watch, settings=Settings(start_delay=1, grace=1), start=START)
    for name, has in nodes.items():
        simulation.put("Node", node(name, has))
    for name, spec in queues.items():
        simulation.put("Queue", queue(name, **spec))
    simulation.run(Arrival(START + 20 * i, job) for i, job in enumerate(jobs))
    assert len(simulation.gangs) == len(jobs)


def _tree(rng: random.Random, total: dict[str, int]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    queues: dict[str, dict[str, Any]] = {}
    for branch in range(rng.randint(2, 3)):
        queues[f"b{branch}"] = {"deserved": _share(rng, total, 3)}
        for leaf in range(rng.randint(1, 3)):
            queues[f"b{branch}q{leaf}"] = {"parent": f"b{branch}", "deserved": _share(rng, total, 6)}
            if rng.random() < 0.15:
                queues[f"b{branch}q{leaf}x"] = {"parent": f"b{branch}q{leaf}", "deserved": _share(rng, total, 6)}
    parents = {spec.get("parent") for spec in queues.values()}
    return queues, [name for name in queues if name not in parents]


def _share(rng: random.Random, total: dict[str, int], parts: int) -> dict[str, str] | None:
    """Return roughly one of `parts` shares of the cluster, in which one or all resources may be missing."""
    share = {name: str(round(amount * rng.uniform(0.5, 1.5) / parts)) for name, amount in total.items()}
    return rng.choice((share, share, share, share, {CARDS: share[CARDS]}, {"cpu": share["cpu"]}, None))


def _job(rng: random.Random, name: str, queue_name: str, owner: OnEviction) -> Workload:
    cards, cpus, pods = rng.choice((0, 1, 1, 1, 2)), rng.choice((1, 1, 2, 3)), rng.choice((1, 1, 2, 3, 4, 6))
    pods = min(pods, 8 // max(cards, 1))
    minimum = pods if rng.random() < 0.65 else rng.randint(1, pods)
    requests = {"cpu": str(cpus), **({CARDS: str(cards)} if cards else {})}
    priority = rng.choice((0, 0, 0, 1))
    return Workload(name, math.inf, requests, pods, minimum, queue=queue_name, priority=priority, on_eviction=owner)
