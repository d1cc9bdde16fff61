"""End what a record stands for: its processes, its containers, its files. Needs nothing but the record.

Safe to repeat and to run twice at once: the owner, its guardian and somebody at a prompt may all come to it.
"""

from __future__ import annotations

import contextlib

from .processes import end_programs
from .protocol import ClusterError
from .registry import ClusterRecord, Registry


def destroy(record: ClusterRecord, registry: Registry | None = None) -> None:
    """Leave nothing of the cluster."""
    if record.kind == "kind":
        from .kind_removal import delete_cluster  # noqa: PLC0415 - only where there is such a cluster

        delete_cluster(record.name)
    end_programs(record.home)
    (registry or Registry()).remove(record)


def sweep(registry: Registry | None = None) -> list[ClusterRecord]:
    """Destroy what was abandoned: its owner is gone, and so was its guardian.

    One that cannot be destroyed now (its Docker engine does not answer) keeps its record, for the next time.
    """
    registry = registry or Registry()
    gone = []
    for record in registry.records():
        if record.abandoned:
            with contextlib.suppress(ClusterError):
                destroy(record, registry)
                gone.append(record)
    return gone
