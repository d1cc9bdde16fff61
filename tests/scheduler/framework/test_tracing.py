"""A tracer sees all steps of a cycle in order, and does not change the decisions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from schedspec.scheduler.actions import ACTIONS
from schedspec.scheduler.decide import decide
from tests.support.core.events import policy_of
from tests.support.core.world import World

TABLE = {
    "nodes": [{"name": "n0", "has": "4 cpu"}],
    "queues": [{"name": "q0"}],
    "jobs": [
        {"name": "fits", "queue": "q0", "tasks": "3 x 1 cpu"},
        {"name": "waits", "queue": "q0", "tasks": "9 x 1 cpu"},
    ],
}


class RecordingTracer:
    """A tracer that records the steps."""

    def __init__(self) -> None:
        self.traced: list[str] = []

    @contextmanager
    def step(self, kind: str, name: str) -> Iterator[None]:
        self.traced.append(f"{kind} {name} begins")
        try:
            yield
        finally:
            self.traced.append(f"{kind} {name} ends")


def loaded_world() -> World:
    world = World(policy_of("capacity"))
    world.load(TABLE)
    return world


def test_all_plugins_and_then_all_actions_are_traced_in_the_order_of_the_policy() -> None:
    world, tracer = loaded_world(), RecordingTracer()
    decide(world.cluster, world.policy, world.now, tracer.step)
    steps = [f"plugin {option.name}" for tier in world.policy.tiers for option in tier]
    steps += [f"action {name}" for name in world.policy.actions]
    traced = [step for step in tracer.traced if not step.startswith("job ")]
    assert traced == [f"{step} {what}" for step in steps for what in ("begins", "ends")]


def test_every_attempt_of_a_job_is_traced_within_its_action() -> None:
    world, tracer = loaded_world(), RecordingTracer()
    decide(world.cluster, world.policy, world.now, tracer.step)
    begins, ends = map(tracer.traced.index, ("action enqueue begins", "action enqueue ends"))
    assert tracer.traced[begins + 1 : ends] == ["job enqueue begins", "job enqueue ends"] * 2


def test_tracing_changes_no_decision() -> None:
    world, tracer = loaded_world(), RecordingTracer()
    decisions = decide(world.cluster, world.policy, world.now, tracer.step)
    assert decisions.binds
    assert decisions == decide(world.fresh(), world.policy, world.now)


def test_a_cycle_that_returns_the_last_decisions_again_traces_nothing() -> None:
    world, tracer = loaded_world(), RecordingTracer()
    decide(world.cluster, world.policy, world.now)
    decide(world.cluster, world.policy, world.now + 1, tracer.step)
    assert tracer.traced == []


def test_a_step_that_fails_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    world, tracer = loaded_world(), RecordingTracer()
    monkeypatch.setitem(ACTIONS, world.policy.actions[0], lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        decide(world.cluster, world.policy, world.now, tracer.step)
    assert tracer.traced[-1] == f"action {world.policy.actions[0]} ends"
