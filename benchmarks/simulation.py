"""Measure the simulation in jobs a CPU second.

`python -m benchmarks.simulation` prints a table and writes `benchmarks/out/simulation.json`.

The cluster has 125 nodes of 8 cards and five queues. The load is 0.9 of the cluster: gangs of one to three pods of
eight cards, or single cards. Each load is measured in a process of its own, in CPU time.
"""

from __future__ import annotations

import multiprocessing
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.figure import Figure, report
from schedspec.scheduler.model import objects
from schedspec.scheduler.policy.loader import load_policy
from schedspec.virtual import Arrival, Simulation, Workload, node
from schedspec.virtual.outcomes import Evicted

START = 1_700_000_000.0
CARDS = "nvidia.com/gpu"
TEXT = """
actions: "{actions}"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}]
- plugins: [{{name: predicates}}, {{name: capacity}}, {{name: nodeorder}}]
"""


@dataclass(frozen=True)
class Setting:
    name: str
    actions: str
    jobs: int
    nodes: int = 125
    gangs: bool = True
    goal: float | None = None


SETTINGS = (
    Setting("gangs, without eviction", "enqueue, allocate, backfill", 10_000, goal=400.0),
    Setting("gangs, with reclaim", "enqueue, allocate, backfill, reclaim", 5_000, goal=200.0),
    Setting("single cards, without eviction", "enqueue, allocate, backfill", 20_000, gangs=False),
    Setting("gangs, ten times the cluster", "enqueue, allocate, backfill", 10_000, nodes=1_250),
)


def load(setting: Setting, seed: int = 1) -> Iterator[Arrival]:
    """Yield Poisson arrivals that request 0.9 of the cluster, with exponential run times of one hour on average."""
    rng = random.Random(seed)
    per_job = 8 * 1.75 if setting.gangs else 1.0
    rate, now = 0.9 * setting.nodes * 8 / per_job / 3600.0, START
    for index in range(setting.jobs):
        now += rng.expovariate(rate)
        pods = rng.choice((1, 1, 2, 3)) if setting.gangs else 1
        requests = {CARDS: "8" if setting.gangs else "1"}
        queue, seconds = f"q{rng.randrange(5)}", rng.expovariate(1 / 3600.0)
        yield Arrival(now, Workload(f"j{index:07}", max(seconds, 1.0), requests, pods, queue=queue))


def _cluster(setting: Setting, emit: Callable[[Any], None] = lambda _: None) -> Simulation:
    policy = load_policy(TEXT.format(actions=setting.actions), "benchmark")
    simulation = Simulation(policy, emit=emit, start=START)
    for number in range(setting.nodes):
        simulation.put("Node", node(f"n{number:04}", {CARDS: "8", "pods": "110"}))
    for number in range(5):
        spec = objects.QueueSpec(deserved={CARDS: str(setting.nodes * 8 // 5)})
        simulation.put("Queue", objects.Queue(objects.ObjectMeta(name=f"q{number}"), spec, objects.QueueStatus("Open")))
    return simulation


def measure(setting: Setting) -> list[Figure]:
    """Run the load; return jobs a CPU second, cycles a job, evictions and memory."""
    evictions = [0]

    def emit(outcome: Any) -> None:
        evictions[0] += type(outcome) is Evicted

    simulation = _cluster(setting, emit)
    began = time.process_time()
    simulation.run(load(setting))
    took = time.process_time() - began
    if len(simulation.gangs):
        sys.exit(f"{setting.name}: {len(simulation.gangs)} jobs remain")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        Figure(f"{setting.name}: jobs", round(setting.jobs / took, 1), "1/s", setting.goal, at_least=True),
        Figure(f"{setting.name}: cycles", round(simulation.cycles.number / setting.jobs, 2), "/job"),
        Figure(f"{setting.name}: evictions", round(evictions[0] / setting.jobs, 3), "/job"),
        Figure(f"{setting.name}: memory", round(memory, 1), "MiB", 1024.0),
    ]


DEEP = (
    Setting("a deep backlog", "enqueue, allocate, backfill, reclaim", 1_000, nodes=20),
    Setting("a deep backlog, with preempt", "enqueue, allocate, backfill, reclaim, preempt", 1_000, nodes=20),
)


def beside_equal_priorities(setting: Setting) -> list[Figure]:
    """Run a backlog of three times the cluster with a priority for each job, and with one priority for all."""
    took = {}
    for is_distinct in (False, True):
        rng = random.Random(2)
        simulation = _cluster(setting)
        began = time.process_time()
        simulation.run(
            Arrival(
                START + (arrival.at - START) / 3, replace(arrival.item, priority=rng.randrange(10**6) * is_distinct)
            )
            for arrival in load(setting)
            if isinstance(arrival.item, Workload)
        )
        took[is_distinct] = time.process_time() - began
    name = f"{setting.name} with distinct priorities, times equal ones"
    return [Figure(name, round(took[True] / took[False], 2), "x", 2.0)]


def figures() -> Iterator[Figure]:
    wanted = [setting for setting in SETTINGS if not sys.argv[1:] or any(word in setting.name for word in sys.argv[1:])]
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for found in pool.imap(measure, wanted):
            yield from found
    if not sys.argv[1:] or "priorities" in sys.argv[1:]:
        for setting in DEEP:
            yield from beside_equal_priorities(setting)


if __name__ == "__main__":
    sys.exit(report(figures(), "simulation"))
