"""Draw random policies, large clusters, and changes between cycles: nodes that join and leave, quotas, time, jobs.

Everything is drawn from one `random.Random`, as in `random_tables`.
"""

from __future__ import annotations

import random
from typing import Any

from tests.support.core.random_tables import Draw, beside, random_shape, random_table, text

Table = dict[str, Any]
Event = dict[str, Any]
LARGE = 50
"""Nodes of a large cluster."""
EVERYWHERE = ("predicates", "nodeorder")
OPTIONAL = ("conformance", "drf", "overcommit", "binpack", "pdb", "sla")
SWITCHES = {
    "gang": ("enableJobStarving", "enablePreemptable", "enableReclaimable", "enableJobPipelined"),
    "priority": ("enableJobStarving", "enableJobOrder"),
    "drf": ("enablePreemptable", "enableJobOrder"),
}
TREE = "capacity, enableHierarchy: true"


def random_policy(rng: random.Random, *, tree: bool) -> str:
    """Return a policy with actions in any order and plugins in any tier."""
    draw = Draw(rng)
    evicting = ["reclaim", "preempt"][: draw.number(0, 2)] if draw.often(70) else ["preempt"]
    actions = [*evicting, "allocate", *(["backfill"] if draw.often(80) else [])]
    rng.shuffle(actions)
    if draw.often(60):
        actions.insert(0, "enqueue")
    names = [*EVERYWHERE, *(name for name in OPTIONAL if draw.often(40))]
    names += [name for name in ("priority", "gang") if draw.often(85)]
    names += [TREE if tree else draw.one_of(("capacity", "proportion"))]
    rng.shuffle(names)
    tiers: list[list[str]] = [[] for _ in range(draw.number(1, 3))]
    for name in names:
        draw.one_of(tiers).append(_plugin(draw, name))
    lines = [f"- plugins: [{', '.join(tier)}]" for tier in tiers if tier]
    return "\n".join([f'actions: "{", ".join(actions)}"', "tiers:", *lines, ""])


def _plugin(draw: Draw, name: str) -> str:
    off = [f"{switch}: false" for switch in SWITCHES.get(name, ()) if draw.often(15)]
    if name == "sla":
        off.append(f"arguments: {{sla-waiting-time: {draw.one_of(('1s', '30s', '20m'))}}}")
    return "{" + ", ".join([f"name: {name}", *off]) + "}"


def changing_table(rng: random.Random) -> Table:
    """Return a small cluster under a random policy."""
    table = random_table(rng)
    if "capacity-card" in table["policy"]:  # its queues and pods make sense under that plugin only
        return table
    tree = any("parent" in queue for queue in table["queues"])
    return {**table, "policy": random_policy(rng, tree=tree)}


def random_events(rng: random.Random, table: Table) -> list[Event]:
    """Return up to two events before a cycle, in the format of `events`. Jobs that are added join those of `table`."""
    draw = Draw(rng)
    return [_event(draw, rng, table) for _ in range(draw.number(0, 2))]


def _event(draw: Draw, rng: random.Random, table: Table) -> Event:
    node, job = draw.one_of(table["nodes"]), draw.one_of(table["jobs"])["name"]
    kind = draw.number(1, 11)
    if kind == 1:
        return {"delete": {"node": node["name"]}}
    if kind == 2:
        return {"add": {"nodes": [{**node, "name": f"{node['name']}-{rng.randint(0, 10**6)}"}]}}
    if kind == 3:
        return {"change": {f"Node {node['name']}": {"spec": {"unschedulable": draw.often(50)}}}}
    if kind in (4, 5):
        queue, field = draw.one_of(table["queues"])["name"], draw.one_of(("capability", "deserved"))
        amount = {"nvidia.com/gpu": str(draw.number(1, 12)), "cpu": str(draw.number(1, 12))}
        return {"change": {f"Queue {queue}": {"spec": {field: amount}}}}
    if kind == 6:
        return {"later": draw.one_of((1.0, 31.0, 70.0, 1300.0))}
    if kind == 7:
        return draw.one_of(({"finish": job}, {"recreate": job}, {"delete": {"job": job}}))
    if kind == 8:
        return {"leave": f"{job}-{draw.number(0, 2)}"}
    if kind > 9:
        table["jobs"].append(_late_job(draw, table))
        return {"add": {"jobs": table["jobs"][-1:]}}
    return {"delete": {"pod": f"{job}-{draw.number(0, 2)}"}}


def _late_job(draw: Draw, table: Table) -> Table:
    """Draw a job like one of the table. Half have no pods yet, and some request more than any node has."""
    if draw.often(50):
        return podless_job(draw, table)
    row = _job_like(draw, table)
    return with_term(draw, row, table) if draw.often(50) else row


def podless_job(draw: Draw, table: Table) -> Table:
    """Draw a job like one of the table, without pods."""
    row = _job_like(draw, table)
    return {**row, "tasks": [], "requests": text({name: amount * row["min"] for name, amount in row["shape"].items()})}


def with_term(draw: Draw, row: Table, table: Table) -> Table:
    """Return a job whose pods want to be beside the pods of a job, or apart from them."""
    kind, key = draw.one_of(("podAffinity", "podAntiAffinity")), draw.one_of(("zone", "kubernetes.io/hostname"))
    spec = {"affinity": {kind: beside(key, draw.one_of(table["jobs"])["name"])}}
    return {**row, "pod": {**row.get("pod", {}), "spec": spec}}


def _job_like(draw: Draw, table: Table) -> Table:
    shape, count = random_shape(draw, cards="capacity-card" in table["policy"]), draw.number(1, 3)
    if draw.often(35):
        shape[draw.one_of(sorted(shape))] = 12  # more than any node has
    row = {**draw.one_of(table["jobs"]), "name": f"late{len(table['jobs'])}", "min": draw.number(1, count)}
    row |= {"tasks": [f"{count} x {text(shape)}"], "phase": draw.one_of(("Inqueue", "Pending", "Pending"))}
    row.pop("roles", None)
    return {**row, "shape": shape}


def large_table(rng: random.Random) -> Table:
    """Return a cluster of 50 nodes that is full of elastic jobs and gangs, with several jobs that wait."""
    draw = Draw(rng)
    queues: list[Table] = [
        {"name": f"q{i}", "deserved": f"{draw.number(20, 150)} cpu", "priority": draw.number(0, 1)}
        for i in range(draw.number(2, 4))
    ]
    names = [queue["name"] for queue in queues]
    sizes = {f"n{i}": draw.one_of((2, 4, 4, 8)) for i in range(LARGE)}
    idle, jobs = dict(sizes), list[Table]()
    while any(idle.values()):
        jobs.append(_large_job(draw, f"old{len(jobs)}", names, idle))
    for i in range(draw.number(1, 5)):
        count, size = draw.number(1, 6), draw.one_of((1, 2, 4))
        tasks = [f"{count} x {size} cpu", *([f"1 x {draw.one_of((1, 2, 4, 8))} cpu"] if draw.often(50) else [])]
        row = {"name": f"new{i}", "queue": draw.one_of(names), "priority": draw.number(0, 9), "tasks": tasks}
        jobs.append({**row, "phase": "Inqueue"})
    actions = draw.one_of(("reclaim", "preempt", "reclaim, preempt"))
    tiers = draw.one_of(("{name: gang}, {name: conformance}", "{name: conformance}"))
    policy = (
        f'actions: "allocate, {actions}, backfill"\ntiers:\n- plugins: [{{name: priority}}, {tiers}]\n'
        "- plugins: [{name: gang}, {name: predicates}, {name: capacity}, {name: nodeorder}]\n"
    )
    if "gang" in tiers:
        policy = policy.replace("[{name: gang}, {name: predicates}", "[{name: predicates}")
    nodes = [{"name": name, "has": f"{size} cpu"} for name, size in sizes.items()]
    return {"policy": policy, "nodes": nodes, "queues": queues, "jobs": jobs}


def _large_job(draw: Draw, name: str, queues: list[str], idle: dict[str, int]) -> Table:
    """Draw a job with pods of different sizes, which run where they fit."""
    tasks = []
    for _ in range(draw.number(1, 8)):
        free = [node for node, left in idle.items() if left]
        if not free:
            break
        node = draw.one_of(free)
        size = min(draw.one_of((1, 2, 2, 4)), idle[node])
        idle[node] -= size
        tasks.append(f"1 x {size} cpu running on {node}")
    least = draw.one_of((0, 1, 1, len(tasks), draw.number(1, len(tasks))))
    return {"name": name, "queue": draw.one_of(queues), "priority": draw.number(0, 5), "min": least, "tasks": tasks}
