"""Draw random clusters for the properties of allocation, as tables (`tests.support.core.notation`).

A failing cluster can thus be kept as a table.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

TIERS = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [%s]
"""
POLICIES = {
    "plain": TIERS % "{name: predicates}, {name: nodeorder}",
    "default": TIERS % "{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}",
    "capacity": TIERS % "{name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}",
    "packed": TIERS % "{name: predicates}, {name: binpack}, {name: sla, arguments: {sla-waiting-time: 20m}}",
    "no gangs": 'actions: "allocate, backfill"\ntiers:\n- plugins: [{name: drf}, {name: predicates}]\n',
}

HOSTNAME = "kubernetes.io/hostname"


def near(key: str, job: str) -> dict[str, Any]:
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": key, "labelSelector": {"matchLabels": {"job": job}}}
        ]
    }


def constraints(job: str) -> tuple[dict[str, Any], ...]:
    """Constraints that a job's pods may have on their nodes."""
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"job": job}},
    }
    port = {"name": "c", "ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": "1"}}}
    return (
        {"nodeSelector": {"zone": "a"}},
        {"tolerations": [{"operator": "Exists"}]},
        {"affinity": {"podAntiAffinity": near(HOSTNAME, job)}},
        {"affinity": {"podAntiAffinity": near("zone", "job0")}},
        {"affinity": {"podAffinity": near("zone", job)}},
        {"topologySpreadConstraints": [spread]},
        {"topologySpreadConstraints": [{**spread, "whenUnsatisfiable": "ScheduleAnyway"}]},
        {"containers": [port]},
    )


@st.composite
def nodes(draw: st.DrawFn) -> list[dict[str, Any]]:
    return [
        {
            "name": f"n{i}",
            "has": f"{draw(st.integers(1, 6))} cpu, {draw(st.integers(2, 8))}Gi memory, {draw(st.integers(2, 9))} pods",
            "labels": {"zone": draw(st.sampled_from("ab"))},
            "taints": draw(st.sampled_from([[], [], [], ["kept:NoSchedule"], ["shy:PreferNoSchedule"]])),
            "unschedulable": draw(st.sampled_from([False, False, False, True])),
        }
        for i in range(draw(st.integers(1, 4)))
    ]


@st.composite
def jobs(draw: st.DrawFn, name: str, queues: list[str], *, constrained: bool = True) -> dict[str, Any]:
    count = draw(st.integers(1, 5))
    requests = draw(
        st.sampled_from(["1 cpu", "2 cpu", "1 cpu, 2Gi memory", "3 cpu, 1Gi memory", "3Gi memory", "nothing"])
    )
    row: dict[str, Any] = {
        "name": name,
        "queue": draw(st.sampled_from(queues)),
        "tasks": f"{count} x {requests}",
        "min": draw(st.integers(1, count)),
        "priority": draw(st.integers(0, 2)),
    }
    if constrained and draw(st.booleans()):
        row["pod"] = {"spec": draw(st.sampled_from(constraints(name)))}
    return row


@st.composite
def queues(draw: st.DrawFn) -> list[dict[str, Any]]:
    found = []
    for i in range(draw(st.integers(1, 3))):
        row: dict[str, Any] = {"name": f"q{i}", "weight": draw(st.integers(1, 3)), "priority": draw(st.integers(0, 1))}
        if draw(st.booleans()):
            row["capability"] = f"{draw(st.integers(0, 6))} cpu"
        if draw(st.booleans()):
            row["deserved"] = f"{draw(st.integers(0, 4))} cpu"
        found.append(row)
    return found


@st.composite
def tables(draw: st.DrawFn, *, constrained: bool = True, policies: tuple[str, ...] = tuple(POLICIES)) -> dict[str, Any]:
    """Draw a cluster with waiting jobs."""
    their_queues = draw(queues())
    names = [queue["name"] for queue in their_queues]
    return {
        "policy": POLICIES[draw(st.sampled_from(policies))],
        "nodes": draw(nodes()),
        "queues": their_queues,
        "jobs": [draw(jobs(f"job{i}", names, constrained=constrained)) for i in range(draw(st.integers(1, 5)))],
    }


def events() -> st.SearchStrategy[dict[str, Any]]:
    """Draw one event between two cycles, in the format of `events`."""
    job, node = st.integers(0, 4).map("job{}".format), st.integers(0, 3).map("n{}".format)
    return st.one_of(
        st.just({"restart": True}),
        st.builds(lambda name: {"finish": name}, job),
        st.builds(lambda name: {"delete": {"job": name}}, job),
        st.builds(lambda name: {"delete": {"pod": f"{name}-0"}}, job),
        st.builds(lambda name: {"recreate": name}, job),
        st.builds(lambda name: {"delete": {"node": name}}, node),
        st.builds(lambda name, on: {"change": {f"Node {name}": {"spec": {"unschedulable": on}}}}, node, st.booleans()),
        st.builds(lambda seconds: {"later": seconds}, st.sampled_from([1.0, 600.0, 1200.0])),
        st.builds(lambda name: {"leave": f"{name}-0"}, job),
        st.builds(lambda name, node: {"nominate": (f"{name}-1", node)}, job, node),
    )
