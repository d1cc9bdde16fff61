"""Preemption respects the disruption mode of a gang under every policy."""

from __future__ import annotations

from typing import Any

import pytest

from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.policy.model import PluginOption, Policy
from tests.support.core.notation import merged
from tests.support.core.world import World

MODE = "schedspec.dev/disruption-mode"
NODE = {"name": "n1", "has": "4 cpu"}
QUEUE = {"name": "a", "deserved": "4 cpu"}
WITH_GANG = (("gang",), ("priority",), ("predicates",))
WITHOUT_GANG = (("priority",), ("predicates",))
POLICIES = {"with plugin gang": WITH_GANG, "without plugin gang": WITHOUT_GANG}


def preempt(tiers: tuple[tuple[str, ...], ...], *jobs: dict[str, Any], tasks: str = "1 x 1 cpu") -> Decisions:
    """Return the decisions for these jobs and a job of higher priority with `tasks`."""
    policy = Policy(("preempt",), tuple(tuple(PluginOption(name) for name in tier) for tier in tiers))
    world = World(policy)
    new = {"name": "new", "queue": "a", "priority": 5, "tasks": tasks, "phase": "Inqueue"}
    world.load({"nodes": [NODE], "queues": [QUEUE], "jobs": [*jobs, new]})
    return world.cycle()


def gang(mode: str, minimum: int, tasks: str = "4 x 1 cpu running on n1", name: str = "old") -> dict[str, Any]:
    annotations = {"annotations": {MODE: mode}} if mode else {}
    return {"name": name, "queue": "a", "priority": 1, "min": minimum, "tasks": tasks, **annotations}


@pytest.mark.parametrize("tiers", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize(
    ("mode", "minimum", "victims"),
    [
        pytest.param("pod", 4, 1, id="pod by pod below its minimum"),
        pytest.param("group", 4, 4, id="as a whole at its minimum"),
        pytest.param("group", 1, 4, id="as a whole with its spare tasks"),
    ],
)
def test_the_mode_decides_victims(tiers: tuple[tuple[str, ...], ...], mode: str, minimum: int, victims: int) -> None:
    assert len(preempt(tiers, gang(mode, minimum)).evictions) == victims


@pytest.mark.parametrize(("tiers", "minimum", "victims"), [(WITH_GANG, 4, 4), (WITH_GANG, 1, 1), (WITHOUT_GANG, 4, 1)])
@pytest.mark.parametrize("mode", ["", "some other"])
def test_without_a_mode_the_policy_and_the_minimum_decide_it(
    mode: str, tiers: tuple[tuple[str, ...], ...], minimum: int, victims: int
) -> None:
    assert len(preempt(tiers, gang(mode, minimum)).evictions) == victims


def test_evicting_a_gang_pod_by_pod_is_cheaper_than_evicting_a_gang_as_a_whole() -> None:
    whole = gang("group", 2, "2 x 1 cpu running on n1", "whole")
    alone = gang("pod", 2, "2 x 1 cpu running on n1", "alone")
    assert {eviction.job for eviction in preempt(WITH_GANG, whole, alone).evictions} == {"t/alone"}


def test_a_gang_of_mode_group_is_not_evicted_if_its_room_does_not_suffice() -> None:
    equal = {"name": "equal", "queue": "a", "priority": 5, "tasks": "3 x 1 cpu running on n1", "min": 3}
    low = gang("group", 1, "1 x 1 cpu running on n1")
    assert preempt(WITH_GANG, equal, low, tasks="2 x 1 cpu").evictions == []


def test_a_job_of_mode_group_evicts_none_of_its_own_pods() -> None:
    world = World(Policy(("preempt",), tuple(tuple(PluginOption(name) for name in tier) for tier in WITH_GANG)))
    own = gang("group", 1, name="own")
    world.load({"nodes": [NODE], "queues": [QUEUE], "jobs": [own]})
    pods = [item for kind, item in world.notation.job({**own, "tasks": "5 x 1 cpu"}) if kind == "Pod"]
    world.put("Pod", merged(pods[4], {"spec": {"priority": 9}}))
    assert world.cluster.jobs["t/own"].pending_request["cpu"] == 1000
    assert world.cycle().evictions == []
