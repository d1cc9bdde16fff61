"""Check the invariants of a cycle, for tables and random clusters."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np

from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.model import resources
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.model.task import HOLDING, Task, TaskStatus
from schedspec.scheduler.policy.model import Policy
from schedspec.scheduler.reasons import GangMinimum, NoVictims, QueueExcess


def snapshot(cluster: Cluster) -> dict[str, Any]:
    """Return all state that a cycle changes, as plain comparable data."""
    cluster.nodes.refresh()
    nodes = cluster.nodes
    return {
        "tasks": {key: (task.status, task.node, task.nominated) for key, task in sorted(cluster.tasks.items())},
        "jobs": {
            key: (
                dict(job.allocated),
                {s: sorted(t) for s, t in sorted(job.by_status.items()) if t},
                (job.ready, job.undemanding, [task.key for task in job.holding]),
            )
            for key, job in sorted(cluster.jobs.items())
        },
        "on nodes": {name: sorted(info.tasks) for name, info in sorted(nodes.by_name.items())},
        "with_pod_terms": {shape: sorted(tasks) for shape, tasks in nodes.with_pod_terms.items()},
        "amounts": [
            {name: array[:, column].tolist() for name, column in sorted(nodes.dimensions.items())}
            for array in (nodes.idle, nodes.used, nodes.releasing, nodes.pipelined)
        ],
    }


def check_cycle(cluster: Cluster, policy: Policy, decisions: Decisions) -> None:
    """Check the decisions of one cycle against the state before the cycle."""
    no_node_is_overcommitted(cluster, decisions)
    gangs_bind_whole(cluster, policy, decisions)
    evictions_have_their_placement(decisions)
    no_queue_is_lifted_above_its_capability(cluster, policy, decisions)
    used = used_guarantees(cluster, policy, decisions)
    assert not used, f"starts use capacity that is guaranteed to other queues: {used}"
    a_bound_bounds_an_excess(decisions)
    a_gang_protects_at_most_its_minimum(decisions)
    assert len({bind.task for bind in decisions.binds}) == len(decisions.binds), "a pod is bound twice"
    assert len({evict.task for evict in decisions.evictions}) == len(decisions.evictions), "a pod is evicted twice"


def no_node_is_overcommitted(cluster: Cluster, decisions: Decisions) -> None:
    idle = {info.name: cluster.nodes.idle[info.row].copy() for info in cluster.nodes.rows}
    for bind in decisions.binds:
        idle[bind.node] -= cluster.nodes.vector(cluster.tasks[bind.task].request)
    for name, left in idle.items():
        touched = any(bind.node == name for bind in decisions.binds)
        assert not touched or bool(np.all(left >= 0)), f"node {name} is overcommitted: {left}"


def gangs_bind_whole(cluster: Cluster, policy: Policy, decisions: Decisions) -> None:
    gang = policy.plugin("gang")
    if gang is None or not gang.enabled("enableJobReady"):
        return
    bound = Counter(bind.job for bind in decisions.binds)
    for key, count in bound.items():
        job = cluster.jobs[key]
        free = sum(t.best_effort and not t.gated for t in job.tasks.values() if t.status is TaskStatus.PENDING)
        ready = job.count(HOLDING | TaskStatus.SUCCEEDED) + count
        assert ready + free >= job.min_available, f"{key}: {ready} of {job.min_available} run"


def evictions_have_their_placement(decisions: Decisions) -> None:
    placed = {*decisions.pipelined, *(bind.task for bind in decisions.binds)}
    for evict in decisions.evictions:
        assert evict.reason.preemptor_task in placed, (
            f"{evict.task} is evicted for {evict.reason.preemptor_task}, which gets no node"
        )


def a_bound_bounds_an_excess(decisions: Decisions) -> None:
    for key, refusal in decisions.refusals.items():
        for why in refusal.items:
            assert not isinstance(why, QueueExcess) or why.allocated > why.amount, f"{key} waits for no excess: {why}"


def a_gang_protects_at_most_its_minimum(decisions: Decisions) -> None:
    reasons = [
        why.spared for refusal in decisions.refusals.values() for why in refusal.items if isinstance(why, NoVictims)
    ]
    for spared in (*reasons, *(evict.reason.spared for evict in decisions.evictions)):
        for protection in spared:
            if isinstance(protection.why, GangMinimum):
                assert protection.count <= protection.why.minimum, f"{protection.count} pods: {protection.why}"


def no_queue_is_lifted_above_its_capability(cluster: Cluster, policy: Policy, decisions: Decisions) -> None:
    """Check that binds lift no queue and no ancestor above its capability, in any dimension that they add to."""
    plugin = policy.plugin("capacity") or policy.plugin("proportion")
    if plugin is None or not plugin.enabled("enabledAllocatable"):
        return
    held: dict[str, resources.Resource] = {}
    added: dict[str, resources.Resource] = {}
    evicted = {evict.task for evict in decisions.evictions}
    bound = {bind.task for bind in decisions.binds}
    for task in cluster.tasks.values():
        job = cluster.jobs.get(task.job)
        if job is None or job.group is None:
            continue
        for name in _with_ancestors(cluster, job.queue, tree=plugin.enabled("enableHierarchy")):
            if (task.status & HOLDING and task.key not in evicted) or task.key in bound:
                resources.add_to(held.setdefault(name, {}), task.request)
            if task.key in bound and not task.best_effort:
                resources.add_to(added.setdefault(name, {}), task.request)
    for name, more in added.items():
        for dimension, capability in cluster.queues[name].capability.items():
            limit = max(capability, cluster.queues[name].guarantee.get(dimension, 0))  # a guarantee holds in any case
            above = more.get(dimension, 0) > 0 and held[name][dimension] > limit
            assert not above or capability <= 0, f"queue {name} holds {held[name][dimension]} {dimension} of {limit}"


def used_guarantees(cluster: Cluster, policy: Policy, decisions: Decisions) -> list[str]:
    """Return where the cycle leaves less free than what is guaranteed and unused, and less of it than before.

    A pool is the cluster, or a queue with children and a capability. Capacity that is kept for a nominated task is not
    free, and capacity that is being freed is.
    """
    plugin = policy.plugin("capacity") or policy.plugin("proportion")
    if plugin is None or not plugin.enabled("enabledAllocatable"):
        return []
    is_tree = plugin.name == "capacity" and plugin.enabled("enableHierarchy")
    lines = {name: _with_ancestors(cluster, name, tree=is_tree) for name in cluster.queues}
    before, after = _held_by_queues(cluster, decisions, lines)
    idle = cluster.nodes.sum_of(cluster.nodes.future_idle(cluster.nodes.ready))
    inside: dict[str, list[str]] = {}
    for name, line in lines.items():
        inside.setdefault(line[1] if len(line) > 1 else "", []).append(name)

    def unused(name: str, dimension: str, held: dict[str, resources.Resource]) -> int:
        own = cluster.queues[name].guarantee.get(dimension, 0) - held[name].get(dimension, 0)
        return max(own, sum(unused(child, dimension, held) for child in inside.get(name, ())), 0)

    found = []
    for pool, dimension in itertools.product(inside, {n for queue in cluster.queues.values() for n in queue.guarantee}):
        capability = cluster.queues[pool].capability if pool else {}
        if pool and capability.get(dimension, 0) <= 0:
            continue
        slack = []
        for held in (before, after):
            taken = sum(held[name].get(dimension, 0) for name in inside[pool])
            free = capability[dimension] if pool else idle.get(dimension, 0)
            slack.append(free - taken - sum(unused(name, dimension, held) for name in inside[pool]))
        # idle capacity does not contain what runs already
        running = 0 if pool else sum(task.request.get(dimension, 0) for task in _running(cluster))
        if slack[1] + running < min(slack[0] + running, 0):
            found.append(f"{dimension} in {pool or 'the cluster'}")
    return found


def _running(cluster: Cluster) -> list[Task]:
    """Return the tasks of queues that hold capacity."""
    jobs, queues = cluster.jobs, cluster.queues
    return [
        task
        for task in cluster.tasks.values()
        if task.status & HOLDING and task.job in jobs and jobs[task.job].queue in queues
    ]


def _held_by_queues(
    cluster: Cluster, decisions: Decisions, lines: dict[str, list[str]]
) -> tuple[dict[str, resources.Resource], dict[str, resources.Resource]]:
    """Return what each queue holds, and is kept for its nominated tasks, before and after the decisions."""
    before: dict[str, resources.Resource] = {name: {} for name in lines}
    after: dict[str, resources.Resource] = {name: {} for name in lines}
    placed = {*decisions.pipelined, *(bind.task for bind in decisions.binds)}
    evicted = {evict.task for evict in decisions.evictions}
    for task in cluster.tasks.values():
        job = cluster.jobs.get(task.job)
        for name in lines.get(job.queue, ()) if job is not None else ():
            if task.status & HOLDING or (task.nominated and task.status is TaskStatus.PENDING):
                resources.add_to(before[name], task.request)
            if task.key in placed or (task.status & HOLDING and task.key not in evicted):
                resources.add_to(after[name], task.request)
    return before, after


def _with_ancestors(cluster: Cluster, queue: str, *, tree: bool) -> list[str]:
    found = [queue]
    while tree and (parent := cluster.queues[found[-1]].parent) in cluster.queues and parent not in found:
        found.append(parent)
    return [name for name in found if name in cluster.queues]
