"""Find the waiting jobs that a change may help although their entries name no topic for it: room and lapsed quota."""

from __future__ import annotations

from collections.abc import Mapping, Set

import numpy as np

from ..model.changes import FREED
from ..model.cluster import Cluster
from ..model.nodes import Nodes
from ..model.resources import Resource
from .backlog import Backlog, backlog_of
from .reservations import LAPSED


def helped_by_lapse(known: Backlog, now: float) -> Set[str]:
    """Return the jobs that wait for quota, if a reservation has lapsed since the last cycle."""
    if any(LAPSED < at <= now for at in known.lapses.values()):
        return known.waiting_for(FREED)
    return set()


def helped_by_room(cluster: Cluster, grown: Mapping[str, Resource]) -> set[str]:
    """Return the waiting jobs of which some task fits on a node whose capacity has grown.

    Args:
        cluster: The state.
        grown: Node → capacity that is freed there beyond what the state shows.
    """
    nodes: Nodes = cluster.nodes
    names = [name for name in sorted(grown) if name in nodes.by_name]
    helped: set[str] = set()
    if not names:
        return helped
    more = np.array([nodes.vector(grown[name]) for name in names])
    available = nodes.future_idle()[[nodes.by_name[name].row for name in names]] + more
    for amounts, jobs in backlog_of(cluster).with_least():
        if any(name not in nodes.dimensions for name, amount in amounts if amount > 0):
            continue  # no node has any of it
        columns = [nodes.dimensions[name] for name, amount in amounts if amount > 0]
        least = [amount for _, amount in amounts if amount > 0]
        if bool(np.any(np.all(available[:, columns] >= least, axis=1))):
            helped |= jobs
    return helped
