"""Pods that existed before the simulation began are adopted."""

from __future__ import annotations

import math
from typing import Any

import pytest

from schedspec.scheduler.model import objects
from schedspec.scheduler.model.names import GROUP_NAME, ON_EVICTED, TASK_SPEC
from schedspec.scheduler.model.times import timestamp
from schedspec.virtual import Adopted, OnEviction, Workload
from schedspec.virtual.outcomes import Ended, Evicted, Placed, Started, Stopped
from tests.support.core.virtual import CARDS, START, Run, policy

EIGHT = {"n": {CARDS: "8", "pods": "100"}}
PREEMPT = policy("allocate, preempt")


def pod(job: str, index: int, cards: int = 1, *, node: str = "n", phase: str = "Running", **meta: Any) -> objects.Pod:
    name = f"{job}-{index}"
    created = {"creation_timestamp": timestamp(START - 100), "annotations": {GROUP_NAME: job}, **meta}
    requests = objects.Resources(requests={CARDS: str(cards)})
    return objects.Pod(
        objects.ObjectMeta(name=name, namespace="load", uid=name, **created),
        objects.PodSpec([objects.Container(resources=requests)], node_name=node),
        objects.PodStatus(phase),
    )


def adopted(name: str, pods: list[objects.Pod], run_time: float = math.inf, *, least: int = 1, **more: Any) -> Adopted:
    meta = objects.ObjectMeta(name=name, namespace="load", uid=name, creation_timestamp=timestamp(START - 100))
    group = objects.PodGroup(meta, objects.PodGroupSpec(least), objects.PodGroupStatus("Running"))
    return Adopted(group, tuple(pods), run_time, **more)


def test_running_work_ends_after_its_remaining_run_time() -> None:
    run = Run(policy(), EIGHT).play((0, adopted("old", [pod("old", 0), pod("old", 1)], 150, done=100)))
    assert (run.times(Started), run.times(Ended)) == ([0], [50])
    assert not run.simulation.cycles.cluster.tasks


def test_waiting_work_starts_once_capacity_is_free() -> None:
    waits = [pod("late", at, 5, node="", phase="Pending") for at in range(1)]
    run = Run(policy(), EIGHT).play((0, adopted("old", [pod("old", 0, 4)], 60)), (0, adopted("late", waits, 30)))
    assert (run.times(Placed, "late"), run.times(Ended, "late")) == ([60], [90])


def test_a_pod_that_is_created_again_keeps_its_own_requests() -> None:
    pods = [pod("old", 0, 2), pod("old", 1, 6)]
    high = Workload("high", 10, {CARDS: "6"}, priority=5)
    run = Run(PREEMPT, EIGHT).play((0, adopted("old", pods, 1000)), (1, high))
    assert [it.pod for it in run.of(Evicted)] == ["load/old-1"]
    assert [it.at - START for it in run.of(Placed, "old") if it.pod == "load/old-1"] == [0, 11]
    task = run.simulation.cycles.cluster.tasks
    assert not task  # it ran to its end


def test_the_eviction_of_one_pod_leaves_the_rest_of_its_gang_running() -> None:
    pods = [pod("old", at, 4) for at in range(2)]
    high = Workload("high", 10, {CARDS: "4"}, priority=5)
    run = Run(PREEMPT, EIGHT).play((0, adopted("old", pods, 100, least=1)), (20, high))
    assert len(run.of(Evicted)) == 1
    assert not run.of(Stopped)
    assert run.times(Ended, "old") == [100]


POLICIES = {
    "": ((), (), ["load/old-2"], [100]),
    "RestartPod": ((), (), ["load/old-2"], [100]),
    "RestartTask": ((), (), ["load/old-1", "load/old-2"], [100]),
    "RestartJob": ([20], [0, 20], ["load/old-0", "load/old-1", "load/old-2"], [120]),
    "AbortJob": ([20], [0], [], [20]),
    "TerminateJob": ([20], [0], [], [20]),
    "CompleteJob": ([20], [0], [], [20]),
}
"""Action of a VolcanoJob → when its gang stops and starts, the pods that are created again, and when it ends."""


@pytest.mark.parametrize(("action", "expected"), POLICIES.items())
def test_a_job_does_what_its_policy_says_when_a_pod_is_evicted(action: str, expected: Any) -> None:
    """One of three pods goes, and the minimum of one still runs."""
    notes = {ON_EVICTED: action} if action else {}
    pods = [
        pod("old", at, 2, annotations={GROUP_NAME: "old", TASK_SPEC: role, **notes})
        for at, role in enumerate(("lead", "work", "work"))
    ]
    high = Workload("high", 10, {CARDS: "4"}, priority=5)
    run = Run(PREEMPT, EIGHT).play((0, adopted("old", pods, 100)), (20, high))
    assert [it.pod for it in run.of(Evicted)] == ["load/old-2"]
    again = sorted(it.pod for it in run.of(Placed, "old") if it.at > START)
    stops, starts, pods_again, ends = expected
    assert (run.times(Stopped, "old"), run.times(Started, "old")) == ([*stops], [*starts] or [0])
    assert (again, run.times(Ended, "old")) == (pods_again, ends)


def test_a_pod_without_an_owner_is_not_created_again() -> None:
    work = adopted("old", [pod("old", 0, 8)], on_eviction=OnEviction.VANISH)
    run = Run(PREEMPT, EIGHT).play((0, work), (20, Workload("high", 10, {CARDS: "8"}, priority=5)))
    assert (run.times(Stopped), run.times(Placed, "old"), run.times(Ended)) == ([20], [0], [30])


def test_a_terminating_pod_is_removed_after_the_grace_period() -> None:
    terminating = pod("old", 0, 8, deletion_timestamp=timestamp(START))
    work = adopted("old", [terminating], on_eviction=OnEviction.VANISH)
    run = Run(policy(), EIGHT, grace=30).play((0, work), (1, Workload("next", 10, {CARDS: "8"})))
    assert run.times(Started, "next") == [30]


def test_pods_that_succeeded_count_towards_the_minimum() -> None:
    pods = [pod("old", 0, phase="Succeeded"), pod("old", 1)]
    run = Run(policy(), EIGHT).play((0, adopted("old", pods, 40, least=2)))
    assert (run.times(Started), run.times(Ended)) == ([0], [40])
