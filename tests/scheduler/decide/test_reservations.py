"""A PodGroup without pods cannot block a queue: its reservation lapses, and other namespaces keep their share."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedspec.scheduler.backlog.reservations import GRACE
from tests.support.core.events import policy_of
from tests.support.core.world import World

OVERCOMMIT = """
actions: "enqueue, allocate"
tiers: [{plugins: [{name: priority}, {name: gang}, {name: overcommit, arguments: {overcommit-factor: 1}}]}]
"""
POLICIES = {name: name for name in ("capacity", "hierarchy", "proportion", "capacity-card")} | {
    "overcommit": OVERCOMMIT
}
AWAY = {"name": "away", "has": "100 cpu, 100 memory", "labels": {"no": "node"}, "ready": False}
WAITS = {"spec": {"nodeSelector": {"no": "node"}}}
"""The pods wait for the node `AWAY`, which is not ready."""
GHOSTS: dict[str, dict[str, Any]] = {  # PodGroups without the pods for which they reserve
    "without pods": {"tasks": []},
    "without pods, Running": {"tasks": [], "phase": "Running", "min": 0},
    "with one small pod of many": {"tasks": "1 x 1m cpu", "pod": WAITS},
    "with one small running pod": {"tasks": "1 x 1m cpu running on n1", "min": 1, "phase": "Running"},
    "with small pods": {"tasks": "5 x 1m cpu", "pod": WAITS},
}
QUEUES = [{"name": "default", "capability": "10 cpu, 100 memory", "deserved": "10 cpu, 100 memory"}]


def world_with(policy: str, *ghosts: dict[str, Any]) -> World:
    world = World(policy_of(POLICIES[policy]))
    world.load({"nodes": [{"name": "n1", "has": "10 cpu, 100 memory"}, AWAY], "queues": QUEUES, "jobs": list(ghosts)})
    return world


def ghost(name: str, requests: str = "9999m cpu", namespace: str = "t", **more: Any) -> dict[str, Any]:
    meta = {"metadata": {"namespace": namespace}}
    return {"name": name, "min": 9, "requests": requests, "phase": "Inqueue", "podgroup": meta, "pod": meta, **more}


def run_cycle(world: World) -> set[str]:
    """Run a cycle, carry it out, and return all jobs that are admitted now."""
    world.carry_out(world.cycle())
    return {key for (kind, key), item in world.objects.items() if kind == "PodGroup" and _is_admitted(item)}


def _is_admitted(item: dict[str, Any]) -> bool:
    return item.get("status", {}).get("phase") not in (None, "", "Pending")


def real_job(cpu: int = 4) -> dict[str, Any]:
    return {"name": "real", "tasks": f"1 x {cpu} cpu"}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", GHOSTS)
def test_a_reservation_lapses_if_its_pods_are_not_created(policy: str, kind: str) -> None:
    world = world_with(policy, ghost("ghost", **GHOSTS[kind]))
    world.load({"jobs": [real_job()]})
    decisions = world.cycle()
    assert "t/real" not in decisions.phases, "an admitted job may still create its pods"
    assert decisions.wake_at is not None
    assert decisions.wake_at <= world.now + GRACE
    world.now = decisions.wake_at - 0.1
    assert "t/real" not in run_cycle(world)
    world.now += 0.1
    assert "t/real" in run_cycle(world)


def test_a_lapsed_reservation_counts_again_once_its_pods_exist() -> None:
    world = world_with("capacity", ghost("late", requests="6 cpu", tasks=[], min=2))
    run_cycle(world)
    world.now += GRACE
    run_cycle(world)
    world.load({"jobs": [ghost("late", requests="6 cpu", tasks="2 x 3 cpu", min=2, pod=WAITS), real_job(cpu=5)]})
    assert "t/real" not in run_cycle(world)


def test_a_reservation_whose_pods_exist_does_not_lapse() -> None:
    world = world_with("capacity", ghost("slow", requests="6 cpu", tasks="2 x 3 cpu", min=2, pod=WAITS))
    world.load({"jobs": [real_job(cpu=5)]})
    for _ in range(5):
        assert "t/real" not in run_cycle(world)
        world.now += GRACE


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("number", [1, 3, 9])
def test_recreated_ghosts_leave_other_namespaces_their_share(policy: str, number: int) -> None:
    """Each ghost is deleted before the end of `GRACE`, so that no reservation ever lapses."""
    world = world_with(policy)
    world.load({"jobs": [real_job()]})
    for turn in range(4):
        for index in range(number):
            world.remove("PodGroup", f"bad/ghost-{turn - 1}-{index}")
            requests = f"{9999 // number}m cpu"
            world.load(
                {"jobs": [ghost(f"ghost-{turn}-{index}", requests=requests, namespace="bad", tasks=[], priority=9)]}
            )
        if "t/real" in run_cycle(world):
            return
        world.now += GRACE - 1
    raise AssertionError("a namespace without pods keeps the whole queue to itself")


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["bad", "worse", "t"]), st.integers(1, 10)), max_size=6))
def test_every_job_is_admitted_no_matter_how_many_ghosts_exist(ghosts: list[tuple[str, int]]) -> None:
    jobs = [ghost(f"g{n}", f"{cpu} cpu", namespace, tasks=[]) for n, (namespace, cpu) in enumerate(ghosts)]
    world = world_with("capacity", *jobs)
    world.load({"jobs": [real_job(cpu=10)]})
    admitted = run_cycle(world)
    world.now += GRACE
    admitted = run_cycle(world)
    assert "t/real" in admitted
