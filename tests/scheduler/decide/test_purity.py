"""A cycle changes none of its input: neither the cluster nor the backlog nor the policy."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import schedspec.scheduler.model
from schedspec.scheduler.core import Core
from schedspec.scheduler.decide import decide
from schedspec.scheduler.framework.work import UNLIMITED, Budget
from tests.support.core import random_clusters, random_tables
from tests.support.core.events import happen, policy_of
from tests.support.core.world import World

CACHES = {
    *("_holding", "_identity", "_kind", "_kind_of_any_priority", "_pending_change", "_pending_request"),
    *("_port_numbers", "_total", "_vectors", "_waiting_shapes", "kept", "lasting", "touched"),
}
"""Attributes whose values follow from other attributes: what a cycle computes first, it keeps there."""
TABLES = st.one_of(random_clusters.tables(), random_tables.tables())
BUDGETS = st.sampled_from((UNLIMITED, Budget(2_000), Budget(2_000, 1_000)))
MODEL = Path(schedspec.scheduler.model.__file__).parent


def contents(value: Any, path: str, seen: dict[int, str]) -> Iterator[tuple[str, Any]]:
    """Yield every value within an object, with its path; an object within several others is yielded once."""
    if isinstance(value, np.ndarray):
        yield path, (value.shape, value.tobytes())
        return
    if isinstance(value, str | bytes | int | float | type(None)):
        yield path, value
        return
    if id(value) in seen:
        yield path, seen[id(value)]
        return
    seen[id(value)] = path
    if isinstance(value, dict):
        items = {key: inner for key, inner in value.items() if inner != {}}  # such as the jobs of no status
        yield path, frozenset(items)
        for key, inner in sorted(items.items(), key=lambda item: repr(item[0])):
            yield from contents(inner, f"{path}[{key!r}]", seen)
    elif isinstance(value, set | frozenset):
        yield path, frozenset(value)
    elif isinstance(value, list | tuple):
        yield path, len(value)
        for number, inner in enumerate(value):
            yield from contents(inner, f"{path}[{number}]", seen)
    else:
        slots = (name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ()))
        for name in dict.fromkeys((*getattr(value, "__dict__", ()), *slots)):
            if name not in CACHES:
                yield from contents(getattr(value, name, None), f"{path}.{name}", seen)


def image(world: World) -> dict[str, Any]:
    world.cluster.nodes.refresh()
    world.cluster.sums()
    values = {"cluster": world.cluster, "backlog": world.core.backlog, "policy": world.policy}
    return dict(contents(values, "", {}))


@given(TABLES, st.lists(st.lists(random_clusters.events(), max_size=2), max_size=3), BUDGETS)
def test_a_cycle_changes_nothing_of_its_input(
    table: dict[str, Any], story: list[list[dict[str, Any]]], budget: Budget
) -> None:
    world = World(policy_of(table["policy"]))
    world.load(table)
    for events in ([], *story):
        for event in events:
            happen(world, event)
        before = image(world)
        decide(world.cluster, world.policy, world.now, budget=budget, backlog=world.core.backlog)
        after = image(world)
        changed = {path for path in before.keys() | after.keys() if before.get(path, world) != after.get(path, world)}
        assert changed == set()
        world.carry_out(world.cycle())


def test_the_core_repeats_the_decisions_of_the_pure_function_until_something_changes() -> None:
    table = {"policy": random_clusters.POLICIES["packed"], "nodes": [{"name": "n0", "has": "1 cpu"}]}
    world = World(policy_of(table["policy"]))
    world.load({**table, "queues": [{"name": "q0"}], "jobs": [{"name": "job0", "queue": "q0", "tasks": "2 x 1 cpu"}]})
    core = Core(world.fresh())
    first = core.decide(world.policy, world.now)
    assert first == decide(world.fresh(), world.policy, world.now)
    assert core.decide(world.policy, world.now) is first
    core.forget_last_cycle()
    assert core.decide(world.policy, world.now) is not first


@pytest.mark.parametrize("path", sorted(MODEL.glob("*.py")), ids=lambda path: path.stem)
def test_no_attribute_of_the_state_has_the_type_any(path: Path) -> None:
    untyped = [
        f"{path.name}:{node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Attribute)
        and any(isinstance(part, ast.Name) and part.id == "Any" for part in ast.walk(node.annotation))
    ]
    assert untyped == []
