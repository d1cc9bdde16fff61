"""Remove a cluster that is known by its record only: its processes, its containers and its files.

Removal is idempotent and safe to run concurrently. The owner, its reaper and a user at a prompt may all start it.
"""

from __future__ import annotations

import contextlib

from .protocol import ClusterError
from .registry import ClusterRecord, Registry
from .subprocess_run import end_programs


def destroy(record: ClusterRecord, registry: Registry | None = None) -> None:
    """Remove everything that belongs to the cluster."""
    if record.kind == "kind":
        from .kind_removal import delete_cluster  # noqa: PLC0415 - only where there is such a cluster

        delete_cluster(record.name)
    end_programs(record.home)
    (registry or Registry()).remove(record)


def sweep(registry: Registry | None = None) -> list[ClusterRecord]:
    """Remove the abandoned clusters, whose owner and reaper are both dead.

    A cluster that cannot be removed now, for instance because its Docker engine does not answer, keeps its record. The
    next sweep tries again.
    """
    registry = registry or Registry()
    removed = []
    for record in registry.records():
        if record.abandoned:
            with contextlib.suppress(ClusterError):
                destroy(record, registry)
                removed.append(record)
    return removed
