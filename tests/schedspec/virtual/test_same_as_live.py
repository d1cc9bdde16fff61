"""The live scheduler on an embedded cluster serves a load as the simulation predicts."""

from __future__ import annotations

import asyncio
import bisect
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from schedspec.scheduler.kube import NAMESPACES, PRIORITY_CLASSES
from schedspec.scheduler.live import app as live_app
from schedspec.scheduler.live.options import parse
from schedspec.scheduler.live.policy_file import PolicyFile
from schedspec.scheduler.live.state_feed import StateFeed
from schedspec.scheduler.policy.loader import load_policy
from schedspec.virtual import Arrival, OnEviction, Settings, Simulation, Workload
from schedspec.virtual.outcomes import Evicted, Started
from tests.support.core.virtual import START
from tests.support.live.api_objects import client_of, fresh_cluster, prepare, queue
from tests.support.live.lockstep import HeldLoop, Lockstep

SEED, JOBS = 1, 500
NODE_COUNT, CPUS = 12, 8
SHARES = {"research": 48, "service": 24, "nightly": 16, "guests": 8}
PRIORITIES = (0, 100)
POLICY = """actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
"""
WITHIN = 2
"""Maximum number of recorded cycles between a simulated start and the same live start."""


def load() -> Iterator[Arrival]:
    """Yield jobs at whole seconds, slightly more than the cluster can serve. The queues exceed their shares in turn."""
    rng, now = random.Random(SEED), START
    for index in range(JOBS):
        now += rng.choice((0, 1, 3, 5, 8, 13))
        pods, busy = rng.choice((1, 1, 2, 3, 4, 6)), list(SHARES)[index // 40 % len(SHARES)]
        yield Arrival(
            now,
            Workload(
                f"j{index:04}",
                float(rng.choice((15, 30, 60, 90, 180))),
                {"cpu": rng.choice(("1", "1", "2", "4")), "memory": "64Mi"},
                pods,
                min_member=pods if rng.random() < 0.7 else rng.randint(1, pods),
                queue=rng.choice((busy, busy, *SHARES)),
                priority_class=f"priority-{rng.choice((0, 0, 0, 100))}",
                on_eviction=OnEviction.REPLACE,
            ),
        )


def simulated(live: Lockstep, start_delay: float = 0.0) -> list[Any]:
    """Return the outcomes of the load in a simulation with the objects that the live scheduler saw."""
    found: list[Any] = []
    simulation = Simulation(
        load_policy(POLICY, "test"), emit=found.append, start=START, settings=Settings(start_delay=start_delay)
    )
    for it in live.shown:
        simulation.put(it.kind, it.object)
    simulation.run(load())
    return found


def differences(live: Lockstep, outcomes: list[Any]) -> list[str]:
    """Describe the starts that differ, and the evictions that differ by victim and preemptor job."""
    evictions = Counter((it.job, it.reason.preemptor) for it in outcomes if type(it) is Evicted)
    found = [
        f"pods of {pair[0]} evicted for {pair[1]}: {live.evictions[pair]} live, {evictions[pair]} in the simulation"
        for pair in sorted({*evictions, *live.evictions})
        if evictions[pair] != live.evictions[pair]
    ]
    starts: dict[str, list[float]] = {}
    for it in outcomes:
        if type(it) is Started:
            starts.setdefault(it.job, []).append(it.at)
    cycles: dict[str, list[int]] = {}
    for job, cycle in live.starts:
        cycles.setdefault(job, []).append(cycle)
    for job in sorted({*starts, *cycles}):
        mine, theirs = starts.get(job, []), cycles.get(job, [])
        if len(mine) != len(theirs):
            found.append(f"{job} started {len(theirs)} times live, and {len(mine)} times in the simulation")
            continue
        for at, cycle in zip(mine, theirs, strict=True):
            if (distance := cycles_between(live, at, cycle)) > WITHIN:
                found.append(
                    f"{job} started live in cycle {cycle}, {distance} cycles from {at - START:g} s, as simulated"
                )
    return found


def cycles_between(live: Lockstep, at: float, cycle: int) -> int:
    """Return the number of recorded cycles from a cycle to those of a virtual time."""
    place = bisect.bisect_left(live.instants, (at,))
    first = live.instants[place][1] if place < len(live.instants) else live.instants[-1][2] + 1
    is_instant = place < len(live.instants) and live.instants[place][0] == at
    last = live.instants[place][2] if is_instant else first
    return max(first - cycle, cycle - last, 0)


@contextlib.asynccontextmanager
async def held_scheduler(
    kubeconfig: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[StateFeed, HeldLoop]]:
    """Run the whole scheduler in this process, with a recording and a held cycle loop."""
    policy = folder / "policy.yaml"
    policy.write_text(POLICY)
    options = ("--kubeconfig", str(kubeconfig), "--policy", str(policy), "--controllers", "none")
    monkeypatch.setattr(live_app, "CycleLoop", HeldLoop)
    app = live_app.App(parse([*options, "--record", str(folder / "record")]), PolicyFile(policy))
    assert isinstance(app.cycles, HeldLoop)
    running = asyncio.create_task(app.run())
    try:
        yield app.feed, app.cycles
    finally:
        app.stopping.set()
        assert await running == 0


@pytest.mark.embedded
@pytest.mark.nightly
@pytest.mark.deadline(1800)
async def test_jobs_start_and_are_evicted_live_as_they_are_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fresh_cluster() as kubeconfig:
        async with client_of(kubeconfig) as client:
            queues = [queue(name, deserved={"cpu": str(share)}) for name, share in SHARES.items()]
            await prepare(client, NODE_COUNT, [queue("default"), *queues], cpu=str(CPUS))
            await client.create(NAMESPACES, {"metadata": {"name": "load"}})
            for value in PRIORITIES:
                await client.create(PRIORITY_CLASSES, {"metadata": {"name": f"priority-{value}"}, "value": value})
            async with held_scheduler(kubeconfig, tmp_path, monkeypatch) as (feed, cycles):
                live = Lockstep(client, "load", feed, cycles)
                await live.play(load())
    outcomes = simulated(live)
    assert sum(live.evictions.values()) > JOBS / 10, "the load has to evict"
    assert differences(live, outcomes) == []
    assert differences(live, simulated(live, start_delay=10.0)), "the comparison misses a planted start delay"
