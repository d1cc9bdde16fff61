"""A virtual cluster depends on no clock and no random number of the process.

A busy machine makes the decisions of an idle machine, and every run makes the same decisions.
"""

from __future__ import annotations

import itertools
import random
import time
from typing import Any, NamedTuple

import pytest

from schedspec.scheduler.decide import decide
from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.framework.work import Budget
from schedspec.scheduler.live import loop
from schedspec.scheduler.live.pace import MEASURED_FROM
from schedspec.scheduler.model.cluster import Cluster
from schedspec.virtual.cluster.virtual_cluster import START
from tests.schedspec.virtual.cluster.test_virtual_cluster import JOBS, PODS, Api, job, pod_spec

CLOCKS = ("time", "monotonic", "perf_counter", "process_time", "thread_time")


class Cycle(NamedTuple):
    """The input and the output of the core in one cycle."""

    now: float
    budget: Budget
    steps: int
    cut: list[str]
    binds: list[tuple[str, str]]
    tasks: dict[str, str]


def cycles(monkeypatch: pytest.MonkeyPatch, seconds: float) -> list[Cycle]:
    """Return the cycles of one load on a machine whose clocks advance by `seconds` at each reading."""
    found: list[Cycle] = []
    ticks = itertools.count()

    def core(cluster: Cluster, policy: Any, now: float, step: Any, *, budget: Budget) -> Decisions:
        tasks = {key: task.status.name for key, task in cluster.tasks.items()}
        made = decide(cluster, policy, now, step, budget=budget)
        binds = [(bind.task, bind.node) for bind in made.binds]
        found.append(Cycle(now, budget, made.steps, list(made.cut), binds, tasks))
        return made

    with monkeypatch.context() as patch:
        patch.setattr(loop, "decide", core)
        for clock in CLOCKS:
            patch.setattr(time, clock, lambda: START + next(ticks) * seconds)
        api = Api()
        try:
            play(api)
        finally:
            api.cluster.close()
    return found


def play(api: Api) -> None:
    """Cause large and small cycles, and let a job wait for a pod that terminates for a minute."""
    for number in range(30):
        api.node(8, f"n{number:02}")
    for number in range(9):
        api.send("POST", JOBS, job(f"j{number}", 25, run_for="30s"))
    api.cluster.advance(100)
    body = pod_spec(stop_after="60s")
    body["metadata"]["name"] = "slow"
    body["spec"]["terminationGracePeriodSeconds"] = 60
    api.send("POST", PODS, body)
    api.cluster.advance(5)
    api.send("DELETE", f"{PODS}/slow")
    api.cluster.advance(1)
    api.send("POST", JOBS, job("waits", 240, run_for="30s"))
    api.cluster.advance(100)


def hours(seed: int) -> list[tuple[float, str, str]]:
    """Return when each object changed in an hour in which watches end and resume, in a process with this seed."""
    random.seed(seed)
    api, found = Api(), []
    api.cluster.watch(lambda kind, change, item: found.append((api.cluster.now(), change, item["metadata"]["name"])))
    api.node(4)
    for number in range(60):
        api.send("POST", JOBS, job(f"j{number}", run_for="20s"))
        api.cluster.advance(61)
    api.cluster.close()
    return found


def test_random_delays_repeat_whatever_the_process_draws() -> None:
    before = random.getstate()
    try:
        assert hours(1) == hours(2)
    finally:
        random.setstate(before)


def test_slow_and_fast_clocks_of_the_machine_give_the_same_budgets_and_decisions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    idle, busy = cycles(monkeypatch, 0.0), cycles(monkeypatch, 10.0)
    assert max(cycle.steps for cycle in idle) > MEASURED_FROM  # otherwise a live pace would not measure the cycle
    assert any(cycle.tasks.get("spec/slow") == "RELEASING" for cycle in idle)
    assert len({cycle.budget for cycle in idle}) == 2  # a small budget on the event loop, a full budget in a thread
    assert busy == idle
