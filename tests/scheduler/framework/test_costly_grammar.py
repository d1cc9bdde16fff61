"""The price of any spec that the API permits is that of the work it makes, by the executed lines of the core."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.framework.work import Budget
from schedspec.scheduler.model.nodes import Mask, Rows
from schedspec.scheduler.placement.label_column import ITEMS_A_STEP, REQUIREMENT, VALUES_A_STEP, LabelColumn
from tests.scheduler.framework.specs import (
    API_LIMIT,
    HOSTNAME,
    LINES_A_PART,
    PREFERRED,
    REQUIRED,
    containers,
    merged,
    names,
    node_selector,
    ports,
    tolerations,
)
from tests.support.core.events import policy_of
from tests.support.core.lines import counted
from tests.support.core.world import World

NODES_OF_GRAMMAR = 1_000
LINES_OF_WALK = 12
"""Executed lines that a step of a walk stands for, at most: about a microsecond."""
STEPS_OF_A_PLAIN_POD = 20 * NODES_OF_GRAMMAR
"""More than a cycle of a pod without such fields costs that fits nowhere: the reason looks at each node."""
SMALL = Budget(cycle=60_000, job=240_000)
KEYS = st.sampled_from([HOSTNAME, "zone", "rank", "absent"])
OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])


@st.composite
def requirements(draw: st.DrawFn, key: st.SearchStrategy[str] = KEYS) -> Callable[[int], dict[str, Any]]:
    """Return a requirement by its number: its values are ones that exist, or ones that nothing has."""
    name, operator, values = draw(key), draw(OPERATORS), draw(st.sampled_from([1, 20, 300]))
    word = draw(st.sampled_from(["n", "x", "", "r"]))
    if operator in ("Exists", "DoesNotExist"):
        return lambda _: {"key": name, "operator": operator}
    count = 1 if operator in ("Gt", "Lt") else values
    return lambda i: {"key": name, "operator": operator, "values": [f"{word}{i * count + n}" for n in range(count)]}


@st.composite
def node_parts(draw: st.DrawFn) -> Callable[[int], dict[str, Any]]:
    by_name = draw(st.booleans())
    item = draw(requirements(st.just("metadata.name") if by_name else KEYS))
    expressions = "matchFields" if by_name else "matchExpressions"
    if draw(st.booleans()):
        return lambda n: {
            "affinity": {
                "nodeAffinity": {PREFERRED: [{"weight": 1, "preference": {expressions: [item(i)]}} for i in range(n)]}
            }
        }
    if draw(st.booleans()):
        terms = lambda n: [{expressions: [item(i)]} for i in range(n)]  # noqa: E731
    else:
        terms = lambda n: [{expressions: [item(i) for i in range(n)]}]  # noqa: E731
    return lambda n: {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms(n)}}}}


@st.composite
def pod_parts(draw: st.DrawFn) -> Callable[[int], dict[str, Any]]:
    item = draw(requirements(st.sampled_from(["app", "absent"])))
    topology = draw(st.sampled_from([HOSTNAME, "zone", "absent"]))
    where = draw(st.sampled_from(["own", "namespaces", "all", "selected"]))
    kind, strength = (
        draw(st.sampled_from(["podAffinity", "podAntiAffinity"])),
        draw(st.sampled_from([REQUIRED, PREFERRED])),
    )

    def term(i: int) -> dict[str, Any]:
        found: dict[str, Any] = {"topologyKey": topology, "labelSelector": {"matchExpressions": [item(i)]}}
        if where == "namespaces":
            found["namespaces"] = ["t", f"n{i}"]
        elif where != "own":
            found["namespaceSelector"] = {} if where == "all" else {"matchExpressions": [item(i)]}
        return found if strength == REQUIRED else {"weight": 1, "podAffinityTerm": found}

    return lambda n: {"affinity": {kind: {strength: [term(i) for i in range(n)]}}}


@st.composite
def spread_parts(draw: st.DrawFn) -> Callable[[int], dict[str, Any]]:
    item = draw(requirements(st.sampled_from(["app", "absent"])))
    topology, when = (
        draw(st.sampled_from([HOSTNAME, "zone", "absent"])),
        draw(st.sampled_from(["DoNotSchedule", "ScheduleAnyway"])),
    )
    return lambda n: {
        "topologySpreadConstraints": [
            {
                "maxSkew": i + 1,
                "topologyKey": topology,
                "whenUnsatisfiable": when,
                "labelSelector": {"matchExpressions": [item(i)]},
            }
            for i in range(n)
        ]
    }


@st.composite
def other_parts(draw: st.DrawFn) -> Callable[[int], dict[str, Any]]:
    """Return claims (bound, to one volume or to many), ports, tolerations, node selectors, gates, containers."""
    claim = draw(st.sampled_from(["bound", "bound{}", "absent{}"]))
    parts: list[Callable[[int], dict[str, Any]]] = [
        lambda n: {
            "volumes": [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": claim.format(i)}} for i in range(n)]
        },
        lambda n: {"schedulingGates": [{"name": f"gate{i}"} for i in range(n)]},
        tolerations, ports, node_selector, containers, names,
    ]  # fmt: skip
    return draw(st.sampled_from(parts))


PARTS = st.one_of(node_parts(), pod_parts(), spread_parts(), other_parts())
LENGTHS = st.sampled_from([1, 30, 300, 2_000, 12_000])


def spec_of(parts: list[tuple[Callable[[int], dict[str, Any]], int]]) -> dict[str, Any]:
    """Return the spec of these parts, each as long as it says, or as the API server still accepts."""
    spec: dict[str, Any] = {}
    for part, length in parts:
        size = length
        while len(json.dumps(wider := merged([spec, part(size)]))) > API_LIMIT:
            size //= 2
        spec = wider
    return spec


def parts_of(item: Any) -> int:
    """Return how many values a spec consists of."""
    if isinstance(item, dict):
        return sum(map(parts_of, item.values()))
    return sum(map(parts_of, item)) if isinstance(item, list) else 1


def world_of_grammar(specs: list[dict[str, Any]], claims: int = 2_000) -> World:
    """Return nodes with distinct names and ranks, a hundred zones, bound claims, and pods in several namespaces."""
    world = World(policy_of("plain"))
    nodes = [
        {"name": f"n{i}", "has": "32 cpu", "labels": {HOSTNAME: f"n{i}", "zone": f"{i % 100}", "rank": f"{i}"}}
        for i in range(NODES_OF_GRAMMAR)
    ]
    jobs = [
        {"name": f"bad{i}", "queue": "q", "tasks": "1 x 1 cpu", "phase": "Inqueue", "pod": {"spec": spec}}
        for i, spec in enumerate(specs)
    ]
    for name in ("bound", *(f"bound{i}" for i in range(claims))):
        affinity = {"matchExpressions": [{"key": HOSTNAME, "operator": "NotIn", "values": ["n1"]}]}
        reach = {"nodeAffinity": {"required": {"nodeSelectorTerms": [affinity]}}}
        meta, spec = {"name": name, "namespace": "t"}, {"volumeName": name, "accessModes": ["ReadWriteMany"]}
        world.put("PersistentVolumeClaim", {"metadata": meta, "spec": spec})
        csi = {"csi": {"driver": "d", "volumeHandle": name}}
        world.put("PersistentVolume", {"metadata": {"name": name}, "spec": {**csi, **reach}})
    running = [{"name": f"r{i}", "queue": "q", "tasks": f"1 x 1 cpu running on n{i}"} for i in range(20)]
    world.load({"nodes": nodes, "queues": [{"name": "q"}], "jobs": [*running, *jobs]})
    for number in range(20):
        world.change("Pod", f"t/r{number}-0", {"metadata": {"labels": {"app": f"n{number}"}}})
    return world


def walked(world: World) -> tuple[Decisions, int]:
    """Decide once; return the decisions, and how many steps the elements that requirements were compared with fill."""
    steps = 0
    having, present, of_numbers = LabelColumn.having, LabelColumn._present, LabelColumn._with

    def count_values(column: LabelColumn, values: Iterable[str]) -> Mask:
        nonlocal steps
        steps += len(values := tuple(values)) // VALUES_A_STEP
        return having(column, values)

    def count_present(column: LabelColumn) -> Mask:
        nonlocal steps
        steps += len(mask := present(column)) // ITEMS_A_STEP
        return mask

    def count_numbers(column: LabelColumn, numbers: list[int] | Rows) -> Mask:
        nonlocal steps
        steps += len(mask := of_numbers(column, numbers)) // ITEMS_A_STEP
        return mask

    with pytest.MonkeyPatch.context() as patch:
        for name, function in (("having", count_values), ("_present", count_present), ("_with", count_numbers)):
            patch.setattr(LabelColumn, name, function)
        return world.core.decide(world.policy, world.now, budget=SMALL), steps


def numbered(operator: str, number: int) -> dict[str, Any]:
    """Return a requirement about the nodes' label `rank`; those with values differ by their number."""
    if operator in ("Exists", "DoesNotExist"):
        return {"key": "rank", "operator": operator}
    count = 40 if operator in ("In", "NotIn") else 1
    return {"key": "rank", "operator": operator, "values": [str(number * count + i) for i in range(count)]}


WALKS: dict[str, Callable[[list[dict[str, Any]]], dict[str, Any]]] = {
    "terms": lambda items: {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [item]} for item in items]}},
    "one term": lambda items: {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": items}]}},
    "preferred": lambda items: {
        PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [item]}} for item in items]
    },
}


@pytest.mark.parametrize("size", [1, 40, 1_000])
@pytest.mark.parametrize("operator", ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
@pytest.mark.parametrize("field", WALKS)
def test_a_walk_costs_the_elements_that_it_visits_to_four_times_them(field: str, operator: str, size: int) -> None:
    spec = {"affinity": {"nodeAffinity": WALKS[field]([numbered(operator, i) for i in range(size)])}}
    decisions, visited = walked(world_of_grammar([spec], claims=0))
    assert 0 < visited <= decisions.steps
    assert decisions.steps <= STEPS_OF_A_PLAIN_POD + 4 * (visited + REQUIREMENT * size)


@given(st.lists(st.lists(st.tuples(PARTS, LENGTHS), min_size=1, max_size=3), min_size=1, max_size=3))
@settings(max_examples=20)
def test_the_price_of_any_spec_is_that_of_the_work_it_makes(
    pods: list[list[tuple[Callable[[int], dict[str, Any]], int]]],
) -> None:
    """No walk is longer than its steps, nor do steps stand for work that is not done (at most four a line)."""
    specs = [spec_of(parts) for parts in pods]
    world, parts = world_of_grammar(specs), sum(map(parts_of, specs))
    fixed = 70 * NODES_OF_GRAMMAR * (1 + len(specs))
    (decisions, visited), lines = counted(lambda: walked(world))
    assert visited <= decisions.steps
    assert lines <= fixed + LINES_OF_WALK * decisions.steps + LINES_A_PART * parts
    assert decisions.steps <= 4 * lines
    assert decisions.steps <= SMALL.cycle + SMALL.job
