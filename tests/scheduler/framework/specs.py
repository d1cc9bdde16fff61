"""Specs of pods whose fields grow with a number, and a cluster with jobs of such pods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from schedspec.scheduler.framework.work import Budget
from schedspec.scheduler.inputs import Decided, apply_input
from tests.support.core.events import policy_of
from tests.support.core.lines import counted
from tests.support.core.world import World

HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NODES = 100
LINES_A_STEP = 40
LINES_A_PART = 60
"""Lines for each part of a spec, to read or compare the part a few times."""
API_LIMIT = 1_500_000
"""Maximum size in bytes of an object that the API server accepts."""
BUDGET = Budget(cycle=300_000, job=1_200_000)


def expressions(n: int, operator: str = "NotIn") -> list[dict[str, Any]]:
    return [{"key": f"k{i}", "operator": operator, "values": [f"v{i}"]} for i in range(n)]


def values(n: int) -> list[dict[str, Any]]:
    return [{"key": HOSTNAME, "operator": "In", "values": [f"x{i}" for i in range(n)]}]


def required_terms(n: int) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": f"k{i}", "operator": "Exists"}]} for i in range(n)]
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}


def one_long_term(n: int) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": expressions(n)}]}}}}


def many_values(n: int) -> dict[str, Any]:
    terms = [{"matchExpressions": values(n)}, {"matchExpressions": [{"key": HOSTNAME, "operator": "Exists"}]}]
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}


def preferred_terms(n: int) -> dict[str, Any]:
    preferred = [{"weight": 1, "preference": {"matchExpressions": [item]}} for item in expressions(n)]
    return {"affinity": {"nodeAffinity": {PREFERRED: preferred}}}


def tolerations(n: int) -> dict[str, Any]:
    return {"tolerations": [{"key": f"k{i}", "operator": "Exists"} for i in range(n)]}


def ports(n: int, first: int = 1) -> dict[str, Any]:
    ports = [{"containerPort": i, "hostPort": i, "hostIP": f"10.0.0.{i % 200}"} for i in range(first, first + n)]
    requests = {"requests": {"cpu": "1"}}
    return {"containers": [{"name": "main", "image": "worker", "resources": requests, "ports": ports}]}


def spread(n: int, when: str = "DoNotSchedule") -> dict[str, Any]:
    return {
        "topologySpreadConstraints": [
            {"maxSkew": 5000, "topologyKey": f"{HOSTNAME}{i or ''}", "whenUnsatisfiable": when, "labelSelector": {}}
            for i in range(n)
        ]
    }


def soft_spread(n: int) -> dict[str, Any]:
    return spread(n, "ScheduleAnyway")


def pod_terms(kind: str, n: int) -> dict[str, Any]:
    terms = [
        {
            "topologyKey": HOSTNAME,
            "namespaceSelector": {},
            "labelSelector": {"matchExpressions": [{"key": f"k{i}", "operator": "Exists"}]},
        }
        for i in range(n)
    ]
    return {"affinity": {kind: {REQUIRED: terms}}}


def anti_affinity(n: int) -> dict[str, Any]:
    return pod_terms("podAntiAffinity", n)


def pod_affinity(n: int) -> dict[str, Any]:
    return pod_terms("podAffinity", n)


def namespaces(n: int) -> dict[str, Any]:
    term = {"topologyKey": HOSTNAME, "namespaces": [f"n{i}" for i in range(n)], "labelSelector": {}}
    return {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}


def namespace_expressions(n: int) -> dict[str, Any]:
    term = {"topologyKey": HOSTNAME, "namespaceSelector": {"matchExpressions": expressions(n)}, "labelSelector": {}}
    return {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}


def pod_values(n: int) -> dict[str, Any]:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchExpressions": values(n)}}
    return {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}


def node_selector(n: int) -> dict[str, Any]:
    return {"nodeSelector": {f"k{i}": "v" for i in range(n)}}


def containers(n: int) -> dict[str, Any]:
    return {"containers": [{"name": f"c{i}", "image": f"image{i}"} for i in range(n)]}


def claims(n: int) -> dict[str, Any]:
    return {"volumes": [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"c{i}"}} for i in range(n)]}


def names(n: int) -> dict[str, Any]:
    requests = {"requests": {"cpu": "1", **{f"example.com/r{i}": "1" for i in range(n)}}}
    return {"containers": [{"name": "main", "image": "worker", "resources": requests}]}


FIELDS: list[Callable[[int], dict[str, Any]]] = [
    required_terms, one_long_term, many_values, preferred_terms, tolerations, ports, spread, soft_spread,
    anti_affinity, pod_affinity, namespaces, namespace_expressions, pod_values, node_selector, containers,
    claims, names,
]  # fmt: skip


def world_of(specs: list[dict[str, Any]], tasks: str = "1 x 1 cpu") -> World:
    world = World(policy_of("plain"))
    nodes = [{"name": f"n{i}", "has": "32 cpu", "labels": {HOSTNAME: f"n{i}"}} for i in range(NODES)]
    jobs = [
        {"name": f"bad{i}", "queue": "q", "tasks": tasks, "phase": "Inqueue", "pod": {"spec": spec}}
        for i, spec in enumerate(specs)
    ]
    world.load({"nodes": nodes, "queues": [{"name": "q"}], "jobs": jobs})
    return world


def merged(specs: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge several fields into one spec."""
    spec: dict[str, Any] = {}
    for fields in specs:
        affinity = {**spec.get("affinity", {}), **fields.get("affinity", {})}
        spec |= fields
        if affinity:
            spec["affinity"] = affinity
    return spec


def base() -> int:
    """Return the lines of a cycle with three pods without special fields."""
    world = world_of([{}, {}, {}])
    return counted(lambda: world.core.decide(world.policy, world.now, budget=BUDGET))[1]


def check(specs: list[dict[str, Any]], parts: int) -> None:
    world, usual = world_of(specs), base()
    for _ in range(3):
        decisions, lines = counted(lambda: world.core.decide(world.policy, world.now, budget=BUDGET))
        assert lines <= usual + LINES_A_STEP * decisions.steps + LINES_A_PART * parts
        assert decisions.steps <= BUDGET.cycle + BUDGET.job * len(world.policy.actions)
        apply_input(world.core, Decided(0, world.now, decisions, BUDGET))
        world.carry_out(decisions)
        world.now += 1.0
    world.load({"jobs": [{"name": "good", "queue": "q", "tasks": "1 x 1 cpu", "phase": "Inqueue"}]})
    decisions = world.core.decide(world.policy, world.now, budget=BUDGET)
    assert "t/good" in {bind.job for bind in decisions.binds}
