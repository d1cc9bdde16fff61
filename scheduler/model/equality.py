"""Decide which changes of an object could alter a decision.

A field counts if and only if a decision reads it. Other fields (heartbeats, statuses that controllers write,
conditions) must not start a cycle.
"""

from __future__ import annotations

from typing import Any

from . import objects
from .task import Task, TaskStatus


def same_node(a: objects.Node, b: objects.Node) -> bool:
    return (
        a.spec == b.spec
        and a.metadata.labels == b.metadata.labels
        and a.metadata.annotations == b.metadata.annotations
        and a.status.allocatable == b.status.allocatable
        and [(c.type, c.status) for c in a.status.conditions or ()]
        == [(c.type, c.status) for c in b.status.conditions or ()]
        and a.status.images == b.status.images
    )


def same_group(a: objects.PodGroup, b: objects.PodGroup) -> bool:
    return a.spec == b.spec and a.status.phase == b.status.phase and _same_meta(a.metadata, b.metadata)


def same_queue(a: objects.Queue, b: objects.Queue) -> bool:
    return a.spec == b.spec and a.status.state == b.status.state and _same_meta(a.metadata, b.metadata)


def same_small(a: Any, b: Any) -> bool:
    """Compare two versions of a namespace, volume, claim, budget or another auxiliary object.

    Spec, metadata, the decoded part of the status, and whether the object is being deleted count.
    """
    parts = ("spec", "status")
    return (
        _same_meta(a.metadata, b.metadata)
        and a.metadata.owner_references == b.metadata.owner_references
        and (a.metadata.deletion_timestamp is None) == (b.metadata.deletion_timestamp is None)
        and all(getattr(a, p, None) == getattr(b, p, None) for p in parts)
    )


def same_task(a: Task, b: Task) -> bool:
    return (
        a.status is b.status
        and a.node == b.node
        and a.assumed == b.assumed
        and a.job == b.job
        and a.shape == b.shape
        and a.gated == b.gated
        and a.nominated == b.nominated
        and a.is_disruption_target == b.is_disruption_target
        and a.never_preempts == b.never_preempts
        and a.priority == b.priority
        and a.started == b.started
        and a.pod.metadata.owner_references == b.pod.metadata.owner_references
        and a.pod.metadata.labels == b.pod.metadata.labels
        and a.pod.metadata.annotations == b.pod.metadata.annotations
    )


def runs_ahead(old: Task, seen: Task) -> bool:
    """Whether our assumption about a task is still ahead of what the API shows."""
    if old.status is TaskStatus.BINDING:
        return seen.status is TaskStatus.PENDING
    if old.status is TaskStatus.UNKNOWN:  # its termination is overdue
        return seen.status is TaskStatus.RELEASING
    waiting = TaskStatus.PENDING | TaskStatus.BOUND | TaskStatus.RUNNING
    return old.status is TaskStatus.RELEASING and bool(seen.status & waiting)


def _same_meta(a: objects.ObjectMeta, b: objects.ObjectMeta) -> bool:
    return (
        a.uid == b.uid
        and a.labels == b.labels
        and a.annotations == b.annotations
        and a.creation_timestamp == b.creation_timestamp
    )
