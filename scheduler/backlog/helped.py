"""Find the waiting jobs that may profit from freed capacity or quota, by comparing amounts instead of topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from types import MappingProxyType

import numpy as np

from ..model.changes import FREED
from ..model.cluster import Cluster
from ..model.nodes import Nodes
from ..model.queue import Queue
from ..model.resources import Resource
from .backlog import EVERY, Backlog
from .reservations import LAPSED


def has_due(cluster: Cluster, backlog: Backlog, now: float) -> bool:
    """Whether a waiting job must be tried again at once, even if the state has not changed since the last cycle."""
    if not backlog.entries:
        return False
    due = backlog.due | helped_by_quota(cluster, backlog, backlog.moved)
    return any(backlog.entries[key].not_before <= now for key in due)


def helped_by_lapse(cluster: Cluster, backlog: Backlog, now: float) -> Set[str]:
    """Return the jobs that freed capacity or quota may help, if a reservation has lapsed since the last cycle."""
    if any(LAPSED < at <= now for at in backlog.lapses.values()):
        return backlog.waiting_for(FREED) | helped_by_quota(cluster, backlog, {EVERY})
    return set()


def helped_by_quota(
    cluster: Cluster, backlog: Backlog, moved: Set[str], released: Mapping[str, Resource] = MappingProxyType({})
) -> set[str]:
    """Return the jobs that wait for room in quotas, if one of these quotas may have enough room.

    Jobs that wait for room in a deserved share are left out: what queues deserve is not known here.

    Args:
        cluster: The queues and what their jobs hold.
        backlog: The waiting jobs.
        moved: The queues whose quota may have more room; `EVERY` stands for all.
        released: Queue → amount by which the queue holds less than the state shows.
    """
    if not moved:
        return set()
    by_queue, queues = cluster.sums().by_queue, cluster.queues
    concerned = {name for queue in moved for name in _with_ancestors(queue, queues)}

    def held(queue: str, dimension: str, needed: bool) -> int | None:
        if queue not in concerned and EVERY not in moved:
            return None
        sums = by_queue.get(queue)
        if sums is None:
            return 0
        amounts = sums.needed if needed else sums.held
        return amounts.get(dimension, 0) - released.get(queue, {}).get(dimension, 0)

    return backlog.by_quota.within(held)


def _with_ancestors(queue: str, queues: Mapping[str, Queue]) -> Iterator[str]:
    """Yield the names of a queue and of its ancestors, up to a missing queue or a cycle in a broken tree."""
    seen: set[str] = set()
    while queue and queue not in seen:
        seen.add(queue)
        yield queue
        queue = queues[queue].parent if queue in queues else ""


def helped_by_room(nodes: Nodes, backlog: Backlog, grown: Mapping[str, Resource]) -> set[str]:
    """Return the waiting jobs with a task that may fit on a node whose free capacity has grown.

    Args:
        nodes: The nodes with the pods on them.
        backlog: The waiting jobs.
        grown: Node → capacity that is freed on the node beyond what the state shows.
    """
    names = [name for name in sorted(grown) if name in nodes.by_name]
    helped: set[str] = set()
    if not names:
        return helped
    more = np.array([nodes.vector(grown[name]) for name in names])
    available = nodes.future_idle([nodes.by_name[name].row for name in names]) + more
    for amounts, jobs in backlog.with_least():
        if any(name not in nodes.dimensions for name, amount in amounts if amount > 0):
            continue  # no node has this resource
        columns = [nodes.dimensions[name] for name, amount in amounts if amount > 0]
        least = [amount for _, amount in amounts if amount > 0]
        if bool(np.any(np.all(available[:, columns] >= least, axis=1))):
            helped |= jobs
    return helped
