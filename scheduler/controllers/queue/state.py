"""Compute which queues can be used, and the parent of each.

An invalid queue makes only itself and its dependents unusable, and the reason is published.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from ...model import names, resources
from ...model.objects import Namespace, PodGroup, Quantities, Queue
from ...model.resources import QuantityError, Resource
from ...model.times import seconds

ROOT, DEFAULT = "root", "default"


class QueueState(StrEnum):
    """States of a Queue."""

    OPEN = "Open"
    CLOSING = "Closing"
    CLOSED = "Closed"
    UNKNOWN = "Unknown"


def parent_of(queue: Queue) -> str:
    """Return the name of a queue's parent; empty for root."""
    return "" if queue.metadata.name == ROOT else queue.spec.parent or ROOT


def is_relevant_change(before: Queue | None, after: Queue | None) -> bool:
    """Return True if other objects depend on a change of a queue: any but that of amounts and counts in its status."""
    if before is None or after is None or before.metadata.uid != after.metadata.uid:
        return True
    was, now = before.metadata, after.metadata
    return (before.spec, before.status.state, before.status.conditions, was.annotations, was.deletion_timestamp) != (
        after.spec,
        after.status.state,
        after.status.conditions,
        now.annotations,
        now.deletion_timestamp,
    )


def queue_for(named: str, group: PodGroup | None, namespace: Namespace | None) -> str:
    """Return the queue of a job that names `named`.

    If the name is `default` or empty, the namespace's annotation counts until the PodGroup exists; after that, the
    PodGroup's queue counts.
    """
    if named not in ("", DEFAULT):
        return named
    if group is not None:
        return group.spec.queue or DEFAULT
    return ((namespace.metadata.annotations if namespace else None) or {}).get(names.QUEUE_NAME) or DEFAULT


def children_of(name: str, queues: Iterable[Queue]) -> list[Queue]:
    return [queue for queue in queues if parent_of(queue) == name]


def drains_since(name: str, queues: Iterable[Queue]) -> float | None:
    """Return when a queue got its first child, in seconds since the epoch; None for a leaf.

    Older PodGroups finish in the queue and newer ones do not start: the queue drains.
    """
    return min((seconds(child.metadata.creation_timestamp) for child in children_of(name, queues)), default=None)


def usability(name: str, queues: Iterable[Queue], group: PodGroup | None = None) -> str:
    """Return why a job cannot run in the queue `name`; empty if it can.

    The queue may be missing, not open, or may have had children when the job's `group` was created.
    """
    known = {queue.metadata.name: queue for queue in queues}
    queue = known.get(name)
    if queue is None:
        return f"queue {name} does not exist; create it, or name another in a new job"
    if queue.status.state in (QueueState.CLOSING, QueueState.CLOSED):
        return f"queue {name} is {queue.status.state}; open it, or use another queue"
    drains = drains_since(name, known.values())
    if name == ROOT or drains is not None:
        if group is not None and drains is not None and seconds(group.metadata.creation_timestamp) < drains:
            return ""  # as in the scheduler's queue plugins
        return f"queue {name} has child queues; use one of those"
    return ""


def is_in_cycle(name: str, known: Mapping[str, Queue]) -> bool:
    """Return True if the chain of parents never reaches root."""
    seen = set()
    while name in known and name != ROOT:
        if name in seen:
            return True
        seen.add(name)
        name = parent_of(known[name])
    return False


def limits_above(name: str, queues: Iterable[Queue]) -> list[tuple[str, Resource]]:
    """Return the capabilities of a queue and its ancestors that set one. An amount of 0 means not set."""
    known = {queue.metadata.name: queue for queue in queues}
    found: list[tuple[str, Resource]] = []
    seen: set[str] = set()
    while name in known and name not in seen:
        seen.add(name)
        own = readable_amounts(known[name].spec.capability)
        found.append((name, {key: amount for key, amount in own.items() if amount > 0}))
        name = parent_of(known[name]) if name != ROOT else ""
    return [(queue, limit) for queue, limit in found if limit]


def readable_amounts(quantities: Quantities | None) -> Resource:
    """Return the amounts; empty if one is unreadable, which the condition of its own queue reports."""
    try:
        return resources.parse(quantities)
    except QuantityError:
        return {}
