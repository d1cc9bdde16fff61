"""Map refusal reasons to the cluster changes that could resolve them (queueing hints).

A reason maps to every change that could resolve it; an unknown reason maps to any change. Changes of the job itself, of
nodes, queues, priority classes and namespaces concern every waiting job and need no mapping.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .. import reasons as r
from ..model import changes as b
from ..model.job import Job
from ..model.nodes import Nodes

if TYPE_CHECKING:
    from ..placement.engine import Placement

ROOM = "room"
"""Capacity on a node, matched by its amount."""
_QUOTA = (b.FREED, b.GROUPS, b.CLAIMS)
_NEIGHBOURS = (b.FREED, b.PLACED, b.CLAIMS)
ANY = (*b.TOPICS, ROOM)

_BY_RULE: dict[str, tuple[str, ...]] = {
    "resource": (ROOM, b.CLAIMS),
    "pods": (ROOM, b.CLAIMS),
    "missing": (),
    "taint": (),
    "selector": (),
    "affinity": (),
    "unschedulable": (),
    "not-ready": (),
    "volume": (b.VOLUMES,),
    "pod-affinity": _NEIGHBOURS,
    "pod-anti-affinity": _NEIGHBOURS,
    "spread": _NEIGHBOURS,
    "port": _NEIGHBOURS,
    "attachments": (*_NEIGHBOURS, b.VOLUMES),
    "no-group": (),
    "other-group": (),
    "group-limit": _QUOTA,
    "card": (),
    "card-quota": _QUOTA,
    "shared-card": _NEIGHBOURS,
}
"""For each rule of `NoNode`: the changes that could make an excluded node suitable."""
_ABOUT_ROOM = ("resource", "pods")
"""The rules of `NoNode` about free capacity. A node that breaks one may also be too small as a whole."""

_BY_WHY: dict[type, tuple[str, ...]] = {
    r.QueueLimit: _QUOTA,
    r.GuaranteeKept: _QUOTA,
    r.ClusterLimit: _QUOTA,
    r.NamespaceQuota: (*_QUOTA, b.QUOTAS),
    r.TopologyUnmet: (),
    r.Unplaceable: (),
    r.NoDomain: (ROOM, b.CLAIMS),
    r.OutsideDomain: (),
    r.NotEntitled: _QUOTA,
    r.QueueClosed: _QUOTA,
    r.QueueBroken: _QUOTA,
    r.GangShort: (ROOM, b.CLAIMS),
    r.PodsMissing: (),
    r.Gated: (),
    r.NotBackfilled: (),
    r.Unsupported: (b.VOLUMES,),
    r.WrongCard: (),
    r.WrongService: (),
    r.NotStarving: (),
    r.QueueOverused: (),
    r.NeverPreempts: (),
    r.TooCostly: (),
}


def hints_of(job: Job, whys: Iterable[r.UnschedulableReason]) -> set[str]:
    """Return the topics whose changes could help a waiting job."""
    topics: set[str] = set()
    for why in whys:
        if not isinstance(why, r.NoNode):
            topics.update(_BY_WHY.get(type(why), ANY))
        nodes = why.nodes if isinstance(why, r.NoDomain) else why
        if isinstance(nodes, r.NoNode):
            for rule in nodes.rules:
                topics.update(_BY_RULE.get(rule.rule, ANY))
        if isinstance(why, r.QueueLimit | r.ClusterLimit):
            topics.add(f"{b.PLACED}:{job.queue}")  # the order of service may depend on what the queue's jobs hold
    return topics


def fits_nowhere(job: Job, whys: Iterable[r.UnschedulableReason], nodes: Nodes, placement: Placement) -> bool:
    """Whether no change of pods, quotas or claims could help a job.

    This is so if each node is too small as a whole, or if a label, a taint or another rule about the node itself
    excludes it. Always False for a job whose waiting tasks have several shapes: some of these tasks may fit.
    """
    tasks = job.waiting_shapes
    if len(tasks) != 1:
        return False
    [task] = tasks.values()
    for why in whys:
        if isinstance(why, r.NoNode) and why.nodes == len(nodes.rows):
            rules = {rule.rule for rule in why.rules}
            if all(_BY_RULE.get(rule) == () for rule in rules):
                return True
            if all(_BY_RULE.get(rule) == () or rule in _ABOUT_ROOM for rule in rules):
                return not placement.is_any_large_enough(task)
    return False


def least_of(job: Job) -> dict[str, int]:
    """Return the capacity that a node needs at least for any waiting task of the job."""
    needs = [task.init_request for task in job.waiting_shapes.values()]
    if len(needs) == 1:
        return needs[0]
    shared = set.intersection(*map(set, needs)) if needs else set()
    return {name: min(need[name] for need in needs) for name in sorted(shared)}
