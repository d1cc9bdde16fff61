"""Measure how long a cycle of the core takes, by size of the cluster.

`python -m benchmarks.core` prints a table and writes `benchmarks/out/core.json`. Times are CPU seconds, which other
work on the machine changes little. Each setting is measured in a process of its own. A figure is the best of several
cycles on one state: `decide` does not change the state.
"""

from __future__ import annotations

import copy
import gc
import json
import math
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks import clusters, core_reclaim, core_topology, core_waste
from benchmarks.figure import Figure
from schedspec.scheduler.core import Core
from schedspec.scheduler.decide import decide
from schedspec.scheduler.inputs import Assumed, Decided, apply_input
from schedspec.scheduler.live.memory import collect_rarely
from schedspec.scheduler.live.pace import Pace
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.policy.loader import DEFAULT_TEXT, load_policy
from schedspec.scheduler.policy.model import PluginOption, Policy

OUT = Path(__file__).parent / "out" / "core.json"
NOW = 1_790_000_000.0
DEFAULT_POLICY = load_policy(DEFAULT_TEXT, "default")
RECLAIM = Policy(
    actions=("enqueue", "allocate", "backfill", "reclaim"),
    tiers=(
        tuple(PluginOption(name) for name in ("priority", "gang", "conformance")),
        tuple(PluginOption(name) for name in ("drf", "predicates", "capacity", "nodeorder")),
    ),
)


@dataclass(frozen=True)
class Setting:
    """A state, a policy, and the expected result of a cycle."""

    name: str
    build: Callable[[], Cluster]
    policy: Policy
    binds: int
    goal: float | None = None
    goal_again: float | None = None
    goal_memory: float | None = None


def settings() -> Iterator[Setting]:
    """Yield the settings. Both backlogs of gangs are measured at a quarter, half and full size."""
    for part in (4, 2, 1):
        pods, nodes, whole = 10_000 // part, 1_000 // part, part == 1
        yield Setting(
            f"{pods} pending pods in gangs of 20, {nodes} nodes",
            lambda pods=pods, nodes=nodes: clusters.backlog(pods, nodes),
            DEFAULT_POLICY,
            binds=pods,
            goal=1.0 if whole else None,
            goal_again=0.001 if whole else None,
            goal_memory=250.0 if whole else None,
        )
    for part in (4, 2, 1):
        pods, nodes, whole = 50_000 // part, 5_000 // part, part == 1
        yield Setting(
            f"{pods} pending pods in gangs of 20, {nodes} nodes",
            lambda pods=pods, nodes=nodes: clusters.backlog(pods, nodes),
            DEFAULT_POLICY,
            binds=pods,
            goal=6.0 if whole else None,
        )
    yield Setting(
        "10000 pending pods of which none fits, 1000 nodes",
        lambda: clusters.backlog(10_000, 1_000, full=True),
        DEFAULT_POLICY,
        binds=0,
        goal=1.0,
        goal_again=0.001,
    )
    yield Setting("one pod arrives, 100 idle nodes", lambda: clusters.backlog(1, 100, gang=1), DEFAULT_POLICY, binds=1)
    for waiting, shapes in ((0, 1), (500, 8), (500, 100)):
        backlog = f", {waiting} gangs of {shapes} shapes wait" if waiting else ""
        yield Setting(
            f"one pod arrives, 5000 run{backlog}",
            lambda waiting=waiting, shapes=shapes: clusters.busy(waiting, shapes),
            DEFAULT_POLICY,
            binds=1,
        )
    yield Setting(
        "one pod arrives, 5000 run, 500 gangs of 8 shapes wait and may reclaim nothing",
        lambda: clusters.busy(500, 8),
        RECLAIM,
        binds=1,
        goal=0.06,
    )
    yield Setting(
        "10000 single pods, 1000 nodes", lambda: clusters.backlog(10_000, 1_000, gang=1), DEFAULT_POLICY, binds=10_000
    )


def measure(setting: Setting) -> list[Figure]:
    """Build the state, decide several times, and check the result."""
    process = psutil.Process()
    core = Core(setting.build())
    gc.collect()
    gc.freeze()  # otherwise an arbitrary cycle would include a full collection
    times = []
    for _ in range(3):
        core.cluster.version += 1  # a change, so that no earlier decision is reused
        start = time.process_time()
        decisions = core.decide(setting.policy, NOW)
        times.append(time.process_time() - start)
    if len(decisions.binds) != setting.binds:
        sys.exit(f"{setting.name}: {len(decisions.binds)} binds, expected {setting.binds}")
    start = time.process_time()
    core.decide(setting.policy, NOW)
    again = time.process_time() - start
    memory = process.memory_info().rss / 2**20
    return [
        Figure(setting.name, round(min(times), 6), "s", setting.goal),
        Figure(f"{setting.name}: nothing changed", round(again, 6), "s", setting.goal_again),
        Figure(f"{setting.name}: memory of the process", round(memory, 1), "MiB", setting.goal_memory),
    ]


NEVER_FIT, MAY_RECLAIM_NOTHING = 2_000, 500


def beside_waiting_gangs(policy: Policy, gangs: int) -> list[float]:
    """Return the seconds for a new pod alone, and beside gangs that have been refused before.

    The two take turns, because a cycle takes less than a millisecond and the machine may be shared.
    """
    cores = {waiting: Core(clusters.busy(waiting, 8, small=False)) for waiting in (0, gangs)}
    for core in cores.values():
        first = core.decide(policy, NOW)
        core.backlog.apply(first.memory, first.pipelined)
        clusters.add_small(core.cluster)
    gc.collect()
    gc.freeze()
    seconds = dict.fromkeys(cores, math.inf)
    for _ in range(100):
        for waiting, core in cores.items():
            core.cluster.version += 1
            start = time.process_time()
            decisions = core.decide(policy, NOW)
            seconds[waiting] = min(seconds[waiting], time.process_time() - start)
            if len(decisions.binds) != 1 or len(decisions.refusals) != waiting:
                sys.exit(f"{len(decisions.binds)} binds, {len(decisions.refusals)} jobs wait beside {waiting} gangs")
    return [*seconds.values()]


def beside_gangs_that_never_fit() -> list[Figure]:
    alone, beside = beside_waiting_gangs(DEFAULT_POLICY, NEVER_FIT)
    name = f"one pod arrives beside {NEVER_FIT} gangs that never fit, times alone"
    return [Figure(name, round(beside / alone, 2), "x", 1.2)]


def beside_gangs_that_may_reclaim_nothing() -> list[Figure]:
    _, beside = beside_waiting_gangs(RECLAIM, MAY_RECLAIM_NOTHING)
    name = f"one pod arrives beside {MAY_RECLAIM_NOTHING} refused gangs that may reclaim nothing"
    return [Figure(name, round(beside, 6), "s", 0.06)]


ANTI_AFFINITY_TERMS = 12_000


def beside_anti_affinity_terms() -> list[Figure]:
    """Measure the cycle after a label of a running pod has changed, beside terms that all must be matched again."""
    cluster = clusters.apart(ANTI_AFFINITY_TERMS)
    gc.collect()
    gc.freeze()
    times = []
    for number in range(4):
        clusters.relabel(cluster, 0, f"other-{number}", node="node-00000")
        start = time.process_time()
        decisions = decide(cluster, DEFAULT_POLICY, NOW)
        times.append(time.process_time() - start)
    if len(decisions.binds) != 1:
        sys.exit(f"{len(decisions.binds)} binds beside {ANTI_AFFINITY_TERMS} anti-affinity terms")
    name = f"a label changes and one pod arrives beside {ANTI_AFFINITY_TERMS} anti-affinity terms"
    return [Figure(name, round(min(times), 4), "s", 0.25)]


def within_a_budget() -> list[Figure]:
    """Decide one backlog in cycles of the live scheduler's initial budget, and in one cycle; compare the times."""
    whole_cluster, cut_cluster = (clusters.backlog(10_000, 1_000) for _ in range(2))
    gc.collect()
    gc.freeze()
    core = Core(cut_cluster)
    start = time.process_time()
    whole = decide(whole_cluster, DEFAULT_POLICY, NOW)
    at_once = time.process_time() - start
    budget, binds, cycles, in_cycles = Pace().budget, 0, 0, 0.0
    while True:
        start = time.process_time()
        decisions = core.decide(DEFAULT_POLICY, NOW, budget=budget)
        in_cycles += time.process_time() - start
        binds, cycles = binds + len(decisions.binds), cycles + 1
        apply_input(core, Decided(cycles, NOW, decisions, budget))
        for bind in decisions.binds:
            apply_input(core, Assumed(bind.task, bind.uid, bind.node))
        for key, phase in decisions.phases.items():
            group = copy.deepcopy(cut_cluster.jobs[key].group)
            assert group is not None
            group.status.phase = phase
            cut_cluster.set_podgroup(group)
        if not decisions.cut:
            break
        if cycles > 100:
            sys.exit(f"{cycles} cycles, and the last one was cut as well")
    if binds != len(whole.binds):
        sys.exit(f"{binds} binds in {cycles} cycles, {len(whole.binds)} in one")
    name = f"10000 pending pods in {cycles} cycles that are cut, times one cycle"
    return [Figure(name, round(in_cycles / at_once, 2), "x", 1.2)]


def main(only: str = "") -> int:
    """Measure all settings whose name contains `only`. Return the number of figures that miss their goal."""
    found: list[Figure] = []
    context = multiprocessing.get_context("spawn")
    tasks: list[tuple[Callable[[int], list[Figure]], int]] = [
        (_measure, number) for number, setting in enumerate(settings()) if only in setting.name
    ]
    tasks += [(measurement, 0) for name, measurement in OTHERS.items() if only in name]
    for measurement, number in tasks:
        with context.Pool(1, collect_rarely) as pool:  # garbage is collected as in the live scheduler
            figures = pool.apply(measurement, (number,))
        for figure in figures:
            print(figure.line, flush=True)
        found += figures
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps([figure.plain for figure in found], indent=1) + "\n")
    return sum(not figure.ok for figure in found)


def _measure(number: int) -> list[Figure]:
    return measure(list(settings())[number])


def _measure_waste(_: int) -> list[Figure]:
    return core_waste.figures()


def _measure_reclaim(_: int) -> list[Figure]:
    return core_reclaim.figures()


def _measure_topology(_: int) -> list[Figure]:
    return core_topology.figures()


def _measure_beside(_: int) -> list[Figure]:
    return beside_gangs_that_never_fit() + beside_gangs_that_may_reclaim_nothing()


def _measure_anti_affinity(_: int) -> list[Figure]:
    return beside_anti_affinity_terms()


def _measure_budget(_: int) -> list[Figure]:
    return within_a_budget()


OTHERS: dict[str, Callable[[int], list[Figure]]] = {
    "reclaim": _measure_reclaim,
    "evicted to requested": _measure_waste,
    "topology": _measure_topology,
    "hopeless": _measure_beside,
    "budget": _measure_budget,
    "anti-affinity": _measure_anti_affinity,
}
"""Further measurements by the names that select them."""


if __name__ == "__main__":
    sys.exit(1 if main(*sys.argv[1:]) else 0)
