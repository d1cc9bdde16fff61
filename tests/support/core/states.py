"""Make states for tests from tables of the compact notation, and decide on them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from schedspec.lab.simulate.present import ENDLESS, begin
from schedspec.scheduler.model.state_kinds import STATE_KINDS
from schedspec.scheduler.policy.loader import load_policy
from schedspec.scheduler.recording.events import PolicyLoaded
from schedspec.virtual import Simulation
from schedspec.virtual.outcomes import Cycle
from schedspec.virtual.state import State
from tests.support.core.notation import EPOCH, Notation

NOW = EPOCH + 1000.0
POLICIES = yaml.safe_load(Path(__file__).with_name("policies.yaml").read_text("utf-8"))
"""Policies that tables name."""


def state_of(table: Mapping[str, Any]) -> State:
    """Return the state that a table describes, a thousand seconds after its first object."""
    state = State("table", NOW)
    for kind, item in Notation().objects(table):
        state.put(kind, msgspec.convert(item, STATE_KINDS[kind].struct))
    state.policy = PolicyLoaded("table", POLICIES.get(table["policy"], table["policy"]))
    return state


def decisions_on(state: State, cycles: int = 40) -> list[Any]:
    """Return the decisions on a state, cycle by cycle, until it settles."""
    assert state.policy is not None
    found: list[Any] = []
    simulation = Simulation(
        load_policy(state.policy.text, "table"),
        emit=lambda it: found.append(it.decisions) if isinstance(it, Cycle) else None,
        start=state.taken,
    )
    begin(simulation, state, ENDLESS)
    for _ in simulation.instants(until=state.taken + 3600):
        if len(found) >= cycles:
            break
    return found
