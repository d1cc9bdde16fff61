"""The core alone: how long a cycle takes, by size. ``python -m benchmarks.core`` prints a table and writes
``benchmarks/out/core.json``.

Each figure is measured in a process of its own, best of several cycles on one state (``decide`` leaves the state as it
found it).
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from benchmarks import clusters
from scheduler.decide import decide
from scheduler.model.cluster import Cluster
from scheduler.policy import DEFAULT_POLICY, Policy

OUT = Path(__file__).parent / "out" / "core.json"
NOW = 1_790_000_000.0


@dataclass(frozen=True)
class Figure:
    """One line of the table. ``goal`` None: shown for growth only."""

    figure: str
    value: float
    unit: str
    goal: float | None = None
    ok: bool = True


@dataclass(frozen=True)
class Setting:
    """A state to decide on, the policy, and what is expected to come of it."""

    name: str
    build: Callable[[], Cluster]
    policy: Policy
    binds: int
    evictions: int = 0
    goal: float | None = None
    goal_again: float | None = None
    goal_memory: float | None = None


def settings() -> Iterator[Setting]:
    """The figures of the design, each at a quarter, a half and the whole."""
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
    yield Setting(
        "10000 single pods, 1000 nodes", lambda: clusters.backlog(10_000, 1_000, gang=1), DEFAULT_POLICY, binds=10_000
    )
    for part in (4, 2, 1):
        tasks, nodes, whole = 500 // part, 1_000 // part, part == 1
        yield Setting(
            f"a job of {tasks} x 8 cards reclaims from {nodes} nodes x 8 single-card jobs",
            lambda tasks=tasks, nodes=nodes: clusters.full_of_single_cards(tasks, nodes),
            clusters.RECLAIM_POLICY,
            binds=0,
            evictions=tasks * 8,
            goal=2.0 if whole else None,
        )


def measure(setting: Setting) -> list[Figure]:
    """Build the state, decide, decide again; check that what was to be decided was."""
    process = psutil.Process()
    cluster = setting.build()
    gc.collect()
    times = []
    for _ in range(3):
        cluster.version += 1  # something changed, so that nothing is taken from memory
        start = time.perf_counter()
        decisions = decide(cluster, setting.policy, NOW)
        times.append(time.perf_counter() - start)
    came = (len(decisions.binds), len(decisions.evictions))
    if came != (setting.binds, setting.evictions):
        sys.exit(
            f"{setting.name}: {came[0]} binds and {came[1]} evictions, expected {setting.binds} and {setting.evictions}"
        )
    start = time.perf_counter()
    decide(cluster, setting.policy, NOW)
    again = time.perf_counter() - start
    memory = process.memory_info().rss / 2**20
    return [
        _figure(setting.name, min(times), "s", setting.goal),
        _figure(f"{setting.name}: nothing changed", again, "s", setting.goal_again),
        _figure(f"{setting.name}: memory of the process", memory, "MiB", setting.goal_memory),
    ]


def _figure(name: str, value: float, unit: str, goal: float | None) -> Figure:
    return Figure(name, round(value, 6), unit, goal, goal is None or value <= goal)


def main(only: str = "") -> int:
    """Measure all settings whose name contains ``only``. The number of figures that miss their goal."""
    found: list[Figure] = []
    context = multiprocessing.get_context("spawn")
    for number, setting in enumerate(settings()):
        if only in setting.name:
            with context.Pool(1) as pool:
                figures = pool.apply(_measure_number, (number,))
            for figure in figures:
                goal = (
                    ""
                    if figure.goal is None
                    else f"{'ok  ' if figure.ok else 'MISS'} goal {figure.goal:g} {figure.unit}"
                )
                print(f"{figure.value:12.4f} {figure.unit:4} {figure.figure:88} {goal}", flush=True)
            found += figures
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps([asdict(figure) for figure in found], indent=1) + "\n")
    return sum(not figure.ok for figure in found)


def _measure_number(number: int) -> list[Figure]:
    return measure(list(settings())[number])


if __name__ == "__main__":
    sys.exit(1 if main(*sys.argv[1:]) else 0)
