"""What could help a waiting job: from the reasons of its refusal to the changes that it is told of.

The one rule: a reason names the changes without which it stands; what is not known here stands for any change.
Changes of the job itself, of nodes, queues, priority classes and namespaces are told to every waiting job and need no
mention.
"""

from __future__ import annotations

from collections.abc import Iterable

from .. import reasons as r
from ..model import backlog as b
from ..model.job import Job
from ..model.task import TaskStatus

ROOM = "room"
"""Room on a node: told apart by how much."""
_QUOTA = (b.FREED, b.GROUPS, b.CLAIMS)
_NEIGHBOURS = (b.FREED, b.PLACED, b.CLAIMS)
ANY = (*b.TOPICS, ROOM)

_BY_RULE: dict[str, tuple[str, ...]] = {
    "resource": (ROOM, b.CLAIMS),
    "pods": (ROOM, b.CLAIMS),
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
    "card": (),
    "card-quota": _QUOTA,
}
"""What could make a node, excluded by a rule of :class:`scheduler.reasons.NoNode`, take the task."""

_BY_WHY: dict[type, tuple[str, ...]] = {
    r.QueueLimit: _QUOTA,
    r.ClusterLimit: _QUOTA,
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
    r.NeverPreempts: (),
    r.TooCostly: (),
}


def hints_of(job: Job, whys: Iterable[r.UnschedulableReason]) -> set[str]:
    """The topics that a waiting job is to be told of."""
    topics: set[str] = set()
    for why in whys:
        if isinstance(why, r.NoNode):
            for rule in why.rules:
                topics.update(_BY_RULE.get(rule.rule, ANY))
        else:
            topics.update(_BY_WHY.get(type(why), ANY))
        if isinstance(why, r.QueueLimit | r.ClusterLimit):
            topics.add(f"{b.PLACED}:{job.queue}")  # who is served after this job may change with what the others hold
    return topics


def least_of(job: Job) -> dict[str, int]:
    """The room without which no waiting task of the job fits on a node."""
    pending = job.by_status.get(TaskStatus.PENDING, {}).values()
    needs = list({task.shape: task.init_request for task in pending if not task.gated}.values())
    if len(needs) == 1:
        return needs[0]
    shared = set.intersection(*map(set, needs)) if needs else set()
    return {name: min(need[name] for need in needs) for name in sorted(shared)}
