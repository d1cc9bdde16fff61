"""A PodGroup without pods cannot block a queue: its reservation lapses, and other namespaces keep their share."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.backlog.reservations import GRACE
from tests.support.core.events import policy_of
from tests.support.core.world import World

OVERCOMMIT = """
actions: "enqueue, allocate"
tiers: [{plugins: [{name: priority}, {name: gang}, {name: overcommit, arguments: {overcommit-factor: 1}}]}]
"""
POLICIES = {name: name for name in ("capacity", "hierarchy", "proportion", "capacity-card")} | {
    "overcommit": OVERCOMMIT
}
NEVER_FITS = {"spec": {"nodeSelector": {"no": "node"}}}
GHOSTS: dict[str, dict[str, Any]] = {
    "without pods": {"tasks": []},
    "without pods, Running": {"tasks": [], "phase": "Running", "min": 0},
    "with one small pod of many": {"tasks": "1 x 1m cpu", "pod": NEVER_FITS},
    "with one small running pod": {"tasks": "1 x 1m cpu running on n1", "min": 1, "phase": "Running"},
    "with small pods": {"tasks": "5 x 1m cpu", "pod": NEVER_FITS},
}
QUEUES = [{"name": "default", "capability": "10 cpu, 100 memory", "deserved": "10 cpu, 100 memory"}]


def world_with(policy: str, *ghosts: dict[str, Any]) -> World:
    world = World(policy_of(POLICIES[policy]))
    world.load({"nodes": [{"name": "n1", "has": "10 cpu, 100 memory"}], "queues": QUEUES, "jobs": list(ghosts)})
    return world


def ghost(name: str, asks: str = "9999m cpu", namespace: str = "t", **more: Any) -> dict[str, Any]:
    place = {"metadata": {"namespace": namespace}}
    return {"name": name, "min": 9, "asks": asks, "phase": "Inqueue", "podgroup": place, "pod": place, **more}


def run_cycle(world: World) -> set[str]:
    """Run a cycle and carry it out; return the jobs that are admitted so far."""
    world.carry_out(world.cycle())
    return {key for (kind, key), item in world.objects.items() if kind == "PodGroup" and _is_admitted(item)}


def _is_admitted(item: dict[str, Any]) -> bool:
    return item.get("status", {}).get("phase") not in (None, "", "Pending")


def victim(name: str = "real", cpu: int = 4) -> dict[str, Any]:
    return {"name": name, "tasks": f"1 x {cpu} cpu"}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", GHOSTS)
def test_a_reservation_lapses_where_the_pods_do_not_follow(policy: str, kind: str) -> None:
    world = world_with(policy, ghost("ghost", **GHOSTS[kind]))
    world.load({"jobs": [victim()]})
    decisions = world.cycle()
    assert "t/real" not in decisions.phases, "an admitted job may still create its pods"
    assert decisions.wake_at is not None
    assert decisions.wake_at <= world.now + GRACE
    world.now = decisions.wake_at - 0.1
    assert "t/real" not in run_cycle(world)
    world.now += 0.1
    assert "t/real" in run_cycle(world)


def test_a_lapsed_reservation_stands_again_with_the_pods() -> None:
    world = world_with("capacity", ghost("late", asks="6 cpu", tasks=[], min=2))
    run_cycle(world)
    world.now += GRACE
    run_cycle(world)
    world.load({"jobs": [ghost("late", asks="6 cpu", tasks="2 x 3 cpu", min=2, pod=NEVER_FITS), victim(cpu=5)]})
    assert "t/real" not in run_cycle(world)


def test_pods_that_follow_in_time_keep_their_reservation() -> None:
    world = world_with("capacity", ghost("slow", asks="6 cpu", tasks="2 x 3 cpu", min=2, pod=NEVER_FITS))
    world.load({"jobs": [victim(cpu=5)]})
    for _ in range(5):
        assert "t/real" not in run_cycle(world)
        world.now += GRACE


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("number", [1, 3, 9])
def test_ghosts_that_are_made_anew_leave_other_namespaces_their_share(policy: str, number: int) -> None:
    """Each ghost lives shorter than the grace, so none of their reservations ever lapses."""
    world = world_with(policy)
    world.load({"jobs": [victim()]})
    for turn in range(4):
        for one in range(number):
            world.remove("PodGroup", f"bad/ghost-{turn - 1}-{one}")
            asks = f"{9999 // number}m cpu"
            world.load({"jobs": [ghost(f"ghost-{turn}-{one}", asks=asks, namespace="bad", tasks=[], priority=9)]})
        if "t/real" in run_cycle(world):
            return
        world.now += GRACE - 1
    raise AssertionError("a namespace without pods keeps the whole queue to itself")


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["bad", "worse", "t"]), st.integers(1, 10)), max_size=6))
def test_every_job_is_admitted_whatever_ghosts_there_are(ghosts: list[tuple[str, int]]) -> None:
    made = [ghost(f"g{n}", f"{cpu} cpu", namespace, tasks=[]) for n, (namespace, cpu) in enumerate(ghosts)]
    world = world_with("capacity", *made)
    world.load({"jobs": [victim(cpu=10)]})
    admitted = run_cycle(world)
    world.now += GRACE
    admitted = run_cycle(world)
    assert "t/real" in admitted
